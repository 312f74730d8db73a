/* SPDX-License-Identifier: MIT */
/*
 * A calibration in progress: runs cells, keeps the journal, watches the budget, marks what was
 * disturbed, and shows how far it is.
 */
#ifndef CALIBRATE_SESSION_SESSION_H
#define CALIBRATE_SESSION_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "calibrate/statistics/estimate.h"
#include "results/journal/journal.h"
#include "stress/run/run.h"
#include "stress/witness/witness.h"

/*
 * How far a run is, on stderr: time left, what is running, the tears of all of it so far. One
 * line, which renews itself on a terminal and is repeated now and then elsewhere.
 */
struct progress {
	bool quiet, terminal;
	uint64_t tsc_khz;  /* 0: not known, so waits are told in ticks */
	bool open;	   /* the terminal line wants a newline */
	const char *stage; /* that runs now */
	/* Of cells that ended; broken protocols must tear and do not count. */
	uint64_t tears, toggles;
	struct cell cell;
	double left;		      /* seconds of budget when the cell began */
	double cell_begin, last_line; /* when the last plain line was printed */
};

void progress_open(struct progress *p, bool quiet, uint64_t tsc_khz);

void progress_begin_cell(struct progress *p, const struct cell *cell, double left);

/* progress_cell - for run_options: arg is the struct progress. */
void progress_cell(void *arg, const struct cell_result *so_far);

/* progress_end - finish the terminal line, so that others can print. */
void progress_end(struct progress *p);

struct session {
	hwloc_topology_t topology; /* NULL: cells are seated nowhere (tests) */
	const volatile sig_atomic_t *stop;
	struct journal *journal;
	struct journal_data known; /* what a resumed run already did */
	struct cell_record *done;  /* all records of this run, resumed ones included */
	size_t count;
	double budget, begin; /* seconds */
	double used;	      /* by resumed cells */
	uint64_t seed;
	struct progress progress;
	char noise[NOISE_REASON_MAX]; /* what the last disturbed cell was disturbed by */
	unsigned tries; /* records that the last session_run() added, all of one cell */
};

/* session_left - seconds of budget left; below 0 when overdrawn. */
double session_left(const struct session *s);

/*
 * session_run - run a cell, or take it from the journal that is resumed. It is journalled before
 * this returns, and kept in s->done; *record points to it until the next call. s->tries: 1 if there
 * is one. A noisy cell is marked, and counts all the same.
 *
 * 0; -EINTR: asked to stop (what was measured until then is kept); -ENOENT: the placement cannot
 * seat it; -EIO with a message on stderr: the journal cannot be written; or what cell_run() failed
 * with.
 */
int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record);

/*
 * session_written - what came of writing to the journal: 0, or -EIO after the progress line is
 * ended and a message is on stderr.
 */
int session_written(struct session *s, int ret);

/*
 * session_gaps - run the gap oracle, or take its line from the journal that is resumed: as a cell
 * by its key, it is known by its command, which has its seed. What it has counted is added to the
 * sums, and is in its line; NULL: it is no evidence. 1: there is an answer; 0: there is none; or as
 * session_run(). s->tries: was it measured?
 *
 * session_known_gaps - only take one, of that command or (NULL) of any. 1, 0, or -ENOMEM.
 */
int session_gaps(struct session *s, const struct cell *cell, struct sums *sums);
int session_known_gaps(struct session *s, const char *command, struct sums *sums);

void session_free(struct session *s);

/*
 * climb - run the plan.
 *
 * 0 with the estimate of this run, whose sums are in *sums (the caller frees them, always).
 * -EINTR: asked to stop; -EIO with a message on stderr: the journal cannot be written; another
 * negative errno: no cell could be run any more. What is known until then is evidence all the
 * same, unless the estimate is blind.
 */
int climb(struct session *session, const struct plan *plan, struct sums *sums,
	  struct estimate *estimate);

/*
 * climb_pairs - the same for a plan of stores inside a line alone, on so many CPUs or more: all at
 * once, two by two, by climb(). A pair whose oracle is blind counts nothing.
 *
 * pair_of_round - which two of so many CPUs, numbered from 0, are the i-th pair of a round. False:
 * one of an odd number is left over. Each meets each other once in as many rounds as it has
 * partners.
 */
#define PAIRS_FROM 4
int climb_pairs(struct session *session, const struct plan *plan, struct sums *sums,
		struct estimate *estimate);
bool pair_of_round(unsigned cpus, unsigned round, unsigned i, unsigned pair[2]);

#endif
