/* SPDX-License-Identifier: MIT */
/*
 * How much a provoker raises the rate of tears.
 */
#ifndef CALIBRATE_REPORT_REPORT_PROVOKERS_H
#define CALIBRATE_REPORT_REPORT_PROVOKERS_H

#include <stddef.h>
#include <stdint.h>

#include "results/journal/journal.h"

/* One combination of provokers, rest and loop, across one crossing. */
struct provoked {
	enum crossing crossing;
	unsigned provokers;
	uint64_t rest;
	unsigned loop;
	uint64_t tears, toggles;
	/* Of these, what has cells without provokers at the same waits and seats beside it, */
	uint64_t matched_tears, matched_toggles;
	/* and those cells. */
	uint64_t none_tears, none_toggles;
};

/*
 * provoked_list - the combinations among the cells of stage "ladder" (in older journals
 * "provoke"), by crossing, in the order of the journal. The first cell without provokers has the
 * rest and the loop that all are compared with. An array to be freed, NULL
 * without memory.
 */
struct provoked *provoked_list(const struct journal_data *data, size_t *count);

/* A ratio of two rates with its two-sided limits; NAN, 0 and infinity where open. */
struct ratio {
	double value, low, high;
};

/*
 * provoked_ratio - the matched cells' rate by that of the cells without. Given
 * all tears, how many fell to the first is binomial: hence exact limits.
 */
struct ratio provoked_ratio(const struct provoked *p, double confidence);

#endif
