/* SPDX-License-Identifier: MIT */
/*
 * Where the next slice goes.
 *
 * Half of the slices are dealt from a shuffled deck of all kinds of slices, so that every
 * cell stays alive and no wait has a time of its own. The other half goes by what was seen:
 *
 *   1. until hot sites keep what the plan requires: to the claim, line or page, that keeps less
 *   2. until sites at rest keep it: to those
 *   3. then to hot sites for one more decade, and one in three to sites at rest
 *
 * Each goes to the level that needs the fewest slices, at the placement that lacks most. It is left
 * alone and has the largest number of executors there, so that it counts for each part of a claim.
 *
 * But where CPUs are now near each other and now far apart, those that are so rarely would be left
 * to chance: a wait that is tried often might hardly be tried then. So while they are, that half
 * goes to where that state is furthest behind its share of the time. No wait is tried more often
 * near, or far, than the time was so: bounds of the mean of both stay as they are.
 */
#ifndef CALIBRATE_SESSION_SCHEDULE_H
#define CALIBRATE_SESSION_SCHEDULE_H

#include "calibrate/plan/plan.h"
#include "calibrate/statistics/estimate.h"
#include "calibrate/statistics/sums.h"

struct schedule {
	struct sum *kind; /* of slices: their counts are not used */
	unsigned kinds;
	unsigned *deck;
	unsigned dealt;			    /* of the deck; all of it: it is shuffled anew */
	uint64_t turn;			    /* slices so far */
	bool focused;			    /* the last one depended on the counts */
	enum distance now[PLACEMENT_COUNT]; /* how far apart CPUs were when last seen */
	uint64_t random;		    /* state */
};

/* schedule_make - of all rungs and seats. 0 or -ENOMEM. */
int schedule_make(struct schedule *s, const struct plan *plan, const struct ladder *ladder,
		  uint64_t seed);

/*
 * schedule_next - the kind of the next slice. e: what is known so far, by estimate_so_far() from
 * the sums of this run alone.
 */
const struct sum *schedule_next(struct schedule *s, const struct estimate *e);

/*
 * schedule_focus - the kind that brings a claim to the decade below what some level keeps for it,
 * or, while none keeps what the plan requires, to that, in the fewest slices. Where tears were seen
 * it may take twice as many at a longer wait, which storms to come harm less. NULL: none can be
 * brought nearer. Pure.
 */
const struct sum *schedule_focus(struct schedule *s, const struct estimate *e);

/*
 * schedule_rare - the kind that lacks most slices of a state that some placement's CPUs are in now,
 * and are in less than half of the time. NULL: none is, or none lacks any. Pure as above.
 */
const struct sum *schedule_rare(struct schedule *s, const struct estimate *e);

/* schedule_saw - slices of that placement leave its CPUs so far apart. */
void schedule_saw(struct schedule *s, enum placement placement, enum distance distance);

void schedule_free(struct schedule *s);

#endif
