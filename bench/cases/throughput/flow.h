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

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <x86intrin.h>

#include "bench/method/hot.h"
#include "bench/method/method.h"
#include "bench/method/result.h"
#include "bench/ways/ways.h"

/* What is toggled. */
struct flow_line {
	enum way_name way;
	unsigned split;
	bool on_off; /* else between two targets */
	enum pc_policy policy;
};

#define FLOW_LINES 14
extern const struct flow_line flow_lines[FLOW_LINES];

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

/* --- The schedule ---------------------------------------------------------------------------- */

/*
 * When a patcher that toggles so often a second shall make its next change.
 *
 * The moments are laid down in advance, so a change that comes late does not shift those
 * behind it: they follow as fast as they can until the schedule is met again. Change k (from
 * 0) is due k + 1/2 periods after the start. So in a time of an even number of periods either
 * state has exactly half of it, and as many changes are made as the rate says.
 */
struct pace {
	uint64_t start, end; /* ticks */
	double period;	     /* ticks; 0: as fast as possible, INFINITY: none is ever due */
	uint64_t done;
};

/* pace_from - so often a second (0, INFINITY: see above), by a clock of so many ticks in one. */
static inline struct pace pace_from(uint64_t start, double rate, double seconds,
				    double ticks_per_second)
{
	return (struct pace){
		.start = start,
		.end = start + (uint64_t)(seconds * ticks_per_second),
		.period = ticks_per_second / rate,
	};
}

/* pace_due - when the next change is; at the end, if none is due before. */
static inline uint64_t pace_due(const struct pace *pace)
{
	double due = ((double)pace->done + 0.5) * pace->period;

	return due < (double)(pace->end - pace->start) ? pace->start + (uint64_t)due : pace->end;
}

/* pace_passed - is it that late? Also across a wrap. */
static inline bool pace_passed(uint64_t moment)
{
	return (int64_t)(__rdtsc() - moment) >= 0;
}

/*
 * pace_next - spin until the next change is due. True: make it now. False: the end.
 * No PAUSE, which would coarsen the schedule: see ticks_wait_since().
 */
static inline bool pace_next(struct pace *pace)
{
	uint64_t due = pace_due(pace);

	while (!pace_passed(due))
		;
	if (pace_passed(pace->end))
		return false;
	pace->done++;
	return true;
}

/* --- What the blocks of one case tell beside calls per second -------------------------------- */

struct flow_tally {
	struct flow_sum *sum;
	size_t count, room;
};

/* flow_tally_add - one more block; the first is a warm-up and tells nothing. 0 or -ENOMEM. */
int flow_tally_add(struct flow_tally *tally, const struct flow_sum *sum);
void flow_tally_free(struct flow_tally *tally);

/*
 * flow_tally_extras - add to the row
 *
 *   toggles_per_s  made, median of the blocks
 *   balance	    executions in the state more often executed to those in the other, median of
 *		    the blocks; balance_worst: the most. INFINITY: one of the two was never seen
 *
 * and, where the two states do not take the same time to execute (@untouched, of the same
 * site, is not NULL), two figures in which each execution counts as the time that it takes
 * untouched:
 *
 *   balance_time   as balance. NOP against call, balance tells mostly that a NOP is faster
 *   kept	    share of their time that executors had left for the site
 *
 * Of a site that was not toggled only the first.
 *
 * What takes a balance away from 1. Noise, which can only add to a figure that
 * is never below 1. A patcher that loses its CPU: the site keeps one state meanwhile; then
 * toggles_per_s falls short of the rate, too. As fast as possible, executors get to run a
 * few times between two changes; between two targets both states came out within a tenth
 * of each other, between call and NOP by a factor of 1.5 to 2.3 of time. It is not that one
 * direction costs the patcher more: for the library's calls and aligned sites the two cost
 * the same within some percent. Presumably executors get going sooner in one of the states.
 * Executors of a straddler that is changed faster than its syncs take stand at the INT3 for
 * nearly all of the time, and which code the few executions are of is chance.
 */
void flow_tally_extras(const struct flow_tally *tally, const struct flow_tally *untouched,
		       struct bench_row *row);

/* flow_tally_stuck - the site was changed, and no block saw anything but one state? */
bool flow_tally_stuck(const struct flow_tally *tally);

/*
 * Seconds. A multiple of 2 ms: then every rate makes an even number of changes in it, and
 * both states have the same time.
 */
#define THROUGHPUT_SLICE 0.010

/* throughput_measure - what bench_throughput() does, with slices of another length. 0 or a negative
 * errno. */
int throughput_measure(const struct bench_run *run, double slice, struct bench_result *result);

#endif
