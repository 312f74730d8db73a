/* SPDX-License-Identifier: MIT */
/*
 * The tables of options as data, for the completion of shells (completion.awk).
 */
#ifndef CALIBRATE_PROGRAM_COMPLETION_H
#define CALIBRATE_PROGRAM_COMPLETION_H

#include <stdbool.h>

#include "calibrate/program/command_line.h"

/* While it is set, command_line_parse() prints a command's table instead of reading its line. */
extern bool completion_wanted;

/*
 * completion_print - a line per option, and one without a name for operands. Fields, apart by
 * tabs: command, option, argument, words that it may be, help.
 */
void completion_print(const struct command_line *line);

#endif
