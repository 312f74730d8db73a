/* SPDX-License-Identifier: MIT */
/*
 * The cells of a verification, and running them.
 */
#ifndef CALIBRATE_VERIFY_VERIFY_RUN_H
#define CALIBRATE_VERIFY_VERIFY_RUN_H

#include "calibrate/session/session.h"
#include "calibrate/verify/verify.h"

/*
 * verify_plan - what to run: the controls, the window as wide as the config has
 * it, and the config's worst cells at its waits. Without any (count is 0) line and
 * page at all splits take their place, and v->fallback is set. What the topology
 * cannot seat is marked as skipped, with the reason.
 */
void verify_plan(struct verify *v, hwloc_topology_t topology, const struct cell *worst,
		 unsigned count);

/*
 * verify_look - run cells on low rungs for so long, line and page in turn, each at a place and with
 * a seed of its own: what later looks are compared with. Stage "look".
 */
void verify_look(struct verify *v, struct session *session, double seconds);

/* verify_run - run them within the session's budget, but for the last `reserve` seconds. Sets
 * v->cut_short if it must end early. */
void verify_run(struct verify *v, struct session *session, double reserve);

#endif
