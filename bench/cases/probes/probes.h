/* SPDX-License-Identifier: MIT */
/*
 * What a probe costs, off, on and being switched, beside what people use instead.
 *
 * Calls are calls of a function in a loop, timed PROBES_CALLS at a time; beside each, in the same
 * block, those of a function without anything: extra "over_empty" is the difference. The baseline
 * is the guard that is compiled in, if (flag) (*fn)(), off or on as the probe is; extra
 * "over_ratio" is over_empty by that of the baseline. The ratio is of whole passes, and so is
 * nearer to 1. Peers have the probe "keeps" for their baseline, and an empty function of their own.
 *
 *	off		no call; a marker: in a loop, against the same loop without
 *	counts		counted, no probe function
 *	keeps		and an empty function that is promised to keep the vectors
 *	any		an empty function of which nothing was promised
 *	vectors		a function that changes a vector register
 *
 * Switching: fi_activate() and fi_deactivate() of one probe that no thread runs, against
 * pc_activate_call() and pc_deactivate_call() of a call; its page open, or not.
 *
 * Many: a process of its own with an object of PROBES_MANY functions, which the C compiler makes of
 * many.S. "init" is what its discovery takes, "batch" PROBES_BATCH probes at once, both in
 * ticks per probe. The baseline of batch is one locked exchange at each of its sites.
 */
#ifndef BENCH_CASES_PROBES_PROBES_H
#define BENCH_CASES_PROBES_PROBES_H

#include "bench/method/method.h"

#define PROBES_CALLS   5000
#define PROBES_SAMPLES 20 /* in a block */
#define PROBES_PAIRS   100
#define PROBES_MANY    20000
#define PROBES_BATCH   16753 /* the call sites of the paper's sqlite */

/* "tmax bench --many-probes OBJECT": the process with the object. 0 or a negative errno. */
#define PROBES_KNOW "--many-probes"
int probes_know(const char *object);

/* probes_many - the rows of many. */
int probes_many(const struct bench_run *run, struct bench_result *result);

#endif
