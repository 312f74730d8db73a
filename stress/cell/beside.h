/* SPDX-License-Identifier: MIT */
/*
 * A thread that stores the back part of a change in the patcher's place, from a CPU near the
 * executors' (placement_beside()). One in a process; the end of the process ends it.
 */
#ifndef STRESS_CELL_BESIDE_H
#define STRESS_CELL_BESIDE_H

#include <hwloc.h>

#include "patchcore/word/word.h"

/* beside_start - on that CPU, which it keeps busy. 0 or a negative errno. */
int beside_start(hwloc_topology_t topology, unsigned cpu);

/* beside_store - by the patcher, after beside_start(): returns when the back part is stored. */
void beside_store(struct word *word);

#endif
