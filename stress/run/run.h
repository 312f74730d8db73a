/* SPDX-License-Identifier: MIT */
/* A cell in a child of its own: a crash, a hang or a kill costs that cell and nothing else. */
#ifndef STRESS_RUN_RUN_H
#define STRESS_RUN_RUN_H

#include <hwloc.h>
#include <signal.h>

#include "stress/cell/cell.h"

struct run_options {
	hwloc_topology_t topology;
	const volatile sig_atomic_t *stop; /* non-zero: end early; may be NULL */
	/* Called once a second or a few times with what is known so far; may be NULL. */
	void (*progress)(void *arg, const struct cell_result *so_far);
	void *arg;
	/* Without a toggle, 0: 20. Ten times that while it takes no CPU. */
	double hang_seconds;
};

/*
 * cell_run - run one cell and wait for it; result->outcome tells what became of the child, counts
 * up to that are kept. The caller has one thread only (it forks). No child is left behind, also if
 * the caller dies.
 *
 * 0, or a negative errno if no child could be started. -ENOENT: the placement cannot seat the
 * executors (result->seating is empty).
 */
int cell_run(const struct cell *cell, const struct run_options *options,
	     struct cell_result *result);

#endif
