/* SPDX-License-Identifier: MIT */
#include "bench/cases/scaling/scaling.h"

int bench_scaling(const struct bench_run *run, struct bench_result *result)
{
	static const unsigned long known[] = { 10, 1000, 100000 };
	int ret = scaling_patchers(run, SCALING_SLICE, result);

	return ret < 0 ? ret : scaling_known(run, known, sizeof(known) / sizeof(*known), result);
}
