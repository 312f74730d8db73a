/* SPDX-License-Identifier: MIT */
/* Lines of reports, and the moments of a profile. */
#include "profile/sampler/session_report.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include "base/text.h"

void report_text(FILE *out, const char *text)
{
	fputc('\t', out);
	text_put(out, text);
}

/* Most numbers are 0. */
void report_numbers(FILE *out, const void *numbers, int n)
{
	const double *number = numbers;

	for (int i = 0; i < n; i++)
		if (number[i] != 0)
			fprintf(out, "\t%a", number[i]);
		else
			fputs("\t0", out);
	fputc('\n', out);
}

bool report_address(FILE *out, uint64_t address)
{
	const struct link_map *map = NULL;
	char program[PATH_MAX];
	Dl_info info;
	ssize_t len;

	if (!dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	if (map->l_name && *map->l_name) {
		report_text(out, map->l_name);
	} else {
		len = readlink("/proc/thread-self/exe", program, sizeof(program) - 1);
		program[len < 0 ? 0 : len] = '\0';
		report_text(out, program);
	}
	fprintf(out, "\t%lx", (unsigned long)(address - map->l_addr));
	return true;
}

/* --- Moments --------------------------------------------------------------------------------- */

static void join_phases(struct phase *to, const struct phase *next)
{
	to->length = next->start + next->length - to->start;
	to->calls += next->calls;
	to->cost += next->cost;
	to->phases += next->phases;
	to->on += next->on;
	to->toggling += next->toggling;
}

/* Join moments in pairs, to make room for as many again. */
static void merge_moments(struct moments *moments)
{
	struct phase *moment = moments->moment;

	for (size_t i = 0; i < MOMENTS / 2; i++) {
		moment[i] = moment[2 * i];
		join_phases(&moment[i], &moment[2 * i + 1]);
	}
	moments->n = MOMENTS / 2;
	moments->merged *= 2;
}

void moments_add(struct moments *moments, const struct phase *phase)
{
	struct phase *last = moments->n ? &moments->moment[moments->n - 1] : NULL;

	if (last)
		last->length = phase->start - last->start;
	if (last && last->phases < moments->merged) {
		join_phases(last, phase);
		return;
	}
	if (!moments->n)
		moments->merged = 1;
	if (moments->n == MOMENTS)
		merge_moments(moments);
	moments->moment[moments->n++] = *phase;
}

void report_moments(FILE *out, const struct moments *moments, double per_second)
{
	for (size_t i = 0; i < moments->n; i++) {
		struct phase one = moments->moment[i];

		one.cost = one.length > 0 ? one.cost / one.length : 0;
		one.start /= per_second;
		one.length /= per_second;
		fputc('P', out);
		report_numbers(out, &one, PHASE_NUMBERS);
	}
}
