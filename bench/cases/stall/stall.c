/* SPDX-License-Identifier: MIT */
/*
 * What an executor loses while the site that it runs is being changed.
 *
 * Some 50,000 ticks after one change, never the same, comes the next. The sample of a change is
 * the longest pass that the executor made from just before it until the next. The baseline
 * "idle" is that of the same executor in windows just as long, one for one, in which nothing is
 * changed: so interrupts, and the reading of the clock, are in both. See stall_record.h for how
 * fine this is.
 *
 * In two parts, each a bench_measure() of its own: first everything with one executor, while no
 * other exists, for who stops the world or traces stops every thread there is, also those that
 * sleep; then what more executors lose.
 *
 * Of each row tell, in ticks:
 *
 *	typical		the longest pass, more than idle's: median
 *	worst		the longest of all passes, more than idle's median
 *	idle_worst	the same of the idle windows in turn: what was not the change's doing
 *	lost		by all passes of a window that took twice the usual and more: median,
 *			more than idle's
 *	pass		an untouched pass, with the reading of the clock
 *	traps		INT3 that executors met, per change
 */
#include "bench/cases/stall/stall.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/over.h"
#include "bench/method/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/trap/trap.h"
#include "stress/base/random.h"

#define REST   37500 /* ticks from a change to the next, at least */
#define JITTER 25000 /* ticks, up to */
#define CASES  32

struct plan {
	struct stall stall;
	struct stall_case site[CASES];
	struct bench_case cases[CASES], idle[CASES];
	size_t count;
};

/* --- Windows -------------------------------------------------------------------------------- */

typedef int change_fn(struct stall_case *c, uint64_t *took);

static int change(struct stall_case *c, uint64_t *took)
{
	uint64_t start = ticks_now();
	int ret = c->spec->change(c);

	*took = ticks_now() - start;
	c->changes++;
	c->off = !c->off;
	return ret;
}

/* For as long as the change took that the last block made in its place. */
static int change_nothing(struct stall_case *c, uint64_t *took)
{
	(void)c;
	ticks_wait(*took);
	return 0;
}

/*
 * The executor has seen the number before the change begins, and has ended the pass that it
 * was in when the change did.
 */
static int one_window(struct stall_case *c, unsigned number, change_fn *what)
{
	struct stall *stall = c->stall;
	int ret;

	stall_announce(&stall->record);
	hot_cool(stall->hot);
	ret = what(c, &c->took[number - 1]);
	ticks_wait(REST + random_next(&stall->state) % JITTER);
	hot_cool(stall->hot);
	return ret;
}

static void await_usual(struct stall_case *c)
{
	struct stall *stall = c->stall;

	for (unsigned i = 0; i < c->executors; i++)
		while (!atomic_load_explicit(&stall->record.log[i].usual, memory_order_acquire))
			hot_cool(stall->hot);
}

static unsigned windows_of(const struct stall_case *c)
{
	return c->spec->windows ? c->spec->windows : STALL_WINDOWS;
}

static void collect(struct stall_case *c, struct samples *s)
{
	for (unsigned i = 0; i < c->executors; i++)
		for (unsigned w = 1; w <= windows_of(c); w++) {
			const struct stall_window *window = &c->stall->record.log[i].window[w];

			samples_add(&s[0], (double)window->worst);
			samples_add(&s[1], (double)window->lost);
		}
	c->usual = atomic_load_explicit(&c->stall->record.log[0].usual, memory_order_relaxed);
}

static int run_windows(struct stall_case *c, struct samples *s, change_fn *what)
{
	struct stall *stall = c->stall;
	int ret = 0;

	stall_record_begin(&stall->record, c->loop.run, c->executors);
	hot_aim(stall->hot, &stall->work, c->executors);
	await_usual(c);
	for (unsigned w = 1; w <= windows_of(c) && ret == 0; w++)
		ret = one_window(c, w, what);
	hot_sleep(stall->hot);
	if (ret == 0)
		collect(c, s);
	return ret;
}

/* --- Cases ---------------------------------------------------------------------------------- */

static int failed(const struct stall_case *c, int ret, char *why)
{
	if (ret == -ENOTSUP && c->spec->protocol)
		bench_policy_refused(c->spec->policy, why);
	else
		snprintf(why, BENCH_WHY, "%s: %s", c->spec->name, strerror(-ret));
	return ret;
}

static void end(struct bench_case *b)
{
	const struct stall_case *c = b->arg;

	if (c->spec->protocol)
		pc_set_policy(PC_POLICY_AUTO);
	if (c->spec->close)
		c->spec->close();
}

static int begin(struct bench_case *b, char *why)
{
	struct stall_case *c = b->arg;
	int ret = c->ret;

	if (ret == 0 && c->spec->protocol)
		ret = pc_set_policy(c->spec->policy);
	if (ret == 0 && c->spec->open)
		ret = c->spec->open();
	return ret < 0 ? failed(c, ret, why) : 0;
}

static int block(struct bench_case *b, struct samples *s, char *why)
{
	struct stall_case *c = b->arg;
	uint64_t traps = trap_count();
	int ret = run_windows(c, s, change);

	c->traps += trap_count() - traps;
	return ret < 0 ? failed(c, ret, why) : 0;
}

static int idle_block(struct bench_case *b, struct samples *s, char *why)
{
	(void)why;
	return run_windows(b->arg, s, change_nothing);
}

static void sum_up(struct bench_case *b, struct bench_row *row)
{
	const struct stall_case *c = b->arg;
	struct bench_row idle = { 0 };

	if (samples_sum_up(&b->base_samples[0], NULL, 1, &idle) < 0)
		return;
	bench_row_extra(row, "typical", over_pairs(&b->samples[0], &b->base_samples[0]).median);
	bench_row_extra(row, "worst", row->most - idle.value.median);
	bench_row_extra(row, "idle_worst", idle.most - idle.value.median);
	bench_row_extra(row, "lost", over_pairs(&b->samples[1], &b->base_samples[1]).median);
	bench_row_extra(row, "pass", (double)c->usual);
	if (!c->spec->peer)
		bench_row_extra(row, "traps", (double)c->traps / (double)c->changes);
}

static void name_row(const struct stall_case *c, struct bench_row *row)
{
	const struct stall_spec *spec = c->spec;

	bench_row_name(row, spec->name, "stall", "ticks");
	row->peer = spec->peer;
	if (spec->loop.kind == LOOP_SITE)
		bench_row_param_text(row, "split", spec->loop.split ? "3|2" : "0");
	if (spec->protocol)
		bench_row_param_text(row, "policy",
				     spec->policy == PC_POLICY_WAIT ? "wait" : "membarrier");
	if (spec->batch)
		bench_row_param(row, "batch", spec->batch);
	bench_row_param(row, "executors", c->executors);
}

static void add_case(struct plan *p, const struct stall_spec *spec, unsigned executors)
{
	struct stall_case *c = &p->site[p->count];
	struct bench_case *b = &p->cases[p->count], *idle = &p->idle[p->count];

	p->count++;
	c->ret = stall_build(c, spec);
	c->stall = &p->stall;
	c->executors = executors;
	*idle = (struct bench_case){ .block = idle_block, .arg = c };
	bench_row_name(&idle->row, "idle", "stall", "ticks");
	*b = (struct bench_case){
		.begin = begin,
		.block = block,
		.end = end,
		.sum_up = sum_up,
		.arg = c,
		.base = idle,
		.histogram = true,
	};
	name_row(c, &b->row);
}

/* For so many executors. Only some are of interest with more than one. */
static void add_cases(struct plan *p, unsigned executors)
{
	size_t count;
	const struct stall_spec *spec = stall_specs(&count);

	for (size_t i = 0; i < count; i++)
		if (executors == 1 || spec[i].all)
			add_case(p, &spec[i], executors);
}

/* --- The parts ------------------------------------------------------------------------------ */

/* No other executors exist meanwhile, not even asleep. */
static int measure_with(const struct bench_run *run, struct plan *p, unsigned executors,
			struct bench_result *result)
{
	struct seating seating = run->seating;
	size_t first = p->count;
	int ret;

	seating.executors = executors;
	ret = hot_start(&p->stall.hot, run->topology, &seating);
	if (ret < 0)
		return ret;
	add_cases(p, executors);
	ret = bench_measure(run, &p->cases[first], p->count - first, result);
	hot_stop(p->stall.hot);
	p->stall.hot = NULL;
	return ret;
}

static int make_plan(struct plan *p, const struct bench_run *run)
{
	p->stall.work = (struct hot_work){ stall_run, &p->stall.record };
	p->stall.state = run->seed;
	p->stall.record.log = aligned_alloc(128, run->seating.executors * sizeof(struct stall_log));
	return p->stall.record.log ? 0 : -ENOMEM;
}

static void free_plan(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->site[i].ret == 0)
			stall_free(&p->site[i]);
	free(p->stall.record.log);
	free(p);
}

int bench_stall(const struct bench_run *run, struct bench_result *result)
{
	struct plan *p = aligned_alloc(128, (sizeof(*p) + 127) & ~(size_t)127);
	int ret;

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	ret = make_plan(p, run);
	if (ret == 0)
		ret = measure_with(run, p, 1, result);
	if (ret == 0 && run->seating.executors > 1)
		ret = measure_with(run, p, run->seating.executors, result);
	free_plan(p);
	return ret;
}
