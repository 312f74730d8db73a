/* SPDX-License-Identifier: MIT */
#include "bench/cases/benchmarks.h"

#include <string.h>

#define BENCHMARK_ROW(name) &bench_##name,
const struct benchmark *const benchmarks[] = { BENCHMARKS(BENCHMARK_ROW) NULL };

const struct benchmark *benchmark_named(const char *name)
{
	const struct benchmark *const *b = benchmarks;

	while (*b && strcmp((*b)->name, name) != 0)
		b++;
	return *b;
}
