/* SPDX-License-Identifier: MIT */
/*
 * What bounds would be after more time, spent on them alone at the pace of this machine, if nothing
 * tears and no gap comes meanwhile. That is an expectation, and no evidence.
 */
#ifndef CALIBRATE_STATISTICS_AHEAD_H
#define CALIBRATE_STATISTICS_AHEAD_H

#include "calibrate/statistics/estimate.h"

/* ahead_name - of a time: "quarter", "night", "month". */
const char *ahead_name(unsigned time);

/* ahead_estimate - for estimate_make(), when all else is made. */
void ahead_estimate(struct estimate *e, const struct sums *runs);

#endif
