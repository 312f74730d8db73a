/* SPDX-License-Identifier: MIT */
/*
 * What a probe costs, off, on and being switched, beside what people use instead. tmax(1) has the
 * rows and their extras.
 *
 * Calls are timed PROBES_CALLS at a time; beside each, in the same block, those of a function
 * without anything. Peers have an empty function of their own. Switching is of one probe that no
 * thread runs. Many: a process of its own with an object of PROBES_MANY functions, which the C
 * compiler makes of many.S.
 */
#ifndef BENCH_CASES_PROBES_PROBES_H
#define BENCH_CASES_PROBES_PROBES_H

#include "bench/method/method.h"

#define PROBES_CALLS   5000
#define PROBES_SAMPLES 20 /* in a block */
#define PROBES_PAIRS   100
#define PROBES_MANY    20000
#define PROBES_BATCH   16753 /* the call sites of the paper's sqlite */

/* probes_many - the rows of many. */
int probes_many(const struct bench_run *run, struct bench_result *result);

/* probes_branches - those of static branches and static calls, and of what is used instead. */
int probes_branches(const struct bench_run *run, struct bench_result *result);

/* For tests: rounds of loops, and what they have added up: 1 where a branch was taken, for a call 1
 * or 2 by which function it was. */
enum probes_kind {
	PROBES_FLAG,
	PROBES_BRANCH,
	PROBES_HAND,
	PROBES_DIRECT,
	PROBES_STATIC,
	PROBES_POINTER,
	PROBES_IFUNC,
	PROBES_KINDS,
};
extern uint64_t probes_rounds[PROBES_KINDS], probes_sums[PROBES_KINDS];

#endif
