/* SPDX-License-Identifier: MIT */
/*
 * What rates differ by: the wait, the place of the site, the time.
 *
 * The rate of a slice's rung says how many tears to expect of it; the excess is what it had
 * beyond. If places differ, the excesses of slices that share a place go together; if times
 * differ, those of slices of one time; those of chance never do. So the covariance of the
 * excesses within such groups, divided by that of the expected tears, is the variance of the
 * factor in squares of the mean rate, without the part of chance.
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
