/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_PROGRAM_CELL_OPTIONS_H
#define CALIBRATE_PROGRAM_CELL_OPTIONS_H

#include "calibrate/program/command_line.h"

/* All options that describe a cell. Their request begins with a struct cell. */
extern const struct option_row cell_options[];

/* option_of_cell - for rows of other tables: takes what the row of that name there takes. */
option_take option_of_cell;

#endif
