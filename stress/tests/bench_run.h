/* SPDX-License-Identifier: MIT */
/*
 * For tests of benchmarks: a short run, on whatever CPUs there are.
 */
#ifndef STRESS_TESTS_BENCH_RUN_H
#define STRESS_TESTS_BENCH_RUN_H

#include <stdlib.h>
#include <string.h>

#include "patchcore/library.h"
#include "patchcore/patchcore.h"
#include "stress/bench/method.h"

/* Long enough for any machine: nothing here may tear. */
#define BENCH_RUN_WAIT 100000

static volatile sig_atomic_t bench_run_stop;

static inline double bench_run_scale(void)
{
	const char *text = getenv("TMAX_STRESS_SCALE");
	double value = text ? atof(text) : 1;

	return value > 0 ? value : 1;
}

/* 0 or a negative errno. On one CPU the executor shares it with the patcher. */
static inline int bench_run_open(struct bench_run *run)
{
	char reason[256];
	int foreign, ret;

	*run = (struct bench_run){ .rounds = 2, .seed = 42, .stop = &bench_run_stop };
	library_assume_waits(BENCH_RUN_WAIT, BENCH_RUN_WAIT, 4);
	ret = pc_init();
	if (ret == 0)
		ret = topology_open(&run->topology, &foreign);
	if (ret < 0)
		return ret;
	ret = placement_seat(run->topology, PLACEMENT_SPREAD, 1, &run->seating, reason,
			     sizeof(reason));
	if (ret < 0)
		ret = placement_seat(run->topology, PLACEMENT_OVERSUBSCRIBED, 1, &run->seating,
				     reason, sizeof(reason));
	return ret;
}

static inline void bench_run_close(struct bench_run *run)
{
	hwloc_topology_destroy(run->topology);
}

/* The row of that label and measure, NULL: there is none. */
static inline const struct bench_row *bench_run_row(const struct bench_result *result,
						    const char *label, const char *measure)
{
	char text[512];

	for (unsigned i = 0; i < result->rows; i++)
		if (strcmp(bench_row_label(&result->row[i], text, sizeof(text)), label) == 0 &&
		    strcmp(result->row[i].measure, measure) == 0)
			return &result->row[i];
	return NULL;
}

#endif
