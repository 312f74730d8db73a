/* SPDX-License-Identifier: MIT */
/*
 * Provokers: what is done on purpose to pull the two fetches of a straddler apart.
 *
 *   cold-back, cold-front  the patcher flushes the line behind (before) the
 *              boundary just before each toggle's first store, when it has the site
 *              already and reads neither line any more; never between two stores
 *   shootdown  a thread changes the protection of a page and drops another one,
 *              every 30 us: each change flushes the TLBs of the CPUs that run us
 *   bandwidth  a thread writes through a buffer larger than the last cache
 *   load       for each CPU that has executors, a process of its own, which takes
 *              the CPU from them in bursts of 200 us
 *   sibling    a thread that keeps the SMT sibling of the first executor's CPU busy
 *   wide       after each round, every executor runs a burst of the widest
 *              multiply-adds that the CPU has
 *   evict      before each toggle the patcher, and after each round every executor, reads
 *              lines that take the place of the site's in the second-level cache; it has to
 *              know where pages are, which the kernel tells only root
 *   chain, sites  are in the generated code: see code.h
 *
 * The threads of shootdown and bandwidth run on a CPU that is in no seat, if the
 * topology has one. Otherwise they share the patcher's, never an executor's:
 * there they would stop the fetching that they are to disturb. They then stop
 * the patcher, which makes its waits longer, not shorter; but bandwidth is
 * hardly more than cold caches then, for it does not run while the patcher does.
 *
 * All of it lives in the caller's process or dies with the calling thread.
 */
#ifndef STRESS_PROVOKE_PROVOKER_H
#define STRESS_PROVOKE_PROVOKER_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "stress/cell/cell.h"

struct provokers;

/* What was done so far. */
struct provoker_counts {
	uint64_t flushes;    /* of lines of the site */
	uint64_t shootdowns; /* changes of the page tables */
	uint64_t streamed;   /* bytes */
	uint64_t sibling;    /* rounds of work */
	uint64_t wide;	     /* bursts, of all executors */
	uint64_t evicted;    /* lines that were read in place of the site's */
	unsigned processes;  /* that time-slice executors */
	unsigned cpu;	     /* where the threads run */
};

/*
 * provoker_possible - has this machine what it takes? 0, or -ENOTSUP with the
 * reason in words.
 */
int provoker_possible(enum provoker p, hwloc_topology_t topology, const struct seating *seating,
		      char *reason, size_t size);

/* provokers_possible - the same for all of a cell's. */
int provokers_possible(const struct cell *cell, hwloc_topology_t topology,
		       const struct seating *seating, char *reason, size_t size);

/*
 * provokers_start - start those of the cell, for the site at this address.
 *
 * To be called by the patcher, before there are executors: it forks. 0,
 * -ENOTSUP if one of them is not possible here, or another negative errno; then
 * nothing is left running.
 */
int provokers_start(struct provokers **provokers, const struct cell *cell,
		    hwloc_topology_t topology, const struct seating *seating, const uint8_t *site);

/* provokers_stop - end all of it and free. NULL is fine. */
void provokers_stop(struct provokers *provokers);

/* provoke_toggle - by the patcher, before the first store of each toggle. */
void provoke_toggle(struct provokers *provokers);

/* provoke_round - by each executor, now and then, some thousand executions apart. */
void provoke_round(struct provokers *provokers);

void provokers_count(const struct provokers *provokers, struct provoker_counts *counts);

/* Lines that compete with the two of a site for a set of the second-level cache. */
#define EVICT_LINES 48 /* more than twice as many as any has ways */

struct evict {
	uint8_t *memory;
	const uint8_t *line[2][EVICT_LINES]; /* for the front, for the back */
	unsigned lines[2];
};

/* evict_possible - does the kernel tell this process physical pages? */
bool evict_possible(void);

/*
 * evict_start - find such memory for a site that is in place. 0, or a negative errno; then too,
 * evict_stop() frees what there is. evict_lines - read all of it; how many lines that were.
 */
int evict_start(struct evict *e, const uint8_t *front, const uint8_t *back);
void evict_stop(struct evict *e);
uint64_t evict_lines(const struct evict *e);

#endif
