/* SPDX-License-Identifier: MIT */
/*
 * Is a rate the same all the time, and what to publish if it is not.
 */
#ifndef CALIBRATE_DRIFT_H
#define CALIBRATE_DRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events of a stretch of time: tears among toggles, gaps among stores. */
struct drift_block {
	uint64_t events;
	uint64_t exposure;
};

#define DRIFT_P 0.01 /* a smaller probability of being the same rate is none */

/*
 * drift_p - probability that equal rates look at least as different as these.
 *
 * Pearson's chi-square against its limit where every block expects 5 events or
 * more; else against 9999 draws of the same number of events over the same
 * exposures (conditional multinomial; the same seed gives the same answer; ended early
 * once 50 draws were as uneven, Besag and Clifford 1991).
 * 1 if there is nothing to compare, 0 if there were events without exposure.
 */
double drift_p(const struct drift_block *blocks, size_t count, uint64_t seed);

struct drift_bound {
	double p;		  /* drift_p() of the blocks */
	bool steady;		  /* p is DRIFT_P or more */
	double upper;		  /* the bound to publish */
	size_t blocks;		  /* that it was taken over: 1 if steady */
	size_t worst;		  /* first of the blocks given that the worst one is made of */
	struct drift_block block; /* that one */
};

/*
 * drift_bound - upper bound of the rate that a user may meet.
 *
 * Steady: the bound of all together. Else the average is nobody's: that of the worst
 * block, at the confidence corrected for the number of blocks. Neighbours are merged
 * until each holds exposure_min, for a bound of a short block says only that it was
 * short; take the exposure at which no event at all would still be enough, 3 / p. A
 * remainder goes to the last one. The bound is for a stretch as bad as the worst
 * seen: a worse one that is still to come is in nobody's data.
 * -EINVAL without any exposure, -ENOMEM.
 */
int drift_bound(const struct drift_block *blocks, size_t count, uint64_t exposure_min,
		double confidence, uint64_t seed, struct drift_bound *bound);

#endif
