/* SPDX-License-Identifier: MIT */
/*
 * The ladder: the waits that are measured, from none up to what a membarrier costs.
 *
 * The rungs are the same on every machine and in every run, so that what runs have
 * counted adds up. Only how far up a run climbs differs.
 */
#ifndef CALIBRATE_PLAN_LADDER_H
#define CALIBRATE_PLAN_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stress/cell/cell.h"

#define LADDER_STRETCH 4 /* a wait is at least so many times the latency of the store before it */
#define LADDER_TOP     UINT64_C(102400) /* ticks; the longest wait that is ever tried */
#define LADDER_PAPER   UINT64_C(2400)	/* ticks; the paper's longest, */
#define LADDER_STEP    UINT64_C(200)	/* and the step between its waits here */
#define RUNGS_MAX      32

struct ladder {
	struct waits rung[RUNGS_MAX];
	unsigned count;	    /* of all */
	unsigned stretched; /* of them, first in order, rising; the paper's come behind */
};

/*
 * ladder_make - the rungs below a cost.
 *
 * Stretched rungs are 0, 100, 200, 400, ... ticks for each wait, as long as both together
 * are below `ticks` (what a change by membarrier costs; 0: unknown, up to LADDER_TOP), but at
 * least up to 3200. Behind them the paper's, 0 to 2400.
 */
void ladder_make(struct ladder *ladder, uint64_t ticks);

#endif
