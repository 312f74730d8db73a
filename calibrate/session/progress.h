/* SPDX-License-Identifier: MIT */
/*
 * How far a run is, on stderr: time left, what is running, the tears of all of it so far. One
 * line, which renews itself on a terminal and is repeated now and then elsewhere.
 */
#ifndef CALIBRATE_SESSION_PROGRESS_H
#define CALIBRATE_SESSION_PROGRESS_H

#include <stdbool.h>

#include "stress/cell/cell.h"

struct progress {
	bool quiet;
	bool terminal;
	const char *stage;
	uint64_t tears;	  /* of cells that ended; broken protocols must tear and do not count */
	uint64_t toggles; /* likewise */
	struct cell cell;
	double left; /* seconds of budget when the cell began */
	double cell_begin;
	double last_line; /* when the last plain line was printed */
	bool open;	  /* the terminal line wants a newline */
};

void progress_open(struct progress *p, bool quiet);

/* progress_stage - a new stage begins. The name is borrowed. */
void progress_stage(struct progress *p, const char *stage);

void progress_begin_cell(struct progress *p, const struct cell *cell, double left);

/* progress_cell - for run_options: arg is the struct progress. */
void progress_cell(void *arg, const struct cell_result *so_far);

/* progress_add - a cell has ended. */
void progress_add(struct progress *p, const struct cell *cell, const struct cell_result *result);

/* progress_end - finish the terminal line, so that others can print. */
void progress_end(struct progress *p);

#endif
