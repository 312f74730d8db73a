/* SPDX-License-Identifier: MIT */
/*
 * The blocks of a process, on and off. Most of a program's blocks are never run: turned on once,
 * such a block stays on, which costs nothing. What was run is turned off behind each phase; what is
 * run between phases for the first time, soon after that (edges_ran()).
 */
#ifndef PROBES_PROFILE_EDGES_SET_H
#define PROBES_PROFILE_EDGES_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* set_start - there are none. @visit: in a process that runs; objects with blocks are pinned. */
void set_start(bool visit);

/* --- The thread of phases ---
 *
 * set_collect - blocks that came. -ENOMEM.
 * With the lock held: set_on - all are on, or none (negative errno). set_rest - those that were
 * ever run are off. set_sweep - those that were run since are.
 */
int set_collect(void);
int set_on(void);
void set_rest(void);
void set_sweep(void);

/* --- Any thread --- */

/* set_lock, set_unlock. set_clear - with the lock held: all are off. */
void set_lock(void);
void set_unlock(void);
void set_clear(void);

/* set_forked - in the child of a fork that was made with the lock held: there are none. */
void set_forked(void);

/* At the last look. */
size_t set_blocks(void);
uint64_t set_refused(void);

#endif
