/* SPDX-License-Identifier: MIT */
/* The machine that this runs on, and texts about it. */
#ifndef STRESS_PLACEMENT_HERE_H
#define STRESS_PLACEMENT_HERE_H

#include <hwloc.h>
#include <stddef.h>

#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"

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
