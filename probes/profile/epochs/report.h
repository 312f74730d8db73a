/* SPDX-License-Identifier: MIT */
/*
 * What a process has learned, as lines of text with tabs between the fields; names are
 * escaped (probes/text/text.h), numbers in "%a":
 *
 *	Q seconds epochs budget cost toggles lost refused exits
 *	F function object, and the fields of struct estimate
 *	T function object, and the fields of struct duration, in seconds
 *	C function object, the caller's object and address in its file, calls that were seen, calls
 *	  that were timed, their seconds
 *	P start length calls cost	a stretch of time, in seconds; the cost is a share
 */
#ifndef PROBES_PROFILE_EPOCHS_REPORT_H
#define PROBES_PROFILE_EPOCHS_REPORT_H

#include <stdio.h>

void report_profile(FILE *out);

#endif
