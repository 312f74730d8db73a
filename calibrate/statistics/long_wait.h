/* SPDX-License-Identifier: MIT */
/*
 * Waits for changes that no patcher stands waiting for, longer than any rung of the ladder.
 *
 * At such waits no toggle tears within the life of a calibration, so that toggles say nothing. The
 * gap oracle sees every wait at once, and millions of stores a second. What it counts is another
 * thing, though: gaps per store, not tears per toggle. So:
 *
 *   1. gaps at least as long as each wait are counted, per store. Of the long waits those count
 *	that are three quarters as long: a gap is seen up to two rests too short.
 *   2. at the paper's constant waits both oracles have counts. The factor is the largest ratio of
 *	tears per toggle to gaps per store, at any wait at which gaps were seen.
 *   3. the bound of a long wait is the bound of its gaps, times the factor.
 */
#ifndef CALIBRATE_STATISTICS_LONG_WAIT_H
#define CALIBRATE_STATISTICS_LONG_WAIT_H

#include "calibrate/statistics/estimate.h"
#include "stress/run/gap.h"

#define LONG_GAPS 30 /* as many make a wait one by which the oracles are compared */

extern const uint64_t long_waits[LONG_WAITS]; /* ticks, rising */

/* long_add_gaps - what one run of the gap oracle has counted. 0 or -ENOMEM. */
int long_add_gaps(struct sums *sums, const struct cell *cell, const struct gap_result *result);

/* long_estimate - for estimate_make(), when the levels are made. */
void long_estimate(struct estimate *e, const struct sums *runs, const struct plan *plan);

#endif
