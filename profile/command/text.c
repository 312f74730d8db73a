/* SPDX-License-Identifier: MIT */
/* Text formats with whole numbers: collapsed stacks, callgrind's, LLVM's. */
#include "profile/command/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/demangle.h"
#include "base/text.h"

static uint64_t round_count(double calls)
{
	return calls > 0 ? (uint64_t)(calls + 0.5) : 0;
}

static void put_name(FILE *out, const struct function *function, const char *bad)
{
	text_put_plain(out, name_for_people(function->name, true), bad);
}

/* Microseconds where times are known, else calls. */
int write_collapsed(const struct profile *profile, FILE *out)
{
	bool timed = profile_has_times(profile);

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *arc = &profile->arc[i];
		uint64_t weight = round_count(timed ? arc->seconds * 1e6 : arc->calls);

		if (!weight)
			continue;
		if (arc->from != NO_CALLER) {
			put_name(out, &profile->function[arc->from], "; ");
			fputc(';', out);
		}
		put_name(out, &profile->function[arc->to], "; ");
		fprintf(out, " %" PRIu64 "\n", weight);
	}
	return 0;
}

/* --- Callers and what they call --------------------------------------------------------------- */

ORDER_BY(by_caller, struct arc, from)

/* Nanoseconds, where times are known, and calls. */
static void put_costs(const struct profile *profile, FILE *out, double seconds, double calls)
{
	fputc('0', out);
	if (profile_has_times(profile))
		fprintf(out, " %" PRIu64, round_count(seconds * 1e9));
	fprintf(out, " %" PRIu64 "\n", round_count(calls));
}

static void put_callgrind(const struct profile *profile, size_t f, const struct arc *arc,
			  const struct arc *end, FILE *out)
{
	const struct function *function = &profile->function[f];

	fputs("\nob=", out);
	text_put_plain(out, function->object, "");
	fputs("\nfl=???\nfn=", out);
	put_name(out, function, "");
	fputc('\n', out);
	put_costs(profile, out, function->times.self.value, function->calls.value);
	for (; arc < end; arc++) {
		fputs("cob=", out);
		text_put_plain(out, profile->function[arc->to].object, "");
		fputs("\ncfi=???\ncfn=", out);
		put_name(out, &profile->function[arc->to], "");
		fprintf(out, "\ncalls=%" PRIu64 " 0\n", round_count(arc->calls));
		put_costs(profile, out, arc->total, arc->calls);
	}
}

static void put_llvm(const struct profile *profile, size_t f, const struct arc *arc,
		     const struct arc *end, FILE *out)
{
	const struct function *function = &profile->function[f];
	uint64_t calls = round_count(function->calls.value);

	if (!calls)
		return;
	text_put_plain(out, function->name, ": ");
	fprintf(out, ":%" PRIu64 ":%" PRIu64 "\n 0: %" PRIu64, calls, calls, calls);
	for (; arc < end; arc++) {
		fputc(' ', out);
		text_put_plain(out, profile->function[arc->to].name, ": ");
		fprintf(out, ":%" PRIu64, round_count(arc->calls));
	}
	fputc('\n', out);
}

static int put_functions(const struct profile *profile, FILE *out,
			 void (*put)(const struct profile *, size_t, const struct arc *,
				     const struct arc *, FILE *))
{
	struct arc *arc = calloc(profile->arcs + 1, sizeof(*arc));
	size_t n = 0, next = 0;

	if (!arc)
		return -ENOMEM;
	for (size_t i = 0; i < profile->arcs; i++)
		if (round_count(profile->arc[i].calls) || round_count(profile->arc[i].total * 1e9))
			arc[n++] = profile->arc[i];
	qsort(arc, n, sizeof(*arc), by_caller);
	for (size_t f = 0; f < profile->functions; f++) {
		size_t first = next;

		while (next < n && arc[next].from == f)
			next++;
		put(profile, f, arc + first, arc + next, out);
	}
	free(arc);
	return 0;
}

static void put_sum(const struct profile *profile, FILE *out, const char *name)
{
	double calls = 0, seconds = 0;

	for (size_t i = 0; i < profile->functions; i++) {
		calls += (double)round_count(profile->function[i].calls.value);
		seconds += profile->function[i].times.self.value;
	}
	fprintf(out, "%s:", name);
	if (profile_has_times(profile))
		fprintf(out, " %.0f", seconds * 1e9);
	fprintf(out, " %.0f\n", calls);
}

int write_callgrind(const struct profile *profile, FILE *out)
{
	bool timed = profile_has_times(profile);
	int ret;

	fputs("# callgrind format\nversion: 1\ncreator: fastinst profile\ncmd: ", out);
	text_put_plain(out, profile->program, "");
	fprintf(out, "\npositions: line\n%sevents: %sCalls\n",
		timed ? "event: ns : Nanoseconds\n" : "", timed ? "ns " : "");
	put_sum(profile, out, "summary");
	ret = put_functions(profile, out, put_callgrind);
	fputc('\n', out);
	put_sum(profile, out, "totals");
	return ret;
}

/* Probes of entries do not tell where calls are: all callees stand on the line of the entry. */
int write_llvm(const struct profile *profile, FILE *out)
{
	return put_functions(profile, out, put_llvm);
}
