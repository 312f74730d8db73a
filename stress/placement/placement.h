/* SPDX-License-Identifier: MIT */
/* Placements: where patcher and executors sit relative to each other. */
#ifndef STRESS_PLACEMENT_PLACEMENT_H
#define STRESS_PLACEMENT_PLACEMENT_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"

/* In order of distance: an executor has the closest relation that holds to the patcher. */
enum placement {
	PLACEMENT_SAME_CORE,	/* SMT sibling of the patcher */
	PLACEMENT_SAME_L2,	/* another core behind the same L2 */
	PLACEMENT_SAME_L3,	/* another L2 behind the same L3 */
	PLACEMENT_SAME_SOCKET,	/* another L3 in the same package */
	PLACEMENT_CROSS_SOCKET, /* another package */
	PLACEMENT_KIND_UP, /* hybrid: patcher on the weakest kind of core, executors on the best */
	PLACEMENT_KIND_DOWN,	  /* hybrid: patcher on the strongest, executors on the weakest */
	PLACEMENT_SPREAD,	  /* one executor on every other CPU, at any distance */
	PLACEMENT_OVERSUBSCRIBED, /* more threads than CPUs, all CPUs shared */
	PLACEMENT_COUNT
};

#define PLACEMENT_EXECUTORS_MAX 1024

/* One choice of CPUs (hwloc os_index) for a placement. */
struct seating {
	enum placement placement;
	unsigned patcher;
	unsigned executors;			    /* number of executors */
	unsigned executor[PLACEMENT_EXECUTORS_MAX]; /* CPU of each */
};

/* placement_name - "same-core", "cross-socket", ...; placement_parse - back, or -EINVAL. */
const char *placement_name(enum placement p);
int placement_parse(const char *name);

/*
 * topology_open - this machine, restricted to what this process may use; or that of
 * HWLOC_SYNTHETIC or HWLOC_XMLFILE: then *foreign is set and nothing may be pinned. 0 or a
 * negative errno.
 */
int topology_open(hwloc_topology_t *topology, int *foreign);

/*
 * placement_max - most executors that can be seated, one per CPU (oversubscribed: any number). 0:
 * reason says in words what the machine or the cpuset lacks.
 */
unsigned placement_max(hwloc_topology_t topology, enum placement p, char *reason, size_t size);

/*
 * placement_seat - choose CPUs for n executors, always the same; the lowest CPU that allows it is
 * the patcher's alone, but for oversubscribed, where threads are dealt round robin, the patcher
 * first. -ENOENT with a reason if n have no seats.
 */
int placement_seat(hwloc_topology_t topology, enum placement p, unsigned n, struct seating *seating,
		   char *reason, size_t size);

/* placement_sibling - a CPU of the first executor's core that is in no seat. -ENOENT: there is
 * none. */
int placement_sibling(hwloc_topology_t topology, const struct seating *seating);

/* seating_cpus - all of them, to be freed; NULL without memory. */
hwloc_bitmap_t seating_cpus(const struct seating *seating);

/* seating_is_same - do two seatings put the same threads on the same CPUs? */
bool seating_is_same(const struct seating *a, const struct seating *b);

/* pin_this_thread - bind the caller to one CPU with hwloc. 0 or negative errno. */
int pin_this_thread(hwloc_topology_t topology, unsigned cpu);

/*
 * topology_here - open the topology of this machine to measure on it. EXIT_PASS, or EXIT_MISSING
 * after a complaint: it cannot be read, or the environment has hwloc tell of another machine.
 */
int topology_here(hwloc_topology_t *topology);

/* machine_here - which machine this is. EXIT_PASS, or EXIT_MISSING after a complaint. */
int machine_here(struct identity *id);

/* cpus_here - the CPUs of that topology. */
void cpus_here(hwloc_topology_t topology, struct cpus *cpus);

/*
 * text_printable - copy a text of any bytes, such as a path, so that every form of output can hold
 * it: what is no UTF-8, and control characters, become '?'.
 */
void text_printable(char *to, size_t size, const char *text);

#endif
