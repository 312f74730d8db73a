/* SPDX-License-Identifier: MIT */
/*
 * What came of trying promises: for people, as JUnit's XML, as JSON, and in the way of
 * OpenDCDiag. Private to commands/tmax.
 */
#ifndef COMMANDS_TMAX_CONFORM_PRINT_H
#define COMMANDS_TMAX_CONFORM_PRINT_H

#include <stdio.h>

#include "conform/rounds.h"
#include "patchcore/machine/identity.h"

struct conform_report {
	const struct conformance *tried;
	const struct conform_request *asked;
	const struct identity *identity;
	bool how_long; /* with a table of times, in text */
	bool interrupted;
	const char *command; /* as it was given */
	char begun[32];	     /* UTC */
};

/* conform_format_parse - the number of a format by its name, text is 0; -EINVAL. */
int conform_format_parse(const char *name);

void conform_print(FILE *f, const struct conform_report *r, unsigned format);

#endif
