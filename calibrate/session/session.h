/* SPDX-License-Identifier: MIT */
/*
 * A calibration in progress: runs cells, keeps the journal, watches the budget,
 * and marks what was disturbed.
 */
#ifndef CALIBRATE_SESSION_SESSION_H
#define CALIBRATE_SESSION_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "calibrate/session/progress.h"
#include "results/journal/journal.h"
#include "stress/run/run.h"
#include "stress/witness/noise.h"

struct session {
	hwloc_topology_t topology; /* NULL: cells are seated nowhere (tests) */
	const volatile sig_atomic_t *stop;
	struct journal *journal;
	struct journal_data known; /* what a resumed run already did */
	struct cell_record *done;  /* all records of this run, resumed ones included */
	size_t count;
	size_t room;
	double budget; /* seconds */
	double used;   /* by resumed cells */
	double begin;
	uint64_t seed;
	struct progress progress;
	char noise[NOISE_REASON_MAX]; /* what the last disturbed cell was disturbed by */
	unsigned tries; /* records that the last session_run() added, all of one cell */
};

/* session_left - seconds of budget left; below 0 when overdrawn. */
double session_left(const struct session *s);

/*
 * session_run - run a cell, or take it from the journal that is resumed.
 *
 * It is journalled before this returns, and kept in s->done; *record points to it until the
 * next call. s->tries: 1 if there is one. A noisy cell is marked, and counts all the same.
 *
 * 0; -EINTR: asked to stop (what was measured until then is kept); -ENOENT: the
 * placement cannot seat it; -EIO with a message on stderr: the journal cannot
 * be written; or what cell_run() failed with.
 */
int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record);

void session_free(struct session *s);

#endif
