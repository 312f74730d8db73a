/* SPDX-License-Identifier: MIT */
/*
 * What goes through a site while it is toggled at some rate.
 *
 * Executors run all the time, but count only while a gate is open: before it opens they are
 * hot on the loop already, and after it has closed the patcher goes on toggling until each
 * has seen it. So all that is counted ran while toggling went on. Each executor takes the
 * time from its first counted execution to its last by the clock of its own CPU; one that is
 * held up at the gate has fewer executions in less time, and is not mistaken for a slow one.
 */
#ifndef BENCH_CASES_THROUGHPUT_FLOW_H
#define BENCH_CASES_THROUGHPUT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/method/hot.h"

/* All executors together, from opening the gate to closing it. */
struct flow_sum {
	double seconds;	   /* of the patcher */
	uint64_t toggles;  /* changes made in that time */
	uint64_t executed; /* of the site */
	uint64_t calls[2]; /* by target */
	uint64_t ran[2];   /* by state: calls of either target, or calls and executions of none */
	/*
	 * ran, by the executors' own time. Of a site that is toggled that is shared by both
	 * states; untouched, each state had half of it, see flow_untouched().
	 */
	double per_second[2];
};

/* Put a site into state 0 or 1. 0 or a negative errno. */
typedef int flow_set(void *site, unsigned state);

struct flow;

/* flow_open - for these executors; borrows hot. 0 or -ENOMEM. flow_close - NULL is fine. */
int flow_open(struct flow **flow, struct hot *hot, double ticks_per_second);
void flow_close(struct flow *flow);

/*
 * flow_aim - so many executors run the loop, uncounted; until flow_sleep().
 * @on_off: state 0 calls target 0, state 1 nothing; else states call targets 0 and 1
 */
void flow_aim(struct flow *flow, const struct loop *loop, unsigned executors, bool on_off);
void flow_sleep(struct flow *flow);

/*
 * flow_toggle - toggle the site, now in state 0, so often a second (INFINITY: as fast as
 * possible) for that long. It is left in either state. Give it an even number of changes.
 *
 * flow_untouched - half of the time in state 0 and half in state 1, and no change while
 * anything is counted. The patcher spins as it does between changes.
 *
 * 0 or what set failed with.
 */
int flow_toggle(struct flow *flow, flow_set *set, void *site, double rate, double seconds,
		struct flow_sum *sum);
int flow_untouched(struct flow *flow, flow_set *set, void *site, double seconds,
		   struct flow_sum *sum);

/* flow_check - was every execution accounted for? 0 or -EILSEQ: old code and new were mixed. */
int flow_check(const struct flow_sum *sum, bool on_off);

/* flow_balance - the more frequent to the less; INFINITY: only one, NAN: neither. */
double flow_balance(double a, double b);

#endif
