/* SPDX-License-Identifier: MIT */
/* For tests of benchmarks: a short run, on the CPUs that there are. */
#ifndef BENCH_TESTS_BENCH_RUN_H
#define BENCH_TESTS_BENCH_RUN_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/method/method.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/scale.h"

/* Long enough for any machine: nothing here may tear. */
#define BENCH_RUN_WAIT 100000

static volatile sig_atomic_t bench_run_stop;

/* 1: on one CPU, which the executor shares with the patcher; 0: apart; or a negative errno. */
static inline int bench_run_seat(hwloc_topology_t topology, struct seating *seating)
{
	char why[256];

	if (placement_seat(topology, PLACEMENT_SPREAD, 1, 0, seating, why, sizeof(why)) == 0)
		return 0;
	if (placement_seat(topology, PLACEMENT_OVERSUBSCRIBED, 1, 0, seating, why, sizeof(why)) ==
	    0)
		return 1;
	fprintf(stderr, "%s\n", why);
	return -ENOTSUP;
}

/* 0 or a negative errno. */
static inline int bench_run_open(struct bench_run *run)
{
	int foreign, ret;

	*run = (struct bench_run){ .rounds = 2, .seed = 42, .stop = &bench_run_stop };
	policy_assume_waits(BENCH_RUN_WAIT, BENCH_RUN_WAIT, 4);
	ret = pc_init();
	if (ret == 0)
		ret = topology_open(&run->topology, &foreign);
	if (ret == 0)
		ret = bench_run_seat(run->topology, &run->seating);
	return ret < 0 ? ret : 0;
}

/* What a main() returns. */
static inline int bench_run_close(struct bench_run *run, int failed)
{
	hwloc_topology_destroy(run->topology);
	return failed;
}

/* A whole main(): all tests in a run that is open. */
#define BENCH_RUN_TESTS(run, tests, set_up, tear_down)                                             \
	(bench_run_open(run) < 0                                                                   \
		 ? 77                                                                              \
		 : bench_run_close(run, cmocka_run_group_tests(tests, set_up, tear_down)))

/* Waits as they are, and a CPU for each of both. 77: not here; or 0. */
static inline int bench_run_open_apart(struct bench_run *run)
{
	int foreign;

	if (topology_open(&run->topology, &foreign) < 0 || foreign)
		return 77;
	return bench_run_seat(run->topology, &run->seating) == 0 && pc_init() == 0 ? 0 : 77;
}

/* "name key=value ..." */
static inline char *bench_run_label(const struct bench_row *row, char *buf, size_t size)
{
	size_t length = (size_t)snprintf(buf, size, "%s", row->name);

	for (unsigned i = 0; i < row->params; i++) {
		const struct bench_param *p = &row->param[i];

		assert_true(length < size);
		if (p->text[0])
			length += (size_t)snprintf(buf + length, size - length, " %s=%s", p->key,
						   p->text);
		else
			length += (size_t)snprintf(buf + length, size - length, " %s=%.10g", p->key,
						   p->number);
	}
	return buf;
}

/* The row of that label and measure, NULL: there is none. There must not be two. */
static inline const struct bench_row *bench_run_row(const struct bench_result *result,
						    const char *label, const char *measure)
{
	const struct bench_row *found = NULL;
	char text[512];

	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];

		if (strcmp(bench_run_label(row, text, sizeof(text)), label) != 0 ||
		    strcmp(row->measure, measure) != 0)
			continue;
		assert_null(found);
		found = row;
	}
	return found;
}

/* Only membarrier may be missing: the kernel has it or not. */
static inline bool bench_run_skipped(const struct bench_row *row)
{
	const char *policy = bench_row_text(row, "policy");

	if (row->samples)
		return false;
	assert_true(policy && strcmp(policy, "membarrier") == 0);
	assert_true(row->why[0]);
	return true;
}

#endif
