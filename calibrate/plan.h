/* SPDX-License-Identifier: MIT */
/*
 * What a calibration will do: how long, where, and how strict.
 */
#ifndef CALIBRATE_PLAN_H
#define CALIBRATE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "stress/cell.h"
#include "stress/placement.h"

#define PLAN_SEATS_MAX 128 /* more than 1, 2, 4, ... 1024 of every placement */

/* One placement with one number of executors. */
struct seat {
	enum placement placement;
	unsigned executors;
};

/* A placement that is not tested, and why. */
struct gap {
	enum placement placement;
	char reason[160];
};

/* A provoker that this machine cannot offer, and why. */
struct unprovoked {
	enum provoker provoker;
	char reason[160];
};

struct plan {
	const char *name;
	double budget; /* seconds, over all stages */
	double proof;  /* share of it for each stage */
	double window;
	double bracket;
	double provoke;
	double fetch_gaps;     /* the campaign gets the rest */
	double promise;	       /* tears per toggle that a pass stays below */
	double target_p;       /* tears per toggle that the fit of the tail is asked for */
	uint64_t stretch;      /* of bracket and campaign, as the library will do it */
	uint64_t ceiling;      /* ticks; beyond, no wait is good enough */
	double slice;	       /* seconds of a campaign cell at the most */
	const uint64_t *waits; /* of the bracket, rising */
	unsigned wait_count;

	/* From the topology. */
	struct seat seat[PLAN_SEATS_MAX];
	unsigned seats;
	struct gap gap[PLACEMENT_COUNT];
	unsigned gaps;
	struct unprovoked unprovoked[PROVOKER_COUNT];
	unsigned unprovokeds;
};

/* plan_find - "quick", "default" or "thorough"; NULL if there is no such plan. */
const struct plan *plan_find(const char *name);

/*
 * plan_seat - fill in seats, gaps and what cannot be provoked at the first seat,
 * from what the topology offers: per
 * placement 1, 2, 4, ... executors up to all it can seat.
 */
void plan_seat(struct plan *plan, hwloc_topology_t topology);

#endif
