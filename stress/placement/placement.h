/* SPDX-License-Identifier: MIT */
/* Placements: where patcher and executors sit relative to each other. */
#ifndef STRESS_PLACEMENT_PLACEMENT_H
#define STRESS_PLACEMENT_PLACEMENT_H

#include <hwloc.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

/* placement_max - most executors that can be seated. 0: reason says in words what is missing. */
unsigned placement_max(hwloc_topology_t topology, enum placement p, char *reason, size_t size);

/*
 * placement_seat - choose CPUs for n executors, always the same in the same turn. Of the CPUs that
 * allow it each is the patcher's alone in its turn, the lowest in turn 0. If oversubscribed,
 * threads are dealt round robin, the patcher first. -ENOENT with a reason if n have no seats.
 */
int placement_seat(hwloc_topology_t topology, enum placement p, unsigned n, uint32_t turn,
		   struct seating *seating, char *reason, size_t size);

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
 * topology_here - this machine's, to measure on it. EXIT_PASS, or EXIT_MISSING after a complaint.
 */
int topology_here(hwloc_topology_t *topology);

/* machine_here - which machine this is. EXIT_PASS, or EXIT_MISSING after a complaint. */
int machine_here(struct identity *id);

/* cpus_here - the CPUs of that topology. */
void cpus_here(hwloc_topology_t topology, struct cpus *cpus);

/* --- place.c: where in physical memory a site lies ------------------------------------------ */

/*
 * Rates of tears differ from place to place, so a cell takes its pages out of a pool that lives as
 * long as the program that runs the cells: the same place is the same memory again.
 */
#define PLACE_POOL 64 /* pages */

/*
 * What a place chooses: by its lower half where the site lies, 0 leaves that to the cell; by its
 * upper half the turn in which placement_seat() chooses the patcher's CPU.
 */
#define PLACE_TURN_SHIFT 32

struct site_place {
	unsigned page[2];  /* of the pool: the first, and the second that a site may need */
	unsigned line;	   /* of its page that the site's boundary begins, from 1 to 63 */
	unsigned word;	   /* a number that is as free, for what is smaller than a line */
	uint64_t boundary; /* bytes: the largest power of two that divides the address of the page
			    * behind the boundary: an ordinary page's, or 32 KiB, 2 MiB or 1 GiB,
			    * where a walk of the page tables goes another way. Place 0: 4096 */
};

struct site_place site_place_of(uint64_t place);

/* place_open - make the pool, if need be, before cells are forked. 0 or a negative errno. */
int place_open(void);

/* place_pages - put 1 or 2 zeroed pages of the pool under this address. 0 or a negative errno. */
int place_pages(uint8_t *under, unsigned count, uint64_t place);

/* place_frame - number of the physical page, 0 where the kernel does not tell. */
uint64_t place_frame(const void *addr);

/* --- cpuid.c: what this CPU says of itself by CPUID, or another one by a dump taken there --- */

struct cpu_name {
	char vendor[16];		  /* printable, as the brand */
	unsigned family, model, stepping; /* as vendors tell them: with the extended parts */
	char brand[64];
	char codename[64]; /* "" unless libcpuid knows this very model */
};

/* cpuid_name_here - of the CPU that this runs on. 0 or -ENOTSUP. */
int cpuid_name_here(struct cpu_name *name);

/* cpuid_name_of - of a dump, by a calibration or cpuid_tool --save. -EINVAL: it is none. */
int cpuid_name_of(const char *dump, struct cpu_name *name);

/* cpu_name_to_json, cpu_name_print - what a dump tells: an object, or lines. */
json_t *cpu_name_to_json(const struct cpu_name *name);
void cpu_name_print(FILE *out, const struct cpu_name *name);

/* cpuid_keep - dump it as STORE.VENDOR-FAMILY-MODEL-STEPPING.cpuid, unless that is there. */
void cpuid_keep(const char *store);

#endif
