/* SPDX-License-Identifier: MIT */
/* What tmax protocols found: for people, as JUnit's XML and as JSON. Private to commands/tmax. */
#ifndef COMMANDS_TMAX_PROTOCOLS_H
#define COMMANDS_TMAX_PROTOCOLS_H

#include <stdio.h>

#include "calibrate/statistics/protocol_rows.h"
#include "patchcore/machine/identity.h"

struct protocols_report {
	struct identity identity;
	struct protocol_rows rows;
	double budget, seconds;
	uint64_t seed;
	bool strict;
	char date[32]; /* UTC, when it ended */
};

#define PROTOCOLS_LINES	  25 /* of text, at most, with 17 protocols */
#define PROTOCOLS_COLUMNS 100

/* protocols_format_parse - "text", "junit" or "json": its number, text is 0; -EINVAL. */
int protocols_format_parse(const char *name);

void protocols_print(FILE *out, const struct protocols_report *r, unsigned format);

#endif
