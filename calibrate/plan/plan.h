/* SPDX-License-Identifier: MIT */
/* What a calibration will do: which waits, how long, where, and how strict. */
#ifndef CALIBRATE_PLAN_PLAN_H
#define CALIBRATE_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stress/cell/cell.h"
#include "stress/placement/placement.h"

#define REQUIRE_P      1e-4 /* tears per toggle that a pass stays below, unless the user says so */
#define PLAN_SEATS_MAX 128  /* more than 1, 2, 4, ... 1024 of every placement */

/*
 * The ladder: the waits that are measured, from none up to what a membarrier costs. The rungs are
 * the same on every machine and in every run, so that what runs have counted adds up. Only how far
 * up a run climbs differs.
 */
#define LADDER_STRETCH 4 /* a wait is at least so many times the latency of the store before it */
#define LADDER_TOP     UINT64_C(102400) /* ticks; the longest wait that is ever tried */
#define LADDER_PAPER   UINT64_C(2400)	/* ticks; the paper's longest, */
#define LADDER_STEP    UINT64_C(200)	/* and the step between its waits here */
#define RUNGS_MAX      32

struct ladder {
	struct waits rung[RUNGS_MAX];
	unsigned count;	    /* of all */
	unsigned stretched; /* of them, first in order, rising; the paper's come behind, */
	unsigned rested;    /* and behind all: those for sites at rest */
};

/*
 * ladder_make - the rungs below a cost.
 *
 * Stretched rungs are 0, 100, 200, 400, ... ticks for each wait, as long as both together
 * are below `ticks` (what a change by membarrier costs; 0: unknown, up to LADDER_TOP), but at
 * least up to 3200. Behind them the paper's, 0 to 2400, and 0, 100, 400 and 1600 once more, for sites
 * at rest: these tear so little that fewer rungs, with more toggles each, say more.
 */
void ladder_make(struct ladder *ladder, uint64_t ticks);

/* --- The plan of a run ------------------------------------------------------------------------ */

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
	double require_p;  /* tears per toggle that a pass stays below */
	unsigned widest;   /* window on machines of this kind, struct kind; 0: not known */

	/* From the topology. */
	struct seat seat[PLAN_SEATS_MAX];
	unsigned seats;
	struct untested untested[PLACEMENT_COUNT + PROVOKER_COUNT];
	unsigned untesteds;
	unsigned untested_placements; /* of them: the placements, first in order */
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
