/* SPDX-License-Identifier: MIT */
/*
 * Where the next slice goes.
 *
 * Half of the slices are dealt from a shuffled deck of all kinds of slices, so that every
 * cell stays alive and no wait has a time of its own. The other half goes where one more
 * decade of a bound is nearest.
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
	enum distance now[PLACEMENT_COUNT]; /* how far apart CPUs were when last seen */
	uint64_t random;		    /* state */
};

/* schedule_make - of all rungs and seats. 0 or -ENOMEM. */
int schedule_make(struct schedule *s, const struct plan *plan, const struct ladder *ladder,
		  uint64_t seed);

/* schedule_is_focused - does the next slice depend on the counts so far? */
static inline bool schedule_is_focused(const struct schedule *s)
{
	return s->turn % 2;
}

/*
 * schedule_next - the kind of the next slice. e: what is known so far, by estimate_so_far() from
 * the sums of this run alone.
 */
const struct sum *schedule_next(struct schedule *s, const struct estimate *e);

/*
 * schedule_focus - the kind that brings some level to the decade below what it and all cheaper
 * levels keep, in the least time; or, while none keeps what the plan requires, to that. NULL: none
 * can be brought nearer. Pure but for the choice among executors.
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
