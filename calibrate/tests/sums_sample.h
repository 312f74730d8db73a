/* SPDX-License-Identifier: MIT */
/* Sums that are made up, and a plan for them. */
#ifndef CALIBRATE_TESTS_SUMS_SAMPLE_H
#define CALIBRATE_TESTS_SUMS_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/statistics/estimate.h"

#define SLICE_TICKS 5e8

/* One seat, or one more where threads share CPUs. */
static inline struct plan sample_plan(unsigned seats)
{
	struct plan plan = *plan_find("quick");

	plan.seats = seats;
	plan.seat[0] = (struct seat){ PLACEMENT_SAME_L3, 1 };
	plan.seat[1] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 2 };
	return plan;
}

/* As many slices, each with that many toggles and tears. */
static inline struct count sample_count(uint64_t slices, uint64_t toggles, uint64_t tears)
{
	double n = (double)toggles, t = (double)tears, times = (double)slices;

	return (struct count){
		.slices = slices,
		.toggles = slices * toggles,
		.tears = slices * tears,
		.unevenness = toggles ? times * t * t / n : 0,
		.squares = times * n * n,
		.ticks = times * SLICE_TICKS,
		.worst_tears = tears,
		.worst_toggles = toggles,
	};
}

static inline void sample_add(struct sums *sums, enum sum_kind kind, struct waits rung,
			      enum crossing crossing, const struct seat *seat, struct count count)
{
	struct sum sum = {
		.kind = kind,
		.rung = rung,
		.crossing = crossing,
		.placement = seat->placement,
		.executors = seat->executors,
		.count = count,
	};

	assert_int_equal(sums_add(sums, &sum), 0);
}

/* The same at every seat and crossing of a rung. */
static inline void sample_rung(struct sums *sums, const struct plan *plan, struct waits rung,
			       struct count count)
{
	for (unsigned i = 0; i < plan->seats; i++) {
		sample_add(sums, SUM_WAIT, rung, CROSSING_LINE, &plan->seat[i], count);
		sample_add(sums, SUM_WAIT, rung, CROSSING_PAGE, &plan->seat[i], count);
	}
}

/* A change by membarrier takes that many ticks. */
static inline void sample_membarrier(struct sums *sums, const struct plan *plan, double ticks)
{
	struct count count = sample_count(2, 1000, 0);

	count.ticks = ticks * (double)count.toggles;
	sample_add(sums, SUM_MEMBARRIER, (struct waits){ 0 }, CROSSING_LINE, &plan->seat[0], count);
}

#endif
