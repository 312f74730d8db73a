/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_PROGRAM_COLOUR_H
#define CALIBRATE_PROGRAM_COLOUR_H

#include <stdio.h>

/*
 * put_verdict - the name of a verdict, which the program exits with that status for: green of
 * EXIT_PASS, red of EXIT_TEARS, else yellow. Plain where out is no terminal that has colours, and
 * where the user has set NO_COLOR (no-color.org).
 */
void put_verdict(FILE *out, const char *name, int status);

#endif
