/* SPDX-License-Identifier: MIT */
/*
 * Patchers: the caller and more pinned threads, that do something at the same time.
 */
#ifndef BENCH_METHOD_CREW_H
#define BENCH_METHOD_CREW_H

#include <hwloc.h>

struct crew;

/* What each does; member 0 is the caller. */
typedef void crew_fn(void *arg, unsigned member);

/*
 * crew_start - members that sleep: the caller, which pins itself, and one thread on each of
 * cpu[1] to cpu[members - 1]. 0 or a negative errno, also what pinning failed with. crew_stop -
 * NULL is fine.
 */
int crew_start(struct crew **crew, hwloc_topology_t topology, const unsigned *cpu,
	       unsigned members);
void crew_stop(struct crew *crew);

/*
 * crew_run - let the first @members, the caller among them, call fn. None begins before all are
 * awake, and when this returns, all have returned.
 */
void crew_run(struct crew *crew, unsigned members, crew_fn *fn, void *arg);

#endif
