/* SPDX-License-Identifier: MIT */
#ifndef FLEET_JUDGE_LADDER_OF_H
#define FLEET_JUDGE_LADDER_OF_H

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"
#include "fleet/store/store.h"

#define PRIOR_CONFIDENCE 0.9 /* that both parts of a prior's bound hold: each does with 0.95 */

/*
 * ladder_of_kind - what the hours of all its machines support together, as calibrate estimates it
 * for one: for the placements that occur, and no wider window than that kind of machine may have.
 * An hour of a machine is a run; by_machine: all that it has counted. 0 or -ENOMEM.
 */
int ladder_of_kind(const struct identity *of, const struct fleet_run *runs, size_t count,
		   struct estimate *e, bool by_machine);

/* What stands behind a number: machines that have toggled there, and their runs. */
struct behind_one {
	uint64_t machines, runs;
};

/* Of each level in the placement where there are fewest; of the window likewise. */
struct behind {
	struct behind_one level[RUNGS_MAX][CLAIMS], window;
};
void ladder_behind(const struct fleet_run *runs, size_t count, const struct estimate *e,
		   struct behind *behind);

/*
 * prior_of_kind - what may be said of a machine of the kind that has counted nothing itself.
 *
 * It is drawn like the others, so a bound with the machine as the unit holds for it, too. But a
 * share of all machines may be worse than all of these, and tear at every toggle: so
 * bound_missed() is added to each bound. 0 or -ENOMEM.
 */
int prior_of_kind(const struct identity *of, const struct fleet_run *runs, size_t count,
		  struct estimate *e, struct behind *behind);

/* One kind, and what it supports. */
struct kind_report {
	struct fleet *fleet;
	const struct fleet_kind *kinds, *kind;
	size_t kind_count;
	const struct fleet_run *runs;
	size_t count;
	struct estimate estimate;
	struct behind behind;
};

/*
 * each_kind - call tell for each kind, those of most machines first, with its runs and its ladder.
 * The sum of what it returns, or the first negative errno; -ENODATA: there is no run.
 */
int each_kind(struct fleet *fleet, int (*tell)(const struct kind_report *report, void *arg),
	      void *arg);

#endif
