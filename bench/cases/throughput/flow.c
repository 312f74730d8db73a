/* SPDX-License-Identifier: MIT */
#include "bench/cases/throughput/flow.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/samples.h"
#include "patchcore/machine/wait.h"

/* As in hot.c: the patcher meets executors at the site, and at the gate twice. */
#define OWN_LINES __attribute__((aligned(128)))

/* A patcher that waits longer may be in the way of the executor that it waits for. */
#define PATIENCE 1000000 /* ticks */

/* Of one executor, written by it alone; the patcher reads it once phase says that it is done. */
struct slot {
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
	struct slot slot[];
};

static void run_counted(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct flow *flow = work->arg;
	struct slot *slot = &flow->slot[executor];
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

int flow_open(struct flow **result, struct hot *hot, double ticks_per_second)
{
	size_t size = sizeof(struct flow) + hot_executors(hot) * sizeof(struct slot);
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

void flow_close(struct flow *flow)
{
	if (flow)
		flow_sleep(flow);
	free(flow);
}

void flow_aim(struct flow *flow, const struct loop *loop, unsigned executors, bool on_off)
{
	unsigned most = hot_executors(flow->hot);

	flow_sleep(flow);
	flow->loop = loop;
	flow->executors = executors < most ? executors : most;
	flow->on_off = on_off;
	hot_aim(flow->hot, &flow->work, flow->executors);
}

void flow_sleep(struct flow *flow)
{
	hot_sleep(flow->hot);
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

int flow_toggle(struct flow *flow, flow_set *set, void *site, double rate, double seconds,
		struct flow_sum *sum)
{
	struct pace pace;
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
		const struct slot *slot = &flow->slot[i];
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

int flow_untouched(struct flow *flow, flow_set *set, void *site, double seconds,
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

int flow_check(const struct flow_sum *sum, bool on_off)
{
	if (on_off)
		return sum->calls[1] == 0 && sum->calls[0] <= sum->executed ? 0 : -EILSEQ;
	return sum->calls[0] + sum->calls[1] == sum->executed ? 0 : -EILSEQ;
}

double flow_balance(double a, double b)
{
	double more = fmax(a, b), less = fmin(a, b);

	return more > 0 ? more / less : NAN;
}

/* --- What the blocks tell ------------------------------------------------------------------- */

#define WARM_UP 1 /* blocks */

int flow_tally_add(struct flow_tally *tally, const struct flow_sum *sum)
{
	if (tally->count == tally->room) {
		size_t room = tally->room ? 2 * tally->room : 16;
		struct flow_sum *more = reallocarray(tally->sum, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		tally->sum = more;
		tally->room = room;
	}
	tally->sum[tally->count++] = *sum;
	return 0;
}

void flow_tally_free(struct flow_tally *tally)
{
	free(tally->sum);
	*tally = (struct flow_tally){ 0 };
}

/* A number of a block. Those of time need the rate of either state untouched. */
enum figure {
	TOGGLES,
	SLANT, /* less to more: a median can be taken of that also where a balance is infinite */
	SLANT_TIME,
	KEPT,
	FIRST,
	SECOND,
};

/* And the least of all blocks, if it is asked for. */
static double median_of(const struct flow_tally *tally, enum figure figure, const double *rate,
			double *least)
{
	struct samples all = { 0 };
	double median = NAN;

	for (size_t i = WARM_UP; i < tally->count; i++) {
		const struct flow_sum *sum = &tally->sum[i];
		const double *second = sum->per_second;
		double part[2] = { rate ? second[0] / rate[0] : 0, rate ? second[1] / rate[1] : 0 };
		const double value[] = {
			[TOGGLES] = (double)sum->toggles / sum->seconds,
			[SLANT] = 1 / flow_balance((double)sum->ran[0], (double)sum->ran[1]),
			[SLANT_TIME] = 1 / flow_balance(part[0], part[1]),
			[KEPT] = (part[0] + part[1]) / 2,
			[FIRST] = second[0],
			[SECOND] = second[1],
		};

		samples_add(&all, value[figure]);
		if (least)
			*least = fmin(*least, value[figure]);
	}
	samples_end_block(&all);
	if (all.blocks && !all.lost)
		median = samples_block_median(&all, 0);
	samples_free(&all);
	return median;
}

void flow_tally_extras(const struct flow_tally *tally, const struct flow_tally *untouched,
		       struct bench_row *row)
{
	double toggles = median_of(tally, TOGGLES, NULL, NULL), rate[2], least = NAN;

	bench_row_extra(row, "toggles_per_s", toggles);
	if (!(toggles > 0))
		return;
	bench_row_extra(row, "balance", 1 / median_of(tally, SLANT, NULL, &least));
	bench_row_extra(row, "balance_worst", 1 / least);
	if (!untouched)
		return;
	rate[0] = median_of(untouched, FIRST, NULL, NULL);
	rate[1] = median_of(untouched, SECOND, NULL, NULL);
	bench_row_extra(row, "balance_time", 1 / median_of(tally, SLANT_TIME, rate, NULL));
	bench_row_extra(row, "kept", median_of(tally, KEPT, rate, NULL));
}

bool flow_tally_stuck(const struct flow_tally *tally)
{
	uint64_t toggles = 0, ran[2] = { 0, 0 };

	for (size_t i = 0; i < tally->count; i++) {
		toggles += tally->sum[i].toggles;
		ran[0] += tally->sum[i].ran[0];
		ran[1] += tally->sum[i].ran[1];
	}
	return toggles > 1 && (!ran[0] || !ran[1]);
}
