/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/report.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/include/fastinst.h"
#include "probes/profile/epochs/books.h"
#include "probes/profile/epochs/clocks.h"
#include "probes/profile/epochs/cost.h"
#include "probes/profile/epochs/glances.h"
#include "probes/profile/sample/callers.h"
#include "probes/profile/sample/watch.h"
#include "probes/text/text.h"

static void put_probe(FILE *out, char tag, const struct fi_probe *probe)
{
	fprintf(out, "%c\t", tag);
	text_put(out, probe->function);
	fputc('\t', out);
	text_put(out, probe->object);
}

static void put_numbers(FILE *out, char tag, const struct fi_probe *probe, const void *numbers,
			int n)
{
	const double *number = numbers;

	put_probe(out, tag, probe);
	for (int i = 0; i < n; i++)
		if (number[i] != 0)
			fprintf(out, "\t%a", number[i]);
		else
			fputs("\t0", out);
	fputc('\n', out);
}

static struct duration in_seconds(const struct duration *ticks, double per_second)
{
	struct duration duration = *ticks;
	double variance = per_second * per_second;

	duration.time /= per_second;
	duration.wall /= per_second;
	duration.blur /= per_second;
	duration.mean /= per_second;
	duration.squares /= variance;
	duration.quads /= variance * variance;
	return duration;
}

/* Most functions of most programs are never called, which their probes saw as they were on. */
static void put_function(FILE *out, uint32_t id, double per_second)
{
	const struct book *book = &books[id];
	struct duration duration = in_seconds(&book->duration, per_second);
	struct fi_probe probe;

	if (!(book->estimate.counted > 0) || fi_get(id, &probe) < 0)
		return;
	put_numbers(out, 'F', &probe, &book->estimate, ESTIMATE_NUMBERS);
	if (duration.timed + duration.torn + duration.cut > 0)
		put_numbers(out, 'T', &probe, &duration, DURATION_NUMBERS);
}

/* The object that has the address; NULL: none. */
static const struct link_map *map_of(uint64_t at)
{
	const struct link_map *map = NULL;
	Dl_info info;

	return dladdr1((const void *)at, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* In the object, and where. */
static void put_place(FILE *out, const struct link_map *map, uint64_t at, const char *program)
{
	fputc('\t', out);
	text_put(out, map->l_name && *map->l_name ? map->l_name : program);
	fprintf(out, "\t%lx", (unsigned long)(at - map->l_addr));
}

static void put_caller(FILE *out, const struct caller_count *count, const char *program,
		       double per_second)
{
	const struct link_map *map = map_of(count->from);
	struct fi_probe probe;

	if (fi_get((uint32_t)count->id, &probe) < 0 || !map)
		return;
	put_probe(out, 'C', &probe);
	put_place(out, map, count->from, program);
	fprintf(out, "\t%llu\t%llu\t%a\n", (unsigned long long)count->calls,
		(unsigned long long)count->timed, count->time / per_second);
}

/* Of the process's CPU time, by what glances saw of it. What is not known has no place. */
static void put_glanced(FILE *out, const struct glanced *place, const char *program, double scale)
{
	const struct link_map *map = place->at ? map_of(place->at) : NULL;

	fputc('S', out);
	if (map)
		put_place(out, map, place->at, program);
	else
		fputs("\t\t0", out);
	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		if (place->ticks[i] > 0)
			fprintf(out, "\t%a", place->ticks[i] * scale);
		else
			fputs("\t0", out);
	fputc('\n', out);
}

static void put_glances(FILE *out, const char *program, double cpu)
{
	const struct glanced *place;
	double sum = 0;
	uint32_t n;

	place = glances_list(&n);
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < SHARE_GROUPS; k++)
			sum += place[i].ticks[k];
	for (uint32_t i = 0; i < n && sum > 0; i++)
		put_glanced(out, &place[i], program, cpu / sum);
}

static void put_moments(FILE *out, double per_second)
{
	for (unsigned i = 0; i < account.moments; i++) {
		const struct moment *one = &account.moment[i];

		fprintf(out, "P\t%a\t%a\t%a\t%a\n", one->start / per_second,
			one->length / per_second, one->calls,
			one->length > 0 ? one->cost / one->length : 0);
	}
}

void report_profile(FILE *out)
{
	double seconds = clocks_seconds(CLOCK_MONOTONIC) - account.began_at;
	double per_second = (double)(clocks_ticks() - account.began) / seconds;
	double cpu = clocks_seconds(CLOCK_PROCESS_CPUTIME_ID);
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/thread-self/exe", program, sizeof(program) - 1);
	uint64_t offs = load_relaxed(&watch_common.offs);
	const struct caller_count *callers;
	uint32_t n = fi_probes();

	program[len < 0 ? 0 : len] = '\0';
	fprintf(out, "Q\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\n", seconds, (double)account.epochs,
		asked.budget, cost_share(), (double)(account.toggles + offs), (double)account.lost,
		(double)account.refused, (double)account.with_exits, cost_toggling_share(), cpu);
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id, per_second);
	callers = callers_list(&n);
	for (uint32_t i = 0; i < n; i++)
		put_caller(out, &callers[i], program, per_second);
	put_glances(out, program, cpu);
	put_moments(out, per_second);
}
