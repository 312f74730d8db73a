/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_PROGRAM_CELL_OPTIONS_H
#define CALIBRATE_PROGRAM_CELL_OPTIONS_H

#include "calibrate/program/command_line.h"
#include "stress/cell/cell.h"

/* All options that describe a cell. Their request begins with a struct cell. */
extern const struct option_row cell_options[];

/*
 * cell_read - a command line of "tmax stress", or of another command, up to a word that begins with
 * # or ; into the cell, which has its defaults. 0; -ENOMEM, or -EINVAL with the reason in why,
 * OPTION_WHY bytes.
 */
int cell_read(const char *text, const char *command, struct cell *cell, char *why);

/* option_of_cell - for rows of other tables: takes what the row of that name there takes. */
option_take option_of_cell;

#endif
