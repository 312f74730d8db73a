/* SPDX-License-Identifier: MIT */
/* fastinst metrics: what is asked for, and what was measured of it. */
#ifndef COMMANDS_FASTINST_METRICS_H
#define COMMANDS_FASTINST_METRICS_H

#include <pthread.h>

#include "commands/fastinst/command.h"
#include "metrics/language/request.h"

/* A text that declares metrics, and where it is from. */
struct metric_text {
	const char *name;
	char *text;
	unsigned lines;
};

/* What an agent says of a metric in its process; with why, it cannot be measured there. */
struct metric_report {
	size_t processes, places, left_out;
	char *why;
};

/* One metric that is measured. */
struct measured_metric {
	const struct mdl_metric *metric;
	enum mdl_type type;
	const char *thread;
	double before;	/* at the last line of --every */
	size_t running; /* timers that were not stopped, and ran for a time that is not known */
	struct metric_report last; /* of the process whose report is read */
	struct metric_report all;
};

struct metrics_run {
	struct asked asked;
	struct metric_text *texts;
	size_t texts_n;
	bool list, no_library;
	const char *flavor;
	double every; /* seconds; 0: at the end only */
	const char **names;
	size_t names_n;
	struct metric_request focus; /* foci of each request */
	/* --- */
	struct mdl mdl;
	char *whole; /* all texts together */
	struct measured_metric *measured;
	size_t measured_n;
	uint32_t values;
	char folder[40]; /* of values */
	FILE *out;
	double start, printed; /* the last lines of --every */
	pthread_mutex_t lock;
	pthread_cond_t over_changed;
	bool over;
	uint64_t lost, missed;
	size_t ended;
	bool failed;
};

/* read_metrics - all texts, checked. STATUS_OK, or another after a complaint. */
int read_metrics(struct metrics_run *run);

/* list_metrics - one line each. */
void list_metrics(const struct metrics_run *run);

/* was_measured - in one process at least, as far as the reports say. */
bool was_measured(const struct measured_metric *measured);

/* print_metrics - what has been measured until now; at the end, or since the last line. */
void print_metrics(struct metrics_run *run, bool at_end);

#endif
