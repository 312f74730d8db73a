/* SPDX-License-Identifier: MIT */
/*
 * The experiments as they are shipped, for tests.
 */
#ifndef CALIBRATE_TESTS_EXPERIMENT_PLACE_H
#define CALIBRATE_TESTS_EXPERIMENT_PLACE_H

#include "calibrate/experiment/experiment.h"
#include "results/figures/figure.h"
#include "stress/base/exit_status.h"

/* What `tmax calibrate --paper` begins with. */
static inline struct experiment paper_as_shipped(void)
{
	struct experiment e = {
		.kind = EXPERIMENT_PAPER,
		.repetitions = PAPER_REPETITIONS,
		.shard = { 1, 1 },
		.seed = 1,
	};

	experiment_name(&e);
	return e;
}

/* And --plan tail. */
static inline struct experiment tail_as_shipped(bool fifo)
{
	struct experiment e = {
		.kind = EXPERIMENT_TAIL, .shard = { 1, 1 }, .seed = 1, .fifo = fifo
	};

	experiment_name(&e);
	return e;
}

/* Executors as --executors takes them, toggles as --toggles. NULL, 0: as they are. */
static inline void experiment_make(struct experiment *e, const char *executors, uint64_t toggles)
{
	const struct plan plan = { .budget = TAIL_BUDGET, .seat = { { PLACEMENT_SAME_L3, 1 } } };

	if (executors)
		assert_int_equal(cpus_parse(&e->executors, executors, strlen(executors)), 0);
	if (toggles) {
		e->with.toggles = toggles;
		experiment_replace(e, "toggles");
	}
	assert_int_equal(experiment_prepare(e, NULL, &plan), EXIT_PASS);
}

#endif
