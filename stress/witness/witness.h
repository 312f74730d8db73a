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
#include <unistd.h>

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
 * witness_end - fill in what happened since a mark, when a cell's threads have ended. Takes 2 ms.
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

/* --- tsc_offset.c: how far apart the TSCs of two CPUs are ----------------------------------- */

/* The other CPU's TSC minus this one's. The truth is within error of offset. */
struct tsc_offset {
	int64_t offset; /* ticks */
	uint64_t error; /* ticks */
};

#define TSC_OFFSET_UNKNOWN ((struct tsc_offset){ 0, UINT64_MAX })

/*
 * tsc_offset_take - learn from one round trip: asked and heard at these times here, answered at
 * that time there. Kept if it is closer than what was known: half of it is all it can be wrong by.
 */
void tsc_offset_take(struct tsc_offset *known, uint64_t asked, uint64_t answered, uint64_t heard);

/* tsc_offset_join - of two, before and after: the error covers both, and what they drifted. */
struct tsc_offset tsc_offset_join(const struct tsc_offset *before, const struct tsc_offset *after);

/* tsc_offset_measure - from `here`, where the caller is pinned. 0, or -ETIMEDOUT after a second. */
int tsc_offset_measure(hwloc_topology_t topology, unsigned here, unsigned there,
		       struct tsc_offset *offset);

/* --- noise.c: was a cell disturbed so much that it should be run again before it counts? ---- */

#define NOISE_REASON_MAX 160

/* What is judged. */
struct noise_case {
	const struct cell *cell;
	const struct seating *seating;
	const struct witness *witness;
	double seconds;	 /* that the witness covers */
	unsigned online; /* CPUs of the machine */
};

/* noise_judge - was it? reason says why, as far as it has room. What is unknown is no noise. */
bool noise_judge(const struct noise_case *noise, char *reason, size_t size);

/* noise_of_cell - the same of a cell's result, counting this machine's CPUs. */
#define noise_of_cell(cell, result, reason, size)                                                  \
	noise_judge(&(struct noise_case){ cell, &(result)->seating, &(result)->witness,            \
					  (result)->seconds,                                       \
					  (unsigned)sysconf(_SC_NPROCESSORS_ONLN) },               \
		    reason, size)

#endif
