/* SPDX-License-Identifier: MIT */
/*
 * Tears against the wait that they speak against, as points of a figure.
 */
#ifndef CALIBRATE_REPORT_REPORT_RATE_H
#define CALIBRATE_REPORT_REPORT_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/journal/journal.h"

struct rate_point {
	enum crossing crossing;
	unsigned which; /* 0: old front against the first wait, 1: old back against the second */
	bool provoked;
	uint64_t wait;
	uint64_t tears; /* one that could not be told apart is in both */
	uint64_t toggles;
};

/*
 * rate_points - from the cells of the wait protocol and the counting oracle,
 * sorted; cells of the same crossing, wait and provocation are added up. The
 * tears of a cell that hung or was killed count, its toggles do not.
 * Returns an array to be freed, NULL without memory.
 */
struct rate_point *rate_points(const struct journal_data *data, size_t *count);

#endif
