/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX    99999.5 /* numbers below are written in full, */
#define FRACTION_MIN 1e-3    /* and fractions above with a point only */

char *number_text(char buf[NUMBER_TEXT], double value)
{
	bool plain = fabs(value) < WHOLE_MAX && fabs(value) >= FRACTION_MIN;
	char *e, *end;
	int exponent;

	if (isnan(value))
		return strcpy(buf, "?");
	if (value == floor(value) && fabs(value) < WHOLE_MAX) {
		snprintf(buf, NUMBER_TEXT, "%.0f", value);
		return buf;
	}
	snprintf(buf, NUMBER_TEXT, plain ? "%.3g" : "%.2e", value);
	e = strchr(buf, 'e');
	if (!e)
		return buf;
	/* "1.60e+06" reads as well as "1.6e6". */
	exponent = atoi(e + 1);
	for (end = e; end[-1] == '0' && memchr(buf, '.', (size_t)(end - buf)); end--)
		;
	if (end[-1] == '.')
		end--;
	snprintf(end, (size_t)(buf + NUMBER_TEXT - end), "e%d", exponent);
	return buf;
}

char *ticks_text(char buf[TICKS_TEXT], double ticks, uint64_t tsc_khz)
{
	double us = tsc_khz ? 1000 * ticks / (double)tsc_khz : 0;
	double number = !tsc_khz ? ticks : us < 1 ? 1000 * us : us;

	snprintf(buf, TICKS_TEXT, "%s %s", NUMBER(number),
		 !tsc_khz ? "ticks"
		 : us < 1 ? "ns"
			  : "us");
	return buf;
}
