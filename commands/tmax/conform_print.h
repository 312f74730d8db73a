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
	const struct identity *identity;
	const unsigned *cpu;
	unsigned cpus;
	uint64_t seed;
	double budget;
	bool how_long; /* with a table of times, in text */
	bool interrupted;
	const char *command; /* as it was given */
	char begun[32];	     /* UTC */
};

enum conform_format {
	CONFORM_TEXT,
	CONFORM_JUNIT,
	CONFORM_JSON,
	CONFORM_OPENDCDIAG,
	CONFORM_FORMATS
};

/* conform_format_parse - its name; -EINVAL. */
int conform_format_parse(const char *name);

void conform_print(FILE *f, const struct conform_report *r, enum conform_format format);

/* conform_print_yaml - as OpenDCDiag writes its logs. */
void conform_print_yaml(FILE *f, const struct conform_report *r);

#endif
