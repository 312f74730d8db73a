/* SPDX-License-Identifier: MIT */
/*
 * The formats of lines: collapsed stacks, callgrind's, LLVM's. Their numbers are whole.
 */
#include "probes/profile/write/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "probes/text/demangle.h"
#include "probes/text/text.h"

static uint64_t whole(double calls)
{
	return calls > 0 ? (uint64_t)(calls + 0.5) : 0;
}

static int result(FILE *out)
{
	return ferror(out) ? -EIO : 0;
}

static void put_name(FILE *out, const struct function *function, const char *bad)
{
	text_put_plain(out, name_for_people(function->name, true), bad);
}

/* Microseconds where times are known, else calls. */
int write_collapsed(const struct profile *profile, FILE *out)
{
	bool timed = profile_timed(profile);

	for (size_t i = 0; i < profile->stacks; i++) {
		const struct stack *stack = &profile->stack[i];
		uint64_t weight = whole(timed ? stack->seconds * 1e6 : stack->calls);

		if (!weight)
			continue;
		for (size_t j = 0; j < stack->frames; j++) {
			if (j)
				fputc(';', out);
			put_name(out, &profile->function[stack->frame[j]], "; ");
		}
		fprintf(out, " %" PRIu64 "\n", weight);
	}
	return result(out);
}

/* --- Callers and what they call, from the last two frames of stacks --------------------------- */

struct edge {
	size_t from, to;
	double calls, total; /* seconds */
};

static int by_ends(const void *a, const void *b)
{
	const struct edge *one = a, *two = b;

	if (one->from != two->from)
		return one->from < two->from ? -1 : 1;
	return (one->to > two->to) - (one->to < two->to);
}

/* Sorted by caller. NULL: no memory. */
static struct edge *edges_of(const struct profile *profile, size_t *n)
{
	struct edge *edge = calloc(profile->stacks + 1, sizeof(*edge));
	size_t kept = 0;

	*n = 0;
	if (!edge)
		return NULL;
	for (size_t i = 0; i < profile->stacks; i++) {
		const struct stack *stack = &profile->stack[i];

		if (stack->frames > 1 && (whole(stack->calls) || whole(stack->total * 1e9)))
			edge[(*n)++] = (struct edge){ stack->frame[stack->frames - 2],
						      stack->frame[stack->frames - 1], stack->calls,
						      stack->total };
	}
	qsort(edge, *n, sizeof(*edge), by_ends);
	for (size_t i = 1; i < *n; i++) {
		if (by_ends(&edge[kept], &edge[i])) {
			edge[++kept] = edge[i];
			continue;
		}
		edge[kept].calls += edge[i].calls;
		edge[kept].total += edge[i].total;
	}
	if (*n)
		*n = kept + 1;
	return edge;
}

/* Nanoseconds, where times are known, and calls. */
static void put_costs(const struct profile *profile, FILE *out, double seconds, double calls)
{
	fputc('0', out);
	if (profile_timed(profile))
		fprintf(out, " %" PRIu64, whole(seconds * 1e9));
	fprintf(out, " %" PRIu64 "\n", whole(calls));
}

static void put_callgrind(const struct profile *profile, size_t f, const struct edge *edge,
			  const struct edge *end, FILE *out)
{
	const struct function *function = &profile->function[f];

	fputs("\nob=", out);
	text_put_plain(out, function->object, "");
	fputs("\nfl=???\nfn=", out);
	put_name(out, function, "");
	fputc('\n', out);
	put_costs(profile, out, function->times.self.value, function->calls);
	for (; edge < end; edge++) {
		fputs("cob=", out);
		text_put_plain(out, profile->function[edge->to].object, "");
		fputs("\ncfi=???\ncfn=", out);
		put_name(out, &profile->function[edge->to], "");
		fprintf(out, "\ncalls=%" PRIu64 " 0\n", whole(edge->calls));
		put_costs(profile, out, edge->total, edge->calls);
	}
}

static void put_llvm(const struct profile *profile, size_t f, const struct edge *edge,
		     const struct edge *end, FILE *out)
{
	const struct function *function = &profile->function[f];
	uint64_t calls = whole(function->calls);

	if (!calls)
		return;
	text_put_plain(out, function->name, ": ");
	fprintf(out, ":%" PRIu64 ":%" PRIu64 "\n 0: %" PRIu64, calls, calls, calls);
	for (; edge < end; edge++) {
		fputc(' ', out);
		text_put_plain(out, profile->function[edge->to].name, ": ");
		fprintf(out, ":%" PRIu64, whole(edge->calls));
	}
	fputc('\n', out);
}

static int each(const struct profile *profile, FILE *out,
		void (*put)(const struct profile *, size_t, const struct edge *,
			    const struct edge *, FILE *))
{
	size_t n, next = 0;
	struct edge *edge = edges_of(profile, &n);

	if (!edge)
		return -ENOMEM;
	for (size_t f = 0; f < profile->functions; f++) {
		size_t first = next;

		while (next < n && edge[next].from == f)
			next++;
		put(profile, f, edge + first, edge + next, out);
	}
	free(edge);
	return result(out);
}

static void put_sum(const struct profile *profile, FILE *out, const char *name)
{
	double calls = 0, seconds = 0;

	for (size_t i = 0; i < profile->functions; i++) {
		calls += (double)whole(profile->function[i].calls);
		seconds += profile->function[i].times.self.value;
	}
	fprintf(out, "%s:", name);
	if (profile_timed(profile))
		fprintf(out, " %.0f", seconds * 1e9);
	fprintf(out, " %.0f\n", calls);
}

int write_callgrind(const struct profile *profile, FILE *out)
{
	bool timed = profile_timed(profile);
	int ret;

	fputs("# callgrind format\nversion: 1\ncreator: fastinst profile\ncmd: ", out);
	text_put_plain(out, profile->program, "");
	fprintf(out, "\npositions: line\n%sevents: %sCalls\n",
		timed ? "event: ns : Nanoseconds\n" : "", timed ? "ns " : "");
	put_sum(profile, out, "summary");
	ret = each(profile, out, put_callgrind);
	fputc('\n', out);
	put_sum(profile, out, "totals");
	return ret ? ret : result(out);
}

/* The line of the entry has the calls of what the function calls: where, entries do not tell. */
int write_llvm(const struct profile *profile, FILE *out)
{
	return each(profile, out, put_llvm);
}
