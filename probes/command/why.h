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

#endif
