/* SPDX-License-Identifier: MIT */
/*
 * tmax bench throughput: what executors lose while one patcher toggles the site that they
 * are hot on (paper, section 8.4, figures 11 to 13).
 *
 * A block is a slice of some milliseconds. The baseline, "untouched", is the same loop, run by
 * as many executors, half of a slice in either state, with no change made while anything is
 * counted; the patcher spins as it does between changes. So the ratio of calls per second is
 * the share that toggling leaves, also between a call and none, where half of the time there
 * is nothing to call.
 *
 * Executors run all the time, but count only while a gate is open: before it opens they are
 * hot on the loop already, and after it has closed the patcher goes on toggling until each
 * has seen it. So all that is counted ran while toggling went on. Each executor takes the
 * time from its first counted execution to its last by the clock of its own CPU; one that is
 * held up at the gate has fewer executions in less time, and is not mistaken for a slow one.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "bench/peers/ways.h"
#include "patchcore/machine/identity.h"
#include "patchcore/machine/wait.h"

#define FLOW_LINES 14

/* All executors together, from opening the gate to closing it. */
struct flow_sum {
	double seconds;	   /* of the patcher */
	uint64_t toggles;  /* changes made in that time */
	uint64_t executed; /* of the site */
	uint64_t calls[2]; /* by target */
	uint64_t ran[2];   /* by state: calls of either target, or calls and executions of none */
	/*
	 * ran, by the executors' own time. If the site is toggled both states share that time;
	 * untouched, each state has half of it: see flow_untouched().
	 */
	double per_second[2];
};

/* Put a site into state 0 or 1. 0 or a negative errno. */
typedef int flow_set(void *site, unsigned state);

/* --- The schedule ----------------------------------------------------------------------------- */

/*
 * When a patcher that toggles so often a second shall make its next change.
 *
 * The moments are laid down in advance, so a change that comes late does not shift those
 * behind it: they follow as fast as they can until the schedule is met again. Change k (from
 * 0) is due k + 1/2 periods after the start. So in a time of an even number of periods either
 * state has exactly half of it, and as many changes are made as the rate says.
 */
struct bench_pace {
	uint64_t start, end; /* ticks */
	double period;	     /* ticks; 0: as fast as possible, INFINITY: none is ever due */
	uint64_t done;
};

/* pace_from - so often a second (0, INFINITY: see above), by a clock of so many ticks in one. */
static struct bench_pace pace_from(uint64_t start, double rate, double seconds,
				   double ticks_per_second)
{
	return (struct bench_pace){
		.start = start,
		.end = start + (uint64_t)(seconds * ticks_per_second),
		.period = ticks_per_second / rate,
	};
}

/* pace_due - when the next change is; at the end, if none is due before. */
static uint64_t pace_due(const struct bench_pace *pace)
{
	double due = ((double)pace->done + 0.5) * pace->period;

	return due < (double)(pace->end - pace->start) ? pace->start + (uint64_t)due : pace->end;
}

/* pace_passed - is it that late? Also across a wrap. */
static bool pace_passed(uint64_t moment)
{
	return (int64_t)(__rdtsc() - moment) >= 0;
}

/*
 * pace_next - spin until the next change is due. True: make it now. False: the end.
 * No PAUSE, which would coarsen the schedule: see ticks_wait_since().
 */
static bool pace_next(struct bench_pace *pace)
{
	uint64_t due = pace_due(pace);

	while (!pace_passed(due))
		;
	if (pace_passed(pace->end))
		return false;
	pace->done++;
	return true;
}

/* --- Through the gate ------------------------------------------------------------------------ */

/*
 * Seconds. A multiple of 2 ms: then every rate makes an even number of changes in it, and
 * both states have the same time.
 */
static double slice = 0.010;

/* As in hot.c: the patcher meets executors at the site, and at the gate twice. */
#define OWN_LINES __attribute__((aligned(128)))

/* A patcher that waits longer may be in the way of the executor that it waits for. */
#define PATIENCE 1000000 /* ticks */

/* Of one executor, written by it alone; the patcher reads it once phase says that it is done. */
struct executor_slot {
	_Atomic(unsigned) phase; /* of the gate, as seen last */
	uint64_t begin, end;	 /* ticks of its own CPU */
	uint64_t calls[2];	 /* before, then the difference */
	uint64_t executed;
	uint64_t scrap[2]; /* calls that do not count */
} OWN_LINES;

struct flow {
	_Atomic(unsigned) gate; /* odd: open */
	const struct loop *loop;
	struct hot_work work;
	struct hot *hot;
	double ticks_per_second;
	unsigned executors;
	bool on_off;
	struct executor_slot slot[];
};

static void run_counted(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct flow *flow = work->arg;
	struct executor_slot *slot = &flow->slot[executor];
	unsigned phase = atomic_load_explicit(&flow->gate, memory_order_acquire);
	bool open = phase % 2;

	/* The gate has opened, or closed. */
	if (phase != atomic_load_explicit(&slot->phase, memory_order_relaxed)) {
		for (unsigned t = 0; t < 2; t++)
			slot->calls[t] = counts->calls[t] - (open ? 0 : slot->calls[t]);
		slot->executed = counts->executed - (open ? 0 : slot->executed);
		*(open ? &slot->begin : &slot->end) = ticks_now();
		atomic_store_explicit(&slot->phase, phase, memory_order_release);
	}
	flow->loop->run(HOT_ROUND, open ? counts->calls : slot->scrap);
	if (open)
		atomic_store_explicit(&counts->executed, counts->executed + HOT_ROUND,
				      memory_order_relaxed);
}

static int flow_open(struct flow **result, struct hot *hot, double ticks_per_second)
{
	size_t size = sizeof(struct flow) + hot_executors(hot) * sizeof(struct executor_slot);
	struct flow *flow = aligned_alloc(128, (size + 127) & ~(size_t)127);

	if (!flow)
		return -ENOMEM;
	memset(flow, 0, size);
	flow->hot = hot;
	flow->ticks_per_second = ticks_per_second;
	flow->work = (struct hot_work){ run_counted, flow };
	*result = flow;
	return 0;
}

static void flow_close(struct flow *flow)
{
	if (flow)
		hot_sleep(flow->hot);
	free(flow);
}

/* While all sleep: what they are to run. on_off: state 1 calls nothing, else target 1. */
static void flow_point(struct flow *flow, const struct loop *loop, unsigned executors, bool on_off)
{
	unsigned most = hot_executors(flow->hot);

	flow->loop = loop;
	flow->executors = executors < most ? executors : most;
	flow->on_off = on_off;
}

static bool all_have_seen(const struct flow *flow)
{
	unsigned phase = atomic_load_explicit(&flow->gate, memory_order_relaxed);

	for (unsigned i = 0; i < flow->executors; i++)
		if (atomic_load_explicit(&flow->slot[i].phase, memory_order_acquire) != phase)
			return false;
	return true;
}

static void await_all(const struct flow *flow)
{
	uint64_t patience = ticks_now() + PATIENCE;

	while (!all_have_seen(flow))
		if (pace_passed(patience))
			sched_yield();
}

/*
 * The site, now in state 0, so often a second (INFINITY: as fast as possible) for that long. It is
 * left in either state. 0 or what set failed with.
 */
static int flow_toggle(struct flow *flow, flow_set *set, void *site, double rate, double seconds,
		       struct flow_sum *sum)
{
	struct bench_pace pace;
	uint64_t patience;
	int ret = 0, late = 0;

	*sum = (struct flow_sum){ 0 };
	atomic_fetch_add_explicit(&flow->gate, 1, memory_order_release);
	await_all(flow);
	pace = pace_from(ticks_now(), rate, seconds, flow->ticks_per_second);
	while (ret == 0 && pace_next(&pace))
		ret = set(site, pace.done % 2);
	atomic_fetch_add_explicit(&flow->gate, 1, memory_order_release);
	sum->seconds = (double)(ticks_now() - pace.start) / flow->ticks_per_second;
	sum->toggles = pace.done;
	/*
	 * Until the last executor has seen that the gate is closed. One that gets nowhere because
	 * of the toggling would never see it: so at most for as long again.
	 */
	patience = pace.end + (pace.end - pace.start);
	pace.end = UINT64_MAX / 4 + pace.start;
	while (late == 0 && !all_have_seen(flow) && !pace_passed(patience))
		if (pace_passed(pace_due(&pace)))
			late = set(site, ++pace.done % 2);
	await_all(flow);
	for (unsigned i = 0; i < flow->executors; i++) {
		const struct executor_slot *slot = &flow->slot[i];
		double ran = (double)(slot->end - slot->begin) / flow->ticks_per_second;

		sum->executed += slot->executed;
		for (unsigned t = 0; t < 2; t++) {
			uint64_t here = t && flow->on_off ? slot->executed - slot->calls[0]
							  : slot->calls[t];

			sum->calls[t] += slot->calls[t];
			sum->ran[t] += here;
			sum->per_second[t] += (double)here / ran;
		}
	}
	return ret < 0 ? ret : late;
}

/*
 * Half of the time in state 0 and half in state 1, and no change while anything is counted. The
 * patcher spins as it does between changes.
 */
static int flow_untouched(struct flow *flow, flow_set *set, void *site, double seconds,
			  struct flow_sum *sum)
{
	int ret = 0;

	*sum = (struct flow_sum){ 0 };
	for (unsigned state = 0; state < 2 && ret == 0; state++) {
		struct flow_sum half = { 0 };

		ret = set(site, state);
		hot_cool(flow->hot);
		if (ret == 0)
			ret = flow_toggle(flow, set, site, 0, seconds / 2, &half);
		sum->seconds += half.seconds;
		sum->executed += half.executed;
		for (unsigned t = 0; t < 2; t++) {
			sum->calls[t] += half.calls[t];
			sum->ran[t] += half.ran[t];
			sum->per_second[t] += half.per_second[t] / 2;
		}
	}
	return ret;
}

/* Was every execution accounted for? 0 or -EILSEQ: old code and new were mixed. */
static int flow_check(const struct flow_sum *sum, bool on_off)
{
	if (on_off)
		return sum->calls[1] == 0 && sum->calls[0] <= sum->executed ? 0 : -EILSEQ;
	return sum->calls[0] + sum->calls[1] == sum->executed ? 0 : -EILSEQ;
}

/* The more frequent to the less; INFINITY: only one, NAN: neither. */
static double flow_balance(double a, double b)
{
	double more = fmax(a, b), less = fmin(a, b);

	return more > 0 ? more / less : NAN;
}

/* --- What the blocks tell ------------------------------------------------------------------- */

/* Of the blocks of a case: of all, and samples of all but the warm-up. */
struct flow_tally {
	uint64_t toggles, ran[2];
	bool warm;
	struct samples toggle_rate; /* changes per second */
	struct samples slant; /* less to more: it has a median also where a balance is infinite */
};

static void flow_tally_add(struct flow_tally *tally, const struct flow_sum *sum)
{
	double balance = flow_balance((double)sum->ran[0], (double)sum->ran[1]);

	if (tally->warm) {
		samples_add(&tally->toggle_rate, (double)sum->toggles / sum->seconds);
		samples_add(&tally->slant, 1 / balance);
	}
	tally->warm = true;
	tally->toggles += sum->toggles;
	for (unsigned t = 0; t < 2; t++)
		tally->ran[t] += sum->ran[t];
}

static void flow_tally_free(struct flow_tally *tally)
{
	samples_free(&tally->toggle_rate);
	samples_free(&tally->slant);
}

/* NAN: there is none. */
static double median_of(struct samples *s)
{
	/* All of it is one block. */
	s->blocks = 0;
	samples_end_block(s);
	return s->blocks && !s->lost ? samples_block_median(s, 0) : NAN;
}

/*
 * Adds changes made and their balance to the row; of a site that was not toggled only the first.
 *
 * What takes a balance away from 1: noise, which can only add to a figure that is never below 1; a
 * patcher that loses its CPU, so that the site keeps one state meanwhile; and as fast as possible,
 * that executors get to run a few times between two changes (docs/lab/cost-misses.md).
 */
static void flow_tally_extras(struct flow_tally *tally, struct bench_row *row)
{
	double toggles = median_of(&tally->toggle_rate);

	bench_row_extra(row, "toggles_per_s", toggles);
	if (toggles > 0)
		bench_row_extra(row, "balance", 1 / median_of(&tally->slant));
}

/* --- The benchmark ---------------------------------------------------------------------------- */

static const double toggle_rates[] = { 0, 1e3, 1e4, 1e5, 1e6, 1e7 };
#define RATES	(sizeof(toggle_rates) / sizeof(*toggle_rates))
#define FASTEST 1e7 /* of them: as fast as possible */

#define TWO    .target = LOOP_COUNT, .two_targets = true
#define ON_OFF .target = LOOP_COUNT

/* The first ones with all numbers of executors, the others with 1 and most. */
/* clang-format off */
static const struct site_spec flow_lines[FLOW_LINES] = {
	{ WAY_RETARGET, .has_split = true, TWO },
	{ WAY_CALL, .has_split = true, ON_OFF },
	{ WAY_RETARGET, 3, .has_split = true, TWO },
	{ WAY_CALL, 3, .has_split = true, ON_OFF },
	{ WAY_ALIGNED, .has_split = true, TWO },
	{ WAY_ALIGNED, .has_split = true, ON_OFF },
	{ WAY_STRADDLER, 3, .has_split = true, SITE_WAIT, TWO },
	{ WAY_STRADDLER, 3, .has_split = true, SITE_WAIT, ON_OFF },
	{ WAY_STRADDLER, 3, .has_split = true, SITE_MEMBARRIER, TWO },
	{ WAY_STRADDLER, 3, .has_split = true, SITE_MEMBARRIER, ON_OFF },
	{ WAY_STORE, TWO },
	{ WAY_STORE, ON_OFF },
	{ WAY_POINTER, TWO },
	{ WAY_FLAG, ON_OFF },
};
/* clang-format on */
#define SCALING_LINES 2

/* What a case works on; its baseline has one of its own. */
struct throughput_point {
	struct throughput *all;
	const struct site_spec *line;
	struct bench_site *site;
	unsigned executors;
	double rate; /* 0: untouched */
	struct flow_tally tally;
};

struct throughput {
	struct hot *hot;
	struct flow *flow;
	struct bench_site *site;  /* by line */
	struct bench_case *cases; /* the first `count` are measured, baselines grow from the end */
	struct throughput_point *points; /* one per case */
	size_t count, room, bases;
};

/* --- Blocks ----------------------------------------------------------------------------- */

static int begin_site(struct bench_case *c, char *why)
{
	const struct throughput_point *point = c->arg;

	flow_point(point->all->flow, &point->site->loop, point->executors,
		   !point->line->two_targets);
	return bench_site_begin(point->site, why);
}

static void end_site(struct bench_case *c)
{
	bench_site_end(((const struct throughput_point *)c->arg)->site);
}

static int block_of_site(struct bench_case *c, struct samples *s, char *why)
{
	struct throughput_point *point = c->arg;
	struct flow *flow = point->all->flow;
	struct flow_sum sum;
	/* A warm-up leaves it in either state. */
	int ret = bench_site_set(point->site, 0);

	if (ret == 0 && point->rate > 0)
		ret = flow_toggle(flow, bench_site_set, point->site,
				  point->rate == FASTEST ? INFINITY : point->rate, slice, &sum);
	else if (ret == 0)
		ret = flow_untouched(flow, bench_site_set, point->site, slice, &sum);
	if (ret < 0)
		return bench_say(why, "a change failed", ret);
	ret = flow_check(&sum, !point->line->two_targets);
	if (ret < 0) {
		snprintf(why, BENCH_WHY, "%llu executions, but %llu and %llu calls",
			 (unsigned long long)sum.executed, (unsigned long long)sum.calls[0],
			 (unsigned long long)sum.calls[1]);
		return ret;
	}
	/* Calls per second; between a call and none they are what state 0 does. */
	samples_add(&s[0], sum.per_second[0] + (point->line->two_targets ? sum.per_second[1] : 0));
	flow_tally_add(&point->tally, &sum);
	return 0;
}

static void sum_up(struct bench_case *c, struct bench_row *row)
{
	struct throughput_point *point = c->arg;

	flow_tally_extras(&point->tally, row);
	/* It was changed, and no block saw anything but one state: that is no figure. */
	if (point->tally.toggles > 1 && !(point->tally.ran[0] && point->tally.ran[1]))
		bench_row_skip(row, "it was toggled, but executors saw only one of its states");
}

/* --- Cases ------------------------------------------------------------------------------ */

static struct bench_case *put_case(struct throughput *all, size_t at,
				   const struct throughput_point *point)
{
	struct bench_case *c = &all->cases[at];

	all->points[at] = *point;
	*c = (struct bench_case){
		.begin = begin_site,
		.block = block_of_site,
		.end = end_site,
		.sum_up = sum_up,
		.arg = &all->points[at],
		.policy = point->line->policy,
		.hot = all->hot,
		.work = &all->flow->work,
		.executors = point->executors,
	};
	return c;
}

/* At every rate, and untouched. */
static void add_points(struct throughput *all, struct throughput_point point)
{
	struct bench_case *base = put_case(all, all->room - ++all->bases, &point);
	const struct site_spec *line = point.line;

	bench_row_name(&base->row, "untouched", "calls", "calls/s");
	for (size_t i = 0; i < RATES; i++) {
		struct bench_case *c;

		point.rate = toggle_rates[i];
		c = put_case(all, all->count++, &point);
		c->base = base;
		bench_row_name(&c->row, ways[line->way].name, "calls", "calls/s");
		bench_site_params(&c->row, line);
		bench_row_param_text(&c->row, "mode", line->two_targets ? "call-call" : "call-nop");
		bench_row_param(&c->row, "executors", point.executors);
		bench_row_param(&c->row, "rate", point.rate);
	}
}

/* 1, 2, 4 ..., most. 0: that was all. */
static unsigned next_executors(unsigned executors, unsigned most)
{
	if (executors == most)
		return 0;
	return executors && 2 * executors < most ? 2 * executors : executors ? most : 1;
}

static int measure_throughput(const struct bench_run *run, struct bench_result *result)
{
	struct throughput all = { .count = 0 };
	unsigned most = run->seating.executors;
	char why[BENCH_WHY];
	struct identity id;
	size_t series = 0;
	int ret = identity_read(&id);

	if (ret == 0)
		ret = hot_start(&all.hot, run->topology, &run->seating);
	if (ret == 0)
		ret = flow_open(&all.flow, all.hot, 1000.0 * (double)id.tsc_khz);
	/* No more than all lines with every number of executors. */
	for (unsigned n = next_executors(0, most); n; n = next_executors(n, most))
		series += FLOW_LINES;
	all.room = series * (RATES + 1);
	all.cases = calloc(all.room, sizeof(*all.cases));
	all.points = calloc(all.room, sizeof(*all.points));
	all.site = aligned_alloc(128, FLOW_LINES * sizeof(*all.site));
	if (ret == 0 && (!all.cases || !all.points || !all.site))
		ret = -ENOMEM;
	if (all.site)
		memset(all.site, 0, FLOW_LINES * sizeof(*all.site));
	for (unsigned i = 0; i < FLOW_LINES && ret == 0; i++) {
		struct throughput_point point = { .all = &all,
						  .line = &flow_lines[i],
						  .site = &all.site[i] };

		ret = bench_site_build(&all.site[i], &flow_lines[i], why);
		for (unsigned n = next_executors(0, most); n; n = next_executors(n, most)) {
			point.executors = n;
			if (i < SCALING_LINES || n == 1 || n == most)
				add_points(&all, point);
		}
	}
	if (ret == 0)
		ret = bench_measure(run, all.cases, all.count, result);
	for (size_t i = 0; all.points && i < all.room; i++)
		flow_tally_free(&all.points[i].tally);
	flow_close(all.flow);
	hot_stop(all.hot);
	for (unsigned i = 0; i < FLOW_LINES && all.site; i++)
		bench_site_free(&all.site[i]);
	free(all.site);
	free(all.cases);
	free(all.points);
	return ret;
}

const struct benchmark bench_throughput = {
	.name = "throughput",
	.about = "calls through a site toggled 0 to 10 million times a second",
	.title = "Calls while toggling (figures 11 to 13)",
	.caption = "The paper's figures 11 to 13: calls per second as a share of those through the "
		   "same site untouched, in turn, with 95 % intervals, against the toggles per "
		   "second that were got; on the far left none. Below, how often the more "
		   "frequent of both states was executed to the less frequent; 1 is balanced. "
		   "Dashed: peers. Last, where there are several, all calls per second by number "
		   "of executors.",
	.drawing = DRAWN_AS_RATES,
	.run = measure_throughput,
};
