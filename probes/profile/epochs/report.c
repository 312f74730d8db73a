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

static void put_caller(FILE *out, const struct caller_count *count, const char *program,
		       double per_second)
{
	const struct link_map *map = NULL;
	struct fi_probe probe;
	const char *object;
	Dl_info info;

	if (fi_get((uint32_t)count->id, &probe) < 0 ||
	    !dladdr1((const void *)count->from, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return;
	object = map->l_name && *map->l_name ? map->l_name : program;
	put_probe(out, 'C', &probe);
	fputc('\t', out);
	text_put(out, object);
	fprintf(out, "\t%lx\t%llu\t%llu\t%a\n", (unsigned long)(count->from - map->l_addr),
		(unsigned long long)count->calls, (unsigned long long)count->timed,
		count->time / per_second);
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
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/thread-self/exe", program, sizeof(program) - 1);
	uint64_t offs = atomic_load_explicit(&watch_common.offs, memory_order_relaxed);
	const struct caller_count *callers;
	uint32_t n = fi_probes();

	program[len < 0 ? 0 : len] = '\0';
	fprintf(out, "Q\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\t%a\n", seconds, (double)account.epochs,
		asked.budget, cost_share(), (double)(account.toggles + offs), (double)account.lost,
		(double)account.refused, (double)account.with_exits, cost_toggling_share(),
		clocks_seconds(CLOCK_PROCESS_CPUTIME_ID));
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id, per_second);
	callers = callers_list(&n);
	for (uint32_t i = 0; i < n; i++)
		put_caller(out, &callers[i], program, per_second);
	put_moments(out, per_second);
}
