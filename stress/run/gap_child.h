/* SPDX-License-Identifier: MIT */
/*
 * The inside of a gap run's child. Private to stress.
 */
#ifndef STRESS_RUN_GAP_CHILD_H
#define STRESS_RUN_GAP_CHILD_H

#include <stdatomic.h>

#include "stress/run/gap.h"

/* Memory shared by parent and child; survives the child. */
struct gap_shared {
	_Atomic(int) stop;	  /* parent asks the child to end */
	_Atomic(uint64_t) stores; /* so far, stamped or not: a sign of life */
	_Atomic(int) finished;	  /* result is complete */
	struct gap_result result;
	struct gap_simulation simulation;
};

/* gap_child_run - run the cell with the seating in shared->result. */
void gap_child_run(const struct cell *cell, hwloc_topology_t topology, struct gap_shared *shared);

#endif
