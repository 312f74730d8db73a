/* SPDX-License-Identifier: MIT */
/*
 * A calibration in progress: runs cells, keeps the journal, watches the budget,
 * and runs again what was disturbed.
 */
#ifndef CALIBRATE_SESSION_H
#define CALIBRATE_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "calibrate/progress.h"
#include "results/journal.h"
#include "stress/noise.h"
#include "stress/run.h"

#define SESSION_REPEATS	     2	 /* of a cell that was noisy; one that still is stays so */
#define SESSION_REPEAT_SHARE 0.2 /* of the budget, for all repeats together */

/* How many cells were disturbed; a cell and its repeats are one. */
struct session_noise {
	unsigned cells;
	unsigned noisy;		       /* the first time */
	unsigned stayed;	       /* the last time too */
	char reason[NOISE_REASON_MAX]; /* of the last that stayed so */
};

struct session {
	hwloc_topology_t topology;
	const volatile sig_atomic_t *stop;
	struct journal *journal;
	struct journal_data known; /* what a resumed run already did */
	struct cell_record *done;  /* all records of this run, resumed ones included */
	size_t count;
	size_t room;
	double budget;	 /* seconds */
	double used;	 /* by resumed cells */
	double repeated; /* seconds, by repeats */
	double begin;
	uint64_t seed;
	bool once; /* noisy cells are marked, but not run again: the list of cells is fixed */
	struct progress progress;
	struct session_noise noise;
	unsigned tries; /* records that the last session_run() added, all of one cell */
};

/* session_left - seconds of budget left; below 0 when overdrawn. */
double session_left(const struct session *s);

/*
 * session_run - run a cell, or take it from the journal that is resumed.
 *
 * A cell that was noisy is run again with another seed, SESSION_REPEATS times
 * at most and only while there is budget, and some of it for repeats. All tries are journalled
 * before this returns, and are kept in s->done, the last s->tries of it; *record points to the last
 * of them until the next call. If that is noisy too its toggles prove nothing; a tear counts in
 * whichever try it was seen.
 *
 * 0; -EINTR: asked to stop (what was measured until then is kept); -ENOENT: the
 * placement cannot seat it; -EIO with a message on stderr: the journal cannot
 * be written; or what cell_run() failed with.
 */
int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record);

/*
 * session_noise_summary - "3 of 40 cells stayed noisy (steal 7.1 %)", the reason
 * being the last one's. Returns how many did; then buf is empty if none.
 */
unsigned session_noise_summary(const struct session *s, char *buf, size_t size);

void session_free(struct session *s);

#endif
