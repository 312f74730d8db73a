/* SPDX-License-Identifier: MIT */
/*
 * Experiments: lists of cells that `tmax stress --list` runs one by one into a journal. They answer
 * a question instead of finding waits, and never touch machine.conf.
 *
 * paper.cells and tail.cells are shipped.
 */
#ifndef CALIBRATE_SESSION_EXPERIMENT_H
#define CALIBRATE_SESSION_EXPERIMENT_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/command_line.h"
#include "calibrate/session/session.h"
#include "stress/cell/cell.h"

#define SHARDS_MAX	1000
#define REPETITIONS_MAX 1000
#define EXPERIMENT_NAME 14 /* bytes */

/* --- Lists of cells --------------------------------------------------------------------------- */

/*
 * A line is a command line of tmax stress or tmax gaps, as the record of a cell has
 * it, and before it may stand the name of what the cell belongs to:
 *
 *	# what is behind this sign is for people
 *	line-2000: tmax stress --crossing line --split 4 --first-wait 2000 --second-wait 2000
 *	tmax gaps --crossing page --seconds 2
 *
 * A line without --placement is seated where it is run, one without --seed gets one there.
 */
#define CELLS_NAME 18		     /* bytes of a line's name */
#define CELLS_WHY  (OPTION_WHY + 32) /* bytes of a reason */
#define CELLS_MAX  10000

struct listed {
	char name[CELLS_NAME]; /* or "" */
	bool gaps;	       /* a run of the gap oracle */
	bool placed, seeded;   /* the line says where, or which seed */
	bool left_out;	       /* this machine cannot run it */
	unsigned copy, copies; /* number among lines of the same cell, from 0, and how many */
	struct cell cell;
};

struct cells {
	struct listed *at; /* owned */
	size_t count;
};

/*
 * cells_read - add the lines of a stream. 0; -EINVAL with the line and the reason in words: it is
 * no cell, or there are more than CELLS_MAX of them; -ENOMEM; -EIO.
 */
int cells_read(FILE *stream, struct cells *cells, char *why);

void cells_free(struct cells *cells);

/* --- Experiments ------------------------------------------------------------------------------ */

/* The number-th of so many, from 1. 1/1 is everything. */
struct shard {
	unsigned number;
	unsigned of;
};

struct experiment {
	const char *list;	    /* its file; NULL: there is none */
	char name[EXPERIMENT_NAME]; /* begins the stages in the journal: "paper", "tail" */
	struct cells cells;
	struct cell with;     /* settings that replace those of the lines, */
	uint64_t replaced;    /* a bit for each row of cell_options that is replaced */
	uint64_t repetitions; /* of the whole list */
	uint64_t seed;
	struct shard shard;
	const char *journal;
};

/* experiment_name - fill it in, from the list. */
void experiment_name(struct experiment *e);

/* For tables of options. Their request has a struct shard. */
option_take option_shard;

/*
 * experiment_prepare - read the list, put in what replaces what it says, and seat it. A name
 * without a folder that is not here may be one that is shipped. Without a topology it is seated as
 * it is. EXIT_PASS, or another exit status after a complaint.
 */
int experiment_prepare(struct experiment *e, hwloc_topology_t topology);

/*
 * experiment_run - run it in a session whose journal is open. Returns an exit status: inconclusive
 * if some cell has no answer.
 */
int experiment_run(struct experiment *e, struct session *session);

/* --- For their tests -------------------------------------------------------------------------- */

/*
 * experiment_cell - the i-th of all cells. Returns which of the runs of this cell it is, from 0.
 *
 * The list is gone through once and once more, each time from one line further on, so that the runs
 * of a cell fall into different shards. A seed that the line does not say follows from what makes
 * the cell, toggles and rest included, from the run and from the experiment's own: a cell of a
 * smaller grid is never taken for one of this.
 */
unsigned experiment_cell(const struct experiment *e, size_t i, struct cell *cell);

/* experiment_line - the line that it comes from. */
struct listed *experiment_line(const struct experiment *e, size_t i);

/* experiment_stage - what the records of a line have as their stage. Returns stage. */
char *experiment_stage(const struct experiment *e, const struct listed *listed,
		       char stage[sizeof(((struct cell_record *)0)->stage)]);

/* has_answer - the cell ran to its end, or it crashed. As figure 9 counts. */
bool has_answer(const struct cell_record *record);

#endif
