/* SPDX-License-Identifier: MIT */
/*
 * What one change costs its patcher while an executor is hot on the site.
 */
#ifndef STRESS_BENCH_TOGGLE_H
#define STRESS_BENCH_TOGGLE_H

#include <hwloc.h>
#include <signal.h>
#include <stdint.h>

#include "stress/bench_op.h"

/* Ticks per operation. */
struct bench_figures {
	uint64_t samples; /* 0: skipped, see why */
	double median;
	double p99;
	/*
	 * The floor: one locked 8-byte exchange on the same line, measured in
	 * turn with the operation. No protocol can be cheaper than the one store
	 * that it must make visible.
	 */
	double floor_median;
	double floor_p99;
	char why[160];
};

struct bench_toggle {
	struct bench_figures op[BENCH_OPS];
	uint64_t first_wait; /* in use for policy wait */
	uint64_t second_wait;
	double start_median; /* microseconds of a pc_init() */
	unsigned patcher;    /* CPUs */
	unsigned executor;
};

/*
 * bench_toggle_run - measure, rounds blocks per operation in turn.
 *
 * Uses the library as any program does, so a policy that it refuses is skipped
 * with its reason. 0; -ENOENT with a reason: no two CPUs; -EINTR; other
 * negative errno.
 */
int bench_toggle_run(struct bench_toggle *bench, hwloc_topology_t topology, unsigned rounds,
		     const volatile sig_atomic_t *stop, char *reason, size_t size);

#endif
