/* SPDX-License-Identifier: MIT */
/*
 * The blocks of a process, on and off. Most of a program's blocks are never run: turned on once,
 * such a block stays on, which costs nothing. Blocks that were run are turned off behind each
 * phase; those that are run between phases for the first time, soon after that (edges_ran()).
 */
#ifndef PROBES_PROFILE_EDGES_SET_H
#define PROBES_PROFILE_EDGES_SET_H

#include <stdbool.h>

#include "probes/profile/model/sums.h"

/* set_start - there are none. @visit: in a process that runs; objects with blocks are pinned. */
void set_start(bool visit);

/*
 * The thread of phases calls:
 *
 * set_collect - blocks that came; the sum gets how many there are, and are refused. -ENOMEM.
 *
 * With the lock held: set_held. set_on - all are on, or none (negative errno). set_rest -
 * those that were ever run are off. set_sweep - those that were run since are.
 */
int set_collect(struct quality *sum);
bool set_held(void);
int set_on(void);
void set_rest(void);
void set_sweep(void);

/* set_lock_off - take the lock, and all are off. */
void set_lock(void);
void set_lock_off(void);
void set_unlock(void);

/* set_hold - 1: no phase begins from here until the -1 of the same thread. */
void set_hold(int by);

/* set_forked - in the child of a fork that was made with the lock held: there are none. */
void set_forked(void);

#endif
