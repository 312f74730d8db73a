/* SPDX-License-Identifier: MIT */
/*
 * Provokers: what is done on purpose to pull the two fetches of a straddler apart. tmax-stress(1)
 * says what each does; chain and sites are in the generated code, see code.h.
 *
 * The patcher flushes when it has the site already and reads neither line any more, never between
 * two stores. The threads of shootdown and bandwidth share the patcher's CPU where every other
 * is a seat, never an executor's: there they would stop the fetching that they are to disturb. They
 * then stop the patcher, which makes its waits longer, not shorter.
 *
 * All of it lives in the caller's process or dies with the calling thread.
 */
#ifndef STRESS_RUN_PROVOKER_H
#define STRESS_RUN_PROVOKER_H

#include <hwloc.h>
#include <stdbool.h>

#include "stress/cell/cell.h"

struct provokers;

/* provokers_possible - has this machine what they take? 0, or -ENOTSUP with the reason in words. */
int provokers_possible(unsigned set, hwloc_topology_t topology, const struct seating *seating,
		       char *reason, size_t size);

/*
 * provokers_start - start those of the cell, for the site at this address. By the patcher, before
 * there are executors: it forks. 0, or a negative errno, -ENOTSUP if one is not possible here,
 * with nothing left running.
 */
int provokers_start(struct provokers **provokers, const struct cell *cell,
		    hwloc_topology_t topology, const struct seating *seating, const uint8_t *site);

/* provokers_stop - end all of it and free. NULL is fine. */
void provokers_stop(struct provokers *provokers);

/* provoke_toggle - by the patcher, before the first store of each toggle. */
void provoke_toggle(struct provokers *provokers);

/* provoke_round - by each executor, now and then, some thousand executions apart. */
void provoke_round(struct provokers *provokers);

/*
 * provokers_done - by one of them so far: flushes, changes of the page tables, bytes that were
 * streamed, processes that time-slice executors, rounds of the sibling, bursts of wide work.
 */
uint64_t provokers_done(const struct provokers *provokers, enum provoker which);

#endif
