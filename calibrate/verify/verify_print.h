/* SPDX-License-Identifier: MIT */
/*
 * A judged verification as text for people, TAP 13, JUnit's XML, and JSON.
 *
 * TAP and JUnit have a test for the config, one per cell and one for the verdict.
 * What is skipped or gave no answer is a skipped test there, with the reason: the
 * exit status tells an inconclusive run from one that held.
 */
#ifndef CALIBRATE_VERIFY_VERIFY_PRINT_H
#define CALIBRATE_VERIFY_VERIFY_PRINT_H

#include <stdio.h>

#include "calibrate/verify/verify.h"

enum verify_format {
	VERIFY_TEXT,
	VERIFY_TAP,
	VERIFY_JUNIT,
	VERIFY_JSON,
	VERIFY_FORMATS
};

/* verify_format_parse - "text", "tap", "junit" or "json"; -EINVAL. */
int verify_format_parse(const char *name);

void verify_print(FILE *f, const struct verify *v, enum verify_format format);

#endif
