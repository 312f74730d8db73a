/* SPDX-License-Identifier: MIT */
/*
 * What one change costs its patcher: bench_toggle().
 *
 * In four parts, each a bench_measure() of its own:
 *
 *   - start-up of the library, which closes all code that is open, so first;
 *   - everything with one executor or none. No other executors exist: what stops the
 *     world, or lets the kernel interrupt it, stops one;
 *   - what more executors cost;
 *   - batches: their ten thousand sites stay known to the library from then on.
 */
#include "bench/cases/toggle/toggle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "bench/method/method.h"
#include "stress/base/clock.h"

/* --- Which cases there are ------------------------------------------------------------ */

/*
 * A line stands for a case per number of executors and split, each a digit. Of rows that differ
 * in one thing only the usual one comes first. The world is stopped only where an executor is
 * in it.
 */
struct line {
	enum way_name way;
	const char *executors;
	const char *splits; /* NULL: none, and not told */
	bool has_policy;
	enum pc_policy policy;
	bool page, cold;
	enum site_mapping mapping;
};

#define WAIT	   .has_policy = true, .policy = PC_POLICY_WAIT
#define MEMBARRIER .has_policy = true, .policy = PC_POLICY_MEMBARRIER

static const struct line singles[] = {
	{ .way = WAY_ALIGNED, .executors = "10" },
	{ WAY_ALIGNED, "0", .cold = true },
	{ WAY_ALIGNED, "1", .mapping = SITE_PROTECT },
	{ WAY_ALIGNED, "1", .mapping = SITE_ALIAS },
	{ .way = WAY_CALL, .executors = "10", .splits = "01234" },
	{ WAY_CALL, "0", .splits = "03", .cold = true },
	{ .way = WAY_RETARGET, .executors = "1", .splits = "01234" },
	{ WAY_STRADDLER, "1", .splits = "1234", WAIT },
	{ WAY_STRADDLER, "0", .splits = "3", WAIT },
	{ WAY_STRADDLER, "1", .splits = "3", WAIT, .page = true },
	{ WAY_STRADDLER, "0", .splits = "3", WAIT, .cold = true },
	{ WAY_STRADDLER, "1", .splits = "3", WAIT, .mapping = SITE_PROTECT },
	{ WAY_STRADDLER, "1", .splits = "3", WAIT, .mapping = SITE_ALIAS },
	{ WAY_STRADDLER, "1", .splits = "1234", MEMBARRIER },
	{ WAY_STRADDLER, "0", .splits = "3", MEMBARRIER },
	{ WAY_STRADDLER, "1", .splits = "3", MEMBARRIER, .page = true },
	{ WAY_START, "10", .splits = "3", WAIT },
	{ WAY_START, "0", .splits = "3", WAIT, .cold = true },
	{ WAY_START, "10", .splits = "3", MEMBARRIER },
	{ .way = WAY_FLAG, .executors = "10" },
	{ .way = WAY_POINTER, .executors = "10" },
	{ .way = WAY_HAND, .executors = "10", .splits = "3" },
	{ .way = WAY_STOP, .executors = "1", .splits = "3" },
	{ .way = WAY_PTRACE, .executors = "1", .splits = "3" },
};

static const struct line crowds[] = {
	{ .way = WAY_ALIGNED },
	{ WAY_CALL, .splits = "03" },
	{ WAY_STRADDLER, .splits = "3", WAIT },
	{ WAY_START, .splits = "3", WAIT },
	{ WAY_STRADDLER, .splits = "3", MEMBARRIER },
	{ WAY_START, .splits = "3", MEMBARRIER },
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void add_spec(struct toggle_list *list, const struct toggle_spec *spec)
{
	assert(list->count < TOGGLE_CASES_MAX);
	list->spec[list->count++] = *spec;
}

static void add_line(struct toggle_list *list, const struct line *line, unsigned executors)
{
	struct toggle_spec spec = {
		.way = &ways[line->way],
		.executors = executors,
		.has_split = line->splits,
		.page = line->page,
		.has_policy = line->has_policy,
		.policy = line->policy,
		.mapping = line->mapping,
		.cold = line->cold,
	};
	const char *split = line->splits ? line->splits : "0";

	for (; *split; split++) {
		spec.split = (unsigned)(*split - '0');
		add_spec(list, &spec);
	}
}

void toggle_list_singles(struct toggle_list *list)
{
	for (size_t i = 0; i < LENGTH(singles); i++)
		for (const char *n = singles[i].executors; *n; n++)
			add_line(list, &singles[i], (unsigned)(*n - '0'));
	for (struct peer *peer = peers; peer->name; peer++)
		for (unsigned executors = 2; executors-- > 0 && peer->toggle;)
			if (executors || !peer->hot_only)
				add_spec(list, &(struct toggle_spec){ .way = &ways[WAY_PROCESS],
								      .peer = peer,
								      .executors = executors });
}

/* 2, 4, 8 and so on, and all. */
void toggle_list_crowds(struct toggle_list *list, unsigned most)
{
	for (unsigned executors = 2; executors / 2 < most && most > 1; executors *= 2)
		for (size_t i = 0; i < LENGTH(crowds); i++)
			add_line(list, &crowds[i], executors < most ? executors : most);
}

/* Auto takes the wait into account only where its bound is accepted, as in the last two. */
void toggle_list_batches(struct toggle_list *list)
{
	static const enum pc_policy policies[] = { PC_POLICY_WAIT, PC_POLICY_MEMBARRIER,
						   PC_POLICY_AUTO };
	static const unsigned sizes[] = { 1, 10, 100, 1000, 1024, TOGGLE_BATCH_MAX, 1, 1024 };

	for (size_t p = 0; p < LENGTH(policies); p++)
		for (size_t i = 0; i < LENGTH(sizes); i++)
			if (i < 6 || policies[p] == PC_POLICY_AUTO)
				add_spec(list, &(struct toggle_spec){ .way = &ways[WAY_BATCH],
								      .executors = 1,
								      .has_split = true,
								      .split = TOGGLE_SPLIT,
								      .has_policy = true,
								      .policy = policies[p],
								      .batch = sizes[i],
								      .any_risk = i >= 6 });
}

/* --- The parts ------------------------------------------------------------------------ */

/* Finding and reading the config, taking SIGTRAP, and trying it. */
static int block_of_starts(struct bench_case *c, struct samples *s, char *why)
{
	(void)c;
	for (unsigned i = 0; i < 5; i++) {
		int ret = pc_fini();
		double begin = seconds_now();

		if (ret == 0)
			ret = pc_init();
		if (ret < 0)
			return bench_say(why, "pc_fini and pc_init", ret);
		samples_add(&s[0], (seconds_now() - begin) * 1e6);
	}
	return 0;
}

/* With so many executors at hand, asleep when they are not asked for. The list is empty after. */
static int measure_list(const struct bench_run *run, struct toggle_list *list, unsigned executors,
			struct toggle *toggle, struct bench_result *result)
{
	struct toggle_case *c = aligned_alloc(128, list->count * sizeof(*c));
	struct bench_case *bench = calloc(2 * list->count, sizeof(*bench));
	struct seating seating = run->seating;
	size_t built = 0;
	int ret = c && bench ? 0 : -ENOMEM;

	if (seating.executors > executors)
		seating.executors = executors;
	if (ret == 0)
		ret = hot_start(&toggle->hot, run->topology, &seating);
	for (; ret == 0 && built < list->count; built++)
		toggle_case_build(&c[built], &list->spec[built], toggle, &bench[built],
				  &bench[list->count + built]);
	if (ret == 0)
		ret = bench_measure(run, bench, list->count, result);
	while (built > 0)
		toggle_case_free(&c[--built]);
	hot_stop(toggle->hot);
	toggle->hot = NULL;
	free(c);
	free(bench);
	list->count = 0;
	return ret;
}

int bench_toggle(const struct bench_run *run, struct bench_result *result)
{
	struct toggle_list *list = calloc(1, sizeof(*list));
	struct toggle toggle = { 0 };
	struct bench_case start = { .block = block_of_starts };
	int ret = list ? 0 : -ENOMEM;

	bench_row_name(&start.row, "pc_init", "start", "us");
	if (ret == 0)
		ret = bench_measure(run, &start, 1, result);
	if (ret == 0)
		ret = toggle_sweep_open(&toggle, run->topology);
	if (ret == 0) {
		toggle_list_singles(list);
		ret = measure_list(run, list, 1, &toggle, result);
	}
	toggle_sweep_close(&toggle);
	if (ret == 0) {
		toggle_list_crowds(list, run->seating.executors);
		if (list->count)
			ret = measure_list(run, list, run->seating.executors, &toggle, result);
	}
	if (ret == 0) {
		toggle_list_batches(list);
		ret = spare_open(&toggle.pool, TOGGLE_BATCH_MAX, TOGGLE_SPLIT);
		if (ret == 0)
			ret = measure_list(run, list, 1, &toggle, result);
		spare_close(&toggle.pool);
	}
	free(list);
	return ret;
}
