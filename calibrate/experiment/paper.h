/* SPDX-License-Identifier: MIT */
/*
 * The experiment of "Living on the Edge" (PLDI 2016), section 8.1, as a list of
 * cells.
 *
 * What the text says: one patcher activates and deactivates a call site across a
 * line; the split S is 1 to 4; N executor threads run it in a tight loop, N is 2
 * to 6, not counting the patcher; the wait is 0 to 2400 ticks by 100; a run ends
 * when the call was toggled on and off 50 million times, or with a crash by
 * SIGILL or SIGSEGV, which is a failure; each N and S is run 5 times, 100 runs
 * for each wait.
 *
 * Where it is silent, this is what is done here. Both waits are the same.
 * Inactive is a 5-byte NOP (pair call-nop). 50 million are single changes, half of
 * them on, half off. Executors are spread over the CPUs, one on each, as far as
 * there are CPUs beside the patcher's; with more of them all CPUs are shared
 * (oversubscribed). Between two toggles lies a rest: without one INT3 stands on
 * the site nearly all the time, executors sit in the trap handler, and hardly any
 * tear can be seen; see REST in tmax(1). A rest of 0 is the literal reading.
 */
#ifndef CALIBRATE_EXPERIMENT_PAPER_H
#define CALIBRATE_EXPERIMENT_PAPER_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/ladder/plan.h"
#include "results/figures/caption.h"
#include "results/journal/journal.h"

#define PAPER_REST	    2000
#define PAPER_EXECUTORS	    "2-6"
#define PAPER_SEATS_MAX	    32
#define PAPER_EXECUTORS_MAX 64
#define PAPER_REPEAT_MAX    1000
#define PAPER_STAGE	    "paper"

/* The grid. All but the seats of it is the paper's unless told otherwise. */
struct paper {
	uint64_t toggles;
	unsigned repetitions;
	uint64_t rest;
	uint64_t seed;
	struct seat seat[PAPER_SEATS_MAX]; /* an entry per N */
	unsigned seats;
};

void paper_defaults(struct paper *paper);

/*
 * paper_executors - the Ns from a list such as "2-6" or "1,2,4-6", each once.
 * Placements are left to paper_seat(). 0 or -EINVAL.
 */
int paper_executors(struct paper *paper, const char *list);

/*
 * paper_seat - choose each N's placement. 0, or -ENOENT with the reason if some N
 * cannot be seated at all: more CPUs than threads, yet not one on each.
 */
int paper_seat(struct paper *paper, hwloc_topology_t topology, char *reason, size_t size);

size_t paper_count(const struct paper *paper);

/*
 * paper_cell - cell i of the grid. Wait goes round fastest, then split, then N,
 * then the repetition, so that the first of them can be told: i over the others.
 * The seed follows from all that makes the cell, toggles and rest included: a
 * cell of a smaller grid is never taken for one of this.
 */
void paper_cell(const struct paper *paper, size_t i, struct cell *cell);
unsigned paper_repetition(const struct paper *paper, size_t i);

/* What of the grid is there. */
struct paper_there {
	size_t missing; /* cells without an answer */
	size_t doubled; /* records of cells that were there already */
	size_t other;	/* records of the stage that are no cell of this grid */
};

/*
 * paper_look - compare the grid with the records. Their order does not matter, so
 * the journals of shards may be read one after another. have, if not NULL, has
 * room for paper_count() and gets which cells have an answer. 0 or -ENOMEM.
 */
int paper_look(const struct paper *paper, const struct journal_data *data, bool *have,
	       struct paper_there *there);

/*
 * paper_seat_as - each N where the records have it, to look at the journals of a
 * machine that is not this one.
 */
void paper_seat_as(struct paper *paper, const struct journal_data *data);

/* How long a toggle takes at the lowest and at the highest wait, and a cell's set-up. */
struct paper_pace {
	double low;   /* seconds per toggle */
	double high;  /* likewise */
	double start; /* seconds per cell */
};

/*
 * paper_seconds - how long these cells of the grid take, from the measured pace of
 * each N (an entry per seat). A run that crashes ends sooner, so this is an upper
 * bound as far as the machine keeps its pace.
 */
double paper_seconds(const struct paper *paper, const struct paper_pace *pace, const size_t *cells,
		     size_t count);

#endif
