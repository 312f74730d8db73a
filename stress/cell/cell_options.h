/* SPDX-License-Identifier: MIT */
/* The options that describe a cell. */
#ifndef STRESS_CELL_CELL_OPTIONS_H
#define STRESS_CELL_CELL_OPTIONS_H

#include "base/command_line.h"
#include "stress/cell/cell.h"

#define PLACEMENT_HELP                                                                             \
	"where the executors sit: same-core, same-l2, same-l3, same-socket, cross-socket, "        \
	"kind-up, kind-down, spread or oversubscribed (spread); see tmax info"

/* All of them. Their request begins with a struct cell. */
extern const struct option_row cell_options[];

/* In a row of another table: the option takes what that of a cell takes. */
#define OPTION_OF_CELL .take = option_like, .like = cell_options

/*
 * cell_read - a command line of "tmax stress", or another, up to # or ; into the cell, which has
 * its defaults. 0; -ENOMEM, or -EINVAL with the reason in why, OPTION_WHY bytes.
 */
int cell_read(const char *text, const char *command, struct cell *cell, char *why);

#endif
