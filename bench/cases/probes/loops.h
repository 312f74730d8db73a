/* SPDX-License-Identifier: MIT */
/*
 * Loops with something in them, beside loops without.
 */
#ifndef BENCH_CASES_PROBES_LOOPS_H
#define BENCH_CASES_PROBES_LOOPS_H

#include "bench/method/method.h"

#ifdef __clang__
#define PROBES_ALONE noinline
#else
#define PROBES_ALONE noipa
#endif
#define PROBES_PLAIN __attribute__((PROBES_ALONE, aligned(64), patchable_function_entry(0)))

/* probes_samples - PROBES_SAMPLES of PROBES_CALLS rounds each, in ticks per round. */
void probes_samples(void (*loop)(uint64_t times), struct samples *s);

/* probes_sum_up - the extras, where the second samples are of a loop without. */
void probes_sum_up(struct bench_case *c, struct bench_row *row);

#endif
