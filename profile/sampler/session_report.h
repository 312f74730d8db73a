/* SPDX-License-Identifier: MIT */
/*
 * What a process reports of its profile: lines of a letter, texts and numbers, with tabs between
 * them. Texts are escaped (base/text.h), addresses among them in hex, numbers are in "%a":
 *
 *	Q the numbers of struct quality
 *	P those of struct phase
 *	F function, object, the numbers of struct measured, its time in seconds
 *	C function, object, the caller's object and address in its file; calls that were seen, calls
 *	  that were timed, their seconds
 *	S object and address in its file; seconds in each group of bursts
 *	B number, object, address in its file, name; all blocks of a profile of edges
 *	E numbers of two blocks; runs in odd and in even phases, each as often as its phase counts,
 *	  and as many as were seen
 */
#ifndef PROFILE_SAMPLER_SESSION_REPORT_H
#define PROFILE_SAMPLER_SESSION_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/statistics/estimate.h"

void report_text(FILE *out, const char *text);

/* report_numbers - write n doubles, and end the line. */
void report_numbers(FILE *out, const void *numbers, int n);

/* report_address - write an object and the address in its file. False: no object has that address.
 */
bool report_address(FILE *out, uint64_t address);

#define MOMENTS 1024u

/*
 * What happened when: each moment joins as many phases, but for the last. Until the report, cost is
 * a time; start, length and cost have the agent's unit.
 */
struct moments {
	struct phase moment[MOMENTS];
	size_t n;
	double merged; /* phases in a moment */
};

/* moments_add - add a phase. The phase before it ends where it starts. */
void moments_add(struct moments *moments, const struct phase *phase);

/* report_moments - write all moments. @per_second: units of time per second */
void report_moments(FILE *out, const struct moments *moments, double per_second);

#endif
