/* SPDX-License-Identifier: MIT */
#include "bench/cases/probes/loops.h"

#include "bench/cases/probes/probes.h"
#include "patchcore/machine/wait.h"

static double time_loop(void (*loop)(uint64_t times))
{
	uint64_t start = ticks_now();

	loop(PROBES_CALLS);
	return (double)(ticks_now() - start) / PROBES_CALLS;
}

void probes_samples(void (*loop)(uint64_t times), struct samples *s)
{
	time_loop(loop);
	for (unsigned i = 0; i < PROBES_SAMPLES; i++)
		samples_add(s, time_loop(loop));
}

void probes_sum_up(struct bench_case *c, struct bench_row *row)
{
	struct bench_value over = over_pairs(&c->samples[0], &c->samples[1]);
	struct bench_value base = over_pairs(&c->base_samples[0], &c->base_samples[1]);

	bench_row_extra(row, "over_empty", over.median);
	bench_row_extra(row, "over_low", over.low);
	bench_row_extra(row, "over_high", over.high);
	bench_row_extra(row, "over_base", base.median);
	bench_row_extra(row, "over_ratio", over.median / base.median);
}
