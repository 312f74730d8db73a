/* SPDX-License-Identifier: MIT */
/*
 * What `tmax stress` and `tmax gaps` have in common: one cell from the command line, run once, told
 * once.
 */
#ifndef CALIBRATE_COMMANDS_ONE_CELL_H
#define CALIBRATE_COMMANDS_ONE_CELL_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/program/command_line.h"
#include "results/journal/journal.h"
#include "stress/run/run.h"

/* One of the two commands. */
struct one_cell_command {
	struct cell cell; /* as asked for; first, since options of a cell are about it */
	const char *journal;
	const char *evidence; /* the store to add to, or NULL */
	bool json;
	const char *list; /* a file of cells to run instead, with these: */
	struct shard shard;
	bool resume, quiet;
	uint64_t given; /* a bit for each row of the first table that was */
	const struct command_line *line;
	void (*defaults)(struct cell *cell);
	int (*check)(const struct cell *cell, char *reason, size_t size);
	/* Run the cell and tell of it. 0 with an exit status, or a negative errno. */
	int (*run)(const struct one_cell_command *command, const struct run_options *how,
		   int *status);
	int (*run_list)(const struct one_cell_command *command); /* or NULL */
};

/* one_cell_main - the whole command. An exit status. */
int one_cell_main(struct one_cell_command *command, int argc, char **argv);

/*
 * one_cell_tell - add a run line and then this one to the journal that was asked for, if one was;
 * with --json it is told on stdout. The line is freed. EXIT_PASS, or another status after a
 * complaint.
 */
int one_cell_tell(const struct one_cell_command *command, json_t *line);

/* one_cell_status - the exit status of an outcome in which nothing was found. */
int one_cell_status(enum outcome outcome);

#endif
