/* SPDX-License-Identifier: MIT */
/*
 * tmax bench throughput with slices of another length.
 */
#ifndef BENCH_CASES_THROUGHPUT_THROUGHPUT_H
#define BENCH_CASES_THROUGHPUT_THROUGHPUT_H

#include "bench/method/method.h"

/*
 * Seconds. A multiple of 2 ms: then every rate makes an even number of changes in it, and
 * both states have the same time.
 */
#define THROUGHPUT_SLICE 0.010

/* throughput_measure - what bench_throughput() does. 0 or a negative errno. */
int throughput_measure(const struct bench_run *run, double slice, struct bench_result *result);

#endif
