/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_EDGES_PHASES_H
#define PROBES_PROFILE_EDGES_PHASES_H

#include <stdbool.h>

#include "probes/profile/session/report.h"

struct phases {
	struct quality sum;
	struct moments moments; /* in seconds; calls are runs of blocks */
};

/*
 * phases_start - a thread that turns all blocks on for a time, once in a period, whose length it
 * draws from half to one and a half. @visit: in a process that runs, objects with blocks are pinned
 * (probes/agent/pin.h). Negative errno.
 */
int phases_start(double period, double on, bool visit);

/* phases_stop - the thread ends, and blocks are off. -ETIMEDOUT: it did not, in two seconds. */
int phases_stop(void);

/* phases_forked - in the child of a fork, in place of set_unlock(). */
void phases_forked(void);

/* phases_get - until phases_stop(). */
const struct phases *phases_get(void);

#endif
