/* SPDX-License-Identifier: MIT */
/*
 * Lists of cells. A line is a command line of tmax stress or tmax gaps, as the record of a cell has
 * it, and before it may stand the name of what the cell belongs to:
 *
 *	# what is behind this sign is for people
 *	line-2000: tmax stress --crossing line --split 4 --first-wait 2000 --second-wait 2000
 *	tmax gaps --crossing page --seconds 2
 *
 * A line without --placement is seated where it is run, one without --seed gets one there.
 */
#ifndef CALIBRATE_EXPERIMENT_CELLS_H
#define CALIBRATE_EXPERIMENT_CELLS_H

#include <stdbool.h>
#include <stdio.h>

#include "stress/cell/cell.h"

#define CELLS_NAME 18  /* bytes of a line's name */
#define CELLS_WHY  240 /* bytes of a reason */
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

/* cells_add - a copy of one. 0 or -ENOMEM. */
int cells_add(struct cells *cells, const struct listed *listed);
void cells_free(struct cells *cells);

#endif
