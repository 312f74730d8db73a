/* SPDX-License-Identifier: MIT */
/* The command line of tmax calibrate. */
#ifndef CALIBRATE_COMMANDS_CALIBRATE_OPTIONS_H
#define CALIBRATE_COMMANDS_CALIBRATE_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/ladder/plan.h"

/* What is asked for. Names point into argv or into the request itself. */
struct request {
	struct plan plan;
	struct experiment experiment; /* or none */
	const char *plan_name;
	double budget;	  /* 0: as planned */
	double require_p; /* likewise */
	const char *output;
	char default_output[PATH_MAX];
	const char *journal;
	char default_journal[4096 + 8];
	const char *evidence;
	char default_evidence[4096 + 16];
	const char *figure;
	char *const *journals; /* to merge */
	int journal_count;
	uint64_t seed;
	bool have_seed;
	bool resume;
	bool quiet;
	bool verbose;
	bool json;
	bool only_window, only_gaps;
	bool idle;
	bool merge; /* the journals, and run nothing */
};

/* request_parse - EXIT_PASS, EXIT_HELPED, or EXIT_USAGE after a complaint. */
int request_parse(int argc, char **argv, struct request *request);

/* request_experiment - fill in what an experiment wants besides, and was not given. */
void request_experiment(struct request *request);

/* request_run - all of it. An exit status. */
int request_run(struct request *request);

#endif
