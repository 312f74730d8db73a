/* SPDX-License-Identifier: MIT */
#ifndef PROBES_COMMAND_WHY_H
#define PROBES_COMMAND_WHY_H

#include <stdbool.h>

#include "probes/command/counts.h"

/*
 * why_none - tell on stderr why a program that was run left no counts, or only such that say
 * little: by its file. @expected: something was turned on.
 */
void why_none(const char *program, const struct counts *counts, bool expected);

/*
 * why_unmatched - tell of the patterns that matched no probe, with names of the program's file that
 * are near. Whether there are any.
 */
bool why_unmatched(const char *program, const struct counts *counts, const char *entries);

#endif
