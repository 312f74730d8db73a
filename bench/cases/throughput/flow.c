/* SPDX-License-Identifier: MIT */
#include "bench/cases/throughput/flow.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/pace.h"
#include "patchcore/machine/wait.h"

/* As in hot.c: the patcher meets executors at the site, and at the gate twice. */
#define OWN_LINES __attribute__((aligned(128)))

/* Whoever waits longer than that may be in the way of whom it waits for. */
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

/* The gate has opened, or closed. */
static void turn(struct slot *slot, const struct hot_counts *counts, unsigned phase)
{
	uint64_t executed = atomic_load_explicit(&counts->executed, memory_order_relaxed);

	for (unsigned t = 0; t < 2; t++)
		slot->calls[t] = counts->calls[t] - (phase % 2 ? 0 : slot->calls[t]);
	slot->executed = executed - (phase % 2 ? 0 : slot->executed);
	*(phase % 2 ? &slot->begin : &slot->end) = ticks_now();
	atomic_store_explicit(&slot->phase, phase, memory_order_release);
}

static void run_counted(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct flow *flow = work->arg;
	struct slot *slot = &flow->slot[executor];
	unsigned phase = atomic_load_explicit(&flow->gate, memory_order_acquire);

	if (phase != atomic_load_explicit(&slot->phase, memory_order_relaxed))
		turn(slot, counts, phase);
	flow->loop->run(HOT_ROUND, phase % 2 ? counts->calls : slot->scrap);
	if (phase % 2)
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

static void turn_gate(struct flow *flow)
{
	atomic_fetch_add_explicit(&flow->gate, 1, memory_order_release);
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

static int toggle_until_end(struct pace *pace, flow_set *set, void *site)
{
	int ret = 0;

	while (ret == 0 && pace_next(pace))
		ret = set(site, pace->done % 2);
	return ret;
}

/*
 * Until the last executor has seen that the gate is closed. One that gets nowhere because of
 * the toggling would never see it: so at most for as long again.
 */
static int toggle_until_seen(const struct flow *flow, struct pace *pace, flow_set *set, void *site)
{
	uint64_t patience = pace->end + (pace->end - pace->start);
	int ret = 0;

	pace->end = UINT64_MAX / 4 + pace->start;
	while (ret == 0 && !all_have_seen(flow) && !pace_passed(patience))
		if (pace_passed(pace_due(pace)))
			ret = set(site, ++pace->done % 2);
	await_all(flow);
	return ret;
}

static void sum_up(const struct flow *flow, struct flow_sum *sum)
{
	for (unsigned i = 0; i < flow->executors; i++) {
		const struct slot *slot = &flow->slot[i];
		double seconds = (double)(slot->end - slot->begin) / flow->ticks_per_second;
		uint64_t other = flow->on_off ? slot->executed - slot->calls[0] : slot->calls[1];

		sum->executed += slot->executed;
		for (unsigned t = 0; t < 2; t++)
			sum->calls[t] += slot->calls[t];
		sum->ran[0] += slot->calls[0];
		sum->ran[1] += other;
		sum->per_second[0] += (double)slot->calls[0] / seconds;
		sum->per_second[1] += (double)other / seconds;
	}
}

int flow_toggle(struct flow *flow, flow_set *set, void *site, double rate, double seconds,
		struct flow_sum *sum)
{
	struct pace pace;
	int ret, late;

	*sum = (struct flow_sum){ 0 };
	turn_gate(flow);
	await_all(flow);
	pace = pace_from(ticks_now(), rate, seconds, flow->ticks_per_second);
	ret = toggle_until_end(&pace, set, site);
	turn_gate(flow);
	sum->seconds = (double)(ticks_now() - pace.start) / flow->ticks_per_second;
	sum->toggles = pace.done;
	late = toggle_until_seen(flow, &pace, set, site);
	sum_up(flow, sum);
	return ret < 0 ? ret : late;
}

static void add_half(struct flow_sum *sum, const struct flow_sum *half)
{
	sum->seconds += half->seconds;
	sum->executed += half->executed;
	for (unsigned t = 0; t < 2; t++) {
		sum->calls[t] += half->calls[t];
		sum->ran[t] += half->ran[t];
		sum->per_second[t] += half->per_second[t] / 2;
	}
}

int flow_untouched(struct flow *flow, flow_set *set, void *site, double seconds,
		   struct flow_sum *sum)
{
	int ret = 0;

	*sum = (struct flow_sum){ 0 };
	for (unsigned state = 0; state < 2 && ret == 0; state++) {
		struct flow_sum half;

		ret = set(site, state);
		hot_cool(flow->hot);
		if (ret == 0)
			ret = flow_toggle(flow, set, site, 0, seconds / 2, &half);
		if (ret == 0)
			add_half(sum, &half);
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
