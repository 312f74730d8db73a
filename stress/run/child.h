/* SPDX-License-Identifier: MIT */
/* The inside of a cell's child: patcher and executors. Private to stress. */
#ifndef STRESS_RUN_CHILD_H
#define STRESS_RUN_CHILD_H

#include <hwloc.h>
#include <stdatomic.h>

#include "stress/cell/cell.h"
#include "stress/cell/code.h"
#include "stress/run/isolate.h"
#include "stress/run/provoker.h"

/* One executor's memory, on cache lines of its own. */
struct executor_counts {
	struct code_slots slots[CELL_INSIDE]; /* of each site; only crossing inside has three */
	_Atomic(uint64_t) executions;	      /* of finished rounds */
} __attribute__((aligned(128)));

/* Memory shared by parent and child; survives the child. */
struct shared {
	const struct cell *cell; /* the caller's, as these two */
	const struct run_options *options;
	struct leash leash;		   /* its life is the toggles done so far */
	struct cell_result result;	   /* complete when the child has finished */
	uint64_t provoked[PROVOKER_COUNT]; /* see provokers_done() */
	uint64_t torn_twice; /* toggles that the executors' counts have more than once */
	uint64_t stirred;    /* extra sites that were rewritten */
	struct code code;    /* so that the parent can read the slots of a dead child */
	struct executor_counts executor[];
};

/*
 * child_sum - what result->exposed and torn are, by the executors' counters and the
 * result's toggles. Also of a child that died.
 */
void child_sum(const struct shared *shared, struct cell_result *result);

/* child_run - in the child: run the cell of a struct shared, with the seating in its result. */
void child_run(void *shared);

#endif
