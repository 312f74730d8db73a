/* SPDX-License-Identifier: MIT */
/*
 * What rates differ by: the wait, the place of the site, the time.
 *
 * Of a slice its rung's rate leads to expect so many tears, and it had so many. What
 * exceeds that goes together in slices that share a place, if places differ; in slices of one
 * time, if times do; chance goes together in none. So the covariance of the excess within
 * such groups, by that of what was expected, is the variance of the factor in squares of the
 * mean rate: chance has no part in it.
 */
#ifndef CALIBRATE_STATISTICS_FACTORS_H
#define CALIBRATE_STATISTICS_FACTORS_H

#include <stddef.h>

#include "results/journal/journal.h"

#define FACTORS_TIME 5 /* slices that follow each other are one time */

struct factors {
	double place; /* variance between places, in squares of the rate; below 0: none is seen */
	double time;
	double wait;	   /* the same between rungs, as they were visited */
	double worst_rate; /* of the worst tenth of the places, by the mean of all */
	unsigned places;
	size_t slices; /* that tell of it: on rungs that tore */
};

/* factors_of - from the slices of one ladder. 0; -ENODATA: too few tore; -ENOMEM. */
int factors_of(struct factors *factors, const struct cell_record *records, size_t count);

#endif
