/* SPDX-License-Identifier: MIT */
/* What a calibration will do: how long, where, and how strict. */
#ifndef CALIBRATE_PLAN_PLAN_H
#define CALIBRATE_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "stress/cell/cell.h"
#include "stress/placement/placement.h"

#define REQUIRE_P      1e-4 /* tears per toggle that a pass stays below, unless the user says so */
#define PLAN_SEATS_MAX 128  /* more than 1, 2, 4, ... 1024 of every placement */

/* One placement with one number of executors. */
struct seat {
	enum placement placement;
	unsigned executors;
};

/* A placement that is not tested, or a provoker that this machine cannot offer, and why. */
struct untested {
	bool is_provoker;
	int which; /* enum placement or enum provoker */
	char reason[160];
};

struct plan {
	const char *name;
	double budget;	   /* seconds, over all */
	double controls;   /* share of it, for the broken protocols */
	double window;	   /* for stores inside a line */
	double fetch_gaps; /* for the gap oracle */
	bool only;	   /* all of the time for one of these two, none for the ladder */
	double slice;	   /* seconds */
	bool idle;	   /* end as soon as other programs want the machine */
	double require_p;  /* tears per toggle that a pass stays below */
	unsigned widest;   /* window on machines of this kind, identity_widest(); 0: not known */

	/* From the topology. */
	struct seat seat[PLAN_SEATS_MAX];
	unsigned seats;
	struct untested untested[PLACEMENT_COUNT + PROVOKER_COUNT];
	unsigned untesteds;
	unsigned unseateds; /* of them: the placements, first in order */
};

/* plan_find - "quick", "default" or "thorough"; NULL if there is no such plan. */
const struct plan *plan_find(const char *name);

/*
 * plan_seat - fill in what the topology seats, what it does not, and what cannot be provoked at the
 * first seat. Each placement is seated with 1, 2, 4, ... executors, up to all that fit.
 */
void plan_seat(struct plan *plan, hwloc_topology_t topology);

/* untested_name - of the placement or the provoker. */
const char *untested_name(const struct untested *untested);

#endif
