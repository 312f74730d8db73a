/* SPDX-License-Identifier: MIT */
/*
 * The blocks of one case of tmax bench throughput, and what they tell beside calls per
 * second.
 */
#ifndef BENCH_CASES_THROUGHPUT_FLOW_TALLY_H
#define BENCH_CASES_THROUGHPUT_FLOW_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/cases/throughput/flow.h"
#include "bench/method/result.h"

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

#endif
