/* SPDX-License-Identifier: MIT */
/*
 * What the runs of many machines say: which tear more than their kind, and what moved a kind.
 *
 * The unit is the hour of a machine: runs in one hour share its storms. Each hour has a ratio, the
 * logarithm of its tears divided by the number that the rates of its kind predict for its toggles.
 * Hours of one machine differ by chance and by time; machines differ besides. A mean of logarithms
 * hides a few hours that are very bad, so the hours that tore most are looked at, too.
 */
#ifndef FLEET_JUDGE_JUDGE_H
#define FLEET_JUDGE_JUDGE_H

#include "fleet/store/store.h"

#define JUDGE_HOURS 20 /* of a kind: with fewer it is unknown how much they differ */

struct judged {
	int64_t machine;
	char name[FLEET_NAME];
	unsigned hours;
	uint64_t toggles; /* by waits */
	uint64_t tears;
	double times;  /* as many tears as its kind, by the mean of its hours' logarithms */
	double p;      /* the chance of that or more on a machine like the others; 1: unknown */
	bool by_hours; /* not the mean is so strange, but single hours are */
	unsigned bad_hours; /* among the twentieth of all hours that tore most */
	double worst;	    /* times as many tears as usual in the worst of them */
};

/*
 * judge_machines - each machine of a kind, by the rest of it. p is not corrected for how many are
 * looked at. The most striking first. The caller frees. 0 or -ENOMEM.
 */
int judge_machines(const struct fleet_run *runs, size_t count, struct judged **machines,
		   size_t *machine_count);

struct moved {
	double times; /* as many tears in the second as in the first */
	double p;     /* the chance of such a difference, either way; 1: unknown */
	unsigned machines[2];
};

#define SUSPECT 1e-3 /* corrected chance below which a machine or a change is named */

/*
 * judge_move - did the rate change from some runs to others? The unit is the machine: the mean of
 * its hours' logarithms. Only what both have counted is compared. 0 or -ENOMEM.
 */
int judge_move(const struct fleet_run *before, size_t before_count, const struct fleet_run *after,
	       size_t after_count, struct moved *moved);

#endif
