/* SPDX-License-Identifier: MIT */
/* Executors: pinned threads that run what they are aimed at, and sleep between. */
#ifndef BENCH_METHOD_HOT_H
#define BENCH_METHOD_HOT_H

#include <hwloc.h>
#include <stdint.h>

#include "bench/method/loop.h"
#include "stress/placement/placement.h"

#define HOT_ROUND 200  /* executions of a loop between two looks at what it is aimed at */
#define HOT_REST  2000 /* ticks between changes, see hot_cool() */

/* Of one executor, written by it alone: read with hot_count(). */
struct hot_counts {
	uint64_t calls[2];	    /* by target; the loops count there themselves */
	_Atomic(uint64_t) executed; /* of the site, or of what else the work is */
	_Atomic(uint64_t) rounds;
};

/*
 * What executors do. run is called over and over, and shall return within some
 * microseconds; it adds what it did to counts->executed.
 */
struct hot_work {
	void (*run)(const struct hot_work *work, unsigned executor, struct hot_counts *counts);
	void *arg;
};

/* hot_loop - run the struct loop that is arg, HOT_ROUND times at once. */
void hot_loop(const struct hot_work *work, unsigned executor, struct hot_counts *counts);

struct hot;

/*
 * hot_start - one thread per executor of the seating, asleep, pinned. 0 or a negative errno,
 * also what pinning failed with. hot_start() to hot_stop(): one thread calls all of this.
 */
int hot_start(struct hot **hot, hwloc_topology_t topology, const struct seating *seating);

/* hot_stop - end them. NULL is fine. */
void hot_stop(struct hot *hot);

unsigned hot_executors(const struct hot *hot);

/*
 * hot_aim - let the first @executors run work (borrowed until hot_sleep()), and return when
 * each has. hot_sleep - and return when all sleep: no executor runs the work any more.
 */
void hot_aim(struct hot *hot, const struct hot_work *work, unsigned executors);
void hot_sleep(struct hot *hot);

/*
 * hot_cool - between two changes: HOT_REST ticks at least, and until each executor under way
 * has begun and ended a whole round since. One that lost its CPU would make every figure
 * look good. Without executors only the ticks.
 */
void hot_cool(struct hot *hot);

/* Sums over all executors, since hot_start(). Exact while they sleep. */
struct hot_sum {
	uint64_t calls[2];
	uint64_t executed;
};
struct hot_sum hot_count(const struct hot *hot);

#endif
