/* SPDX-License-Identifier: MIT */
/* How far apart the TSCs of two CPUs are. */
#ifndef STRESS_WITNESS_TSC_OFFSET_H
#define STRESS_WITNESS_TSC_OFFSET_H

#include <hwloc.h>
#include <stdint.h>

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

/*
 * tsc_offset_measure - to the CPU `there`, in well under a millisecond; the caller is pinned to
 * `here`. Starts a thread and ends it. 0, -ETIMEDOUT after a second, or another negative errno.
 */
int tsc_offset_measure(hwloc_topology_t topology, unsigned here, unsigned there,
		       struct tsc_offset *offset);

#endif
