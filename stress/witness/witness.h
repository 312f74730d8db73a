/* SPDX-License-Identifier: MIT */
/*
 * Filling in struct witness: what else went on while a cell ran.
 *
 * The parent clears it, marks the CPUs' counters before and after, and counts
 * the runnable tasks when its child has ended. In the child every thread adds
 * its own switches and faults, and the patcher its clock rate and steps.
 */
#ifndef STRESS_WITNESS_WITNESS_H
#define STRESS_WITNESS_WITNESS_H

#include <hwloc.h>
#include <stdio.h>
#include <sys/resource.h>

#include "stress/cell/cell.h"

/* longest_step of a TSC that went backwards. */
#define WITNESS_BACKWARDS ((uint64_t)INT64_MAX)
/* Ticks: an interrupt takes less; what takes more is told. */
#define WITNESS_STEP_ALLOWED 10000

/* Counters since boot; each may be WITNESS_UNKNOWN. */
struct witness_mark {
	uint64_t interrupts;
	uint64_t steal; /* clock ticks */
	uint64_t throttles;
	uint64_t smis;
};

/* witness_distance - of a whole cell. witness_distance_after - at its end, if that is known. */
enum distance witness_distance(const struct witness *witness);
enum distance witness_distance_after(const struct witness *witness);

/* witness_clear - no switches, faults and steps yet; all else unknown. */
void witness_clear(struct witness *witness);

/* witness_mark - read the counters of the CPUs of a seating. */
void witness_mark(const struct seating *seating, struct witness_mark *mark);

/*
 * witness_end - fill in what happened since a mark, so many seconds ago, and the tasks that are
 * runnable and stay so, the caller included: the cell's threads have ended. Takes 2 ms.
 */
void witness_end(struct witness *witness, const struct seating *seating,
		 const struct witness_mark *before, double seconds);

/* witness_add_usage - switches and faults since then; who: as for getrusage(2). */
void witness_add_usage(struct witness *witness, int who, const struct rusage *begin);

/* witness_threads_lost - they died before they could tell: unknown. */
void witness_threads_lost(struct witness *witness);

/* witness_step - a step between two readings of the TSC; negative ones are backwards. */
void witness_step(struct witness *witness, uint64_t step);

/*
 * witness_before / _after - clock rate, and before also the TSC offset, by the patcher, pinned and
 * with no executor or provoker running: they would be measured with it. Each takes about 2 ms.
 * witness_apart_after - how well the offset is known then: that tells how far apart the CPUs are.
 */
void witness_before(struct witness *witness, hwloc_topology_t topology,
		    const struct seating *seating);
void witness_after(struct witness *witness);
void witness_apart_after(struct witness *witness, hwloc_topology_t topology,
			 const struct seating *seating);

#endif
