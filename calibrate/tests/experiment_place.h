/* SPDX-License-Identifier: MIT */
/* The experiments as they are shipped, for tests. */
#ifndef CALIBRATE_TESTS_EXPERIMENT_PLACE_H
#define CALIBRATE_TESTS_EXPERIMENT_PLACE_H

#include "base/exit_status.h"
#include "calibrate/session/experiment.h"

/* What `tmax stress --list` makes of it: "paper.cells" or "tail.cells". */
static inline struct experiment list_as_shipped(const char *list, unsigned repetitions)
{
	struct experiment e = {
		.list = list,
		.repetitions = repetitions,
		.shard = { 1, 1 },
		.seed = 1,
	};

	experiment_name(&e);
	assert_int_equal(experiment_prepare(&e, NULL), EXIT_PASS);
	return e;
}

#endif
