/* SPDX-License-Identifier: MIT */
/*
 * What one change costs its patcher: bench_toggle().
 *
 * In four parts, each a bench_measure() of its own:
 *
 *   - start-up of the library, which closes all code that is open, so first;
 *   - everything with one executor or none. No other executors exist: who stops the
 *     world, or lets the kernel interrupt it, stops one;
 *   - what more executors cost;
 *   - batches: their ten thousand sites stay known to the library from then on.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/cases/toggle/toggle_case.h"
#include "stress/base/clock.h"

/* --- Measuring a list ----------------------------------------------------------------- */

struct part {
	struct toggle_case *c;
	struct bench_case *bench;
	struct bench_case *floor;
	size_t built;
};

static int build_part(struct part *part, const struct toggle_list *list, struct toggle *toggle)
{
	part->c = aligned_alloc(128, (list->count + !list->count) * sizeof(*part->c));
	part->bench = calloc(list->count + !list->count, sizeof(*part->bench));
	part->floor = calloc(list->count + !list->count, sizeof(*part->floor));
	if (!part->c || !part->bench || !part->floor)
		return -ENOMEM;
	while (part->built < list->count) {
		size_t i = part->built++;
		int ret = toggle_case_build(&part->c[i], &list->spec[i], toggle, &part->bench[i],
					    &part->floor[i]);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void free_part(struct part *part)
{
	while (part->built)
		toggle_case_free(&part->c[--part->built]);
	free(part->c);
	free(part->bench);
	free(part->floor);
}

static int measure_list(const struct bench_run *run, const struct toggle_list *list,
			struct toggle *toggle, struct bench_result *result)
{
	struct part part = { 0 };
	int ret = build_part(&part, list, toggle);

	if (ret == 0)
		ret = bench_measure(run, part.bench, list->count, result);
	free_part(&part);
	return ret;
}

/* With so many executors at hand, asleep when they are not asked for. */
static int measure_with(const struct bench_run *run, const struct toggle_list *list,
			unsigned executors, struct toggle *toggle, struct bench_result *result)
{
	struct seating seating = run->seating;
	int ret;

	if (seating.executors > executors)
		seating.executors = executors;
	ret = hot_start(&toggle->hot, run->topology, &seating);
	if (ret < 0)
		return ret;
	ret = measure_list(run, list, toggle, result);
	hot_stop(toggle->hot);
	toggle->hot = NULL;
	return ret;
}

/* --- The parts ------------------------------------------------------------------------ */

static int measure_singles(const struct bench_run *run, struct toggle_list *list,
			   struct toggle *toggle, struct bench_result *result)
{
	int ret = toggle_sweep_open(toggle, run->topology);

	toggle_list_singles(list);
	if (ret == 0)
		ret = measure_with(run, list, 1, toggle, result);
	toggle_sweep_close(toggle);
	return ret;
}

static int measure_crowds(const struct bench_run *run, struct toggle_list *list,
			  struct toggle *toggle, struct bench_result *result)
{
	toggle_list_crowds(list, run->seating.executors);
	return list->count ? measure_with(run, list, run->seating.executors, toggle, result) : 0;
}

static int measure_batches(const struct bench_run *run, struct toggle_list *list,
			   struct toggle *toggle, struct bench_result *result)
{
	int ret = spare_open(&toggle->pool, TOGGLE_BATCH_MAX, TOGGLE_SPLIT);

	toggle_list_batches(list);
	if (ret == 0)
		ret = measure_with(run, list, 1, toggle, result);
	spare_close(&toggle->pool);
	return ret;
}

/* Finding and reading the config, taking SIGTRAP, and trying it. */
static int block_starts(struct bench_case *c, struct samples *s, char *why)
{
	(void)c;
	for (unsigned i = 0; i < 5; i++) {
		int ret = pc_fini();
		double begin = seconds_now();

		if (ret == 0)
			ret = pc_init();
		if (ret < 0)
			return toggle_say(why, "pc_fini and pc_init", ret);
		samples_add(&s[0], (seconds_now() - begin) * 1e6);
	}
	return 0;
}

static int measure_starts(const struct bench_run *run, struct toggle_list *list,
			  struct toggle *toggle, struct bench_result *result)
{
	struct bench_case c = { .block = block_starts };

	(void)list;
	(void)toggle;
	bench_row_name(&c.row, "pc_init", "start", "us");
	return bench_measure(run, &c, 1, result);
}

typedef int part_fn(const struct bench_run *run, struct toggle_list *list, struct toggle *toggle,
		    struct bench_result *result);

int bench_toggle(const struct bench_run *run, struct bench_result *result)
{
	static part_fn *const parts[] = {
		measure_starts,
		measure_singles,
		measure_crowds,
		measure_batches,
	};
	struct toggle_list *list = calloc(1, sizeof(*list));
	struct toggle toggle = { 0 };
	int ret = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && ret == 0; i++) {
		list->count = 0;
		ret = parts[i](run, list, &toggle, result);
	}
	free(list);
	return ret;
}
