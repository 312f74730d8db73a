/* SPDX-License-Identifier: MIT */
/* The benchmarks that there are. To add one: a row here, and its file. */
#ifndef BENCH_CASES_BENCHMARKS_H
#define BENCH_CASES_BENCHMARKS_H

#include "bench/method/method.h"

/* In the order in which they are run, listed and reported. */
#define BENCHMARKS(row)                                                                            \
	row(toggle) row(throughput) row(latent) row(stall) row(invoke) row(probes) row(growth)

#define BENCHMARK_DECLARE(name) extern const struct benchmark bench_##name;
BENCHMARKS(BENCHMARK_DECLARE)

#define BENCHMARK_ONE(name) +1
enum {
	BENCHMARK_COUNT = BENCHMARKS(BENCHMARK_ONE)
};

/* All of them, up to NULL. */
extern const struct benchmark *const benchmarks[];

/* benchmark_named - NULL: there is none. */
const struct benchmark *benchmark_named(const char *name);

/* measure_many_probes - of bench_probes: rows of many probes at once, in probes_many.c. */
int measure_many_probes(const struct bench_run *run, struct bench_result *result);

#endif
