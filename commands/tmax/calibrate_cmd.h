/* SPDX-License-Identifier: MIT */
/* tmax calibrate, which runs lists of cells for tmax stress, too. */
#ifndef COMMANDS_TMAX_CALIBRATE_CMD_H
#define COMMANDS_TMAX_CALIBRATE_CMD_H

#include <limits.h>

#include "calibrate/plan/plan.h"
#include "calibrate/session/experiment.h"

enum {
	ONLY_WINDOW = 1,
	ONLY_GAPS
};

/* What is asked for. Names point into argv or into the request itself. */
struct request {
	struct plan plan;
	struct experiment experiment; /* in place of a calibration, or none */
	const char *plan_name;
	double budget, require_p; /* 0: as planned */
	const char *output, *journal, *evidence;
	char default_output[PATH_MAX], default_journal[PATH_MAX + 8];
	char default_evidence[PATH_MAX + 16];
	uint64_t seed;
	bool have_seed, resume, quiet, verbose, json;
	unsigned only; /* 0: all */
};

/* request_parse - EXIT_PASS, EXIT_HELPED, or EXIT_USAGE after a complaint. */
int request_parse(int argc, char **argv, struct request *request);

/* request_run - all of it. An exit status. */
int request_run(struct request *request);

#endif
