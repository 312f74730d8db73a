/* SPDX-License-Identifier: MIT */
/*
 * A profile of this process from its start to its report, by the agent of either kind. With --pid
 * the command calls fastinst_profile() in the process; else the agent is preloaded, and finds in
 * the environment:
 *
 *	FASTINST_OUTPUT	    the folder in which each process leaves its lines, by its PID
 *	FASTINST_PROFILE    the agent's options
 *	FASTINST_FUNCTIONS  patterns as text_word() reads them
 *	FASTINST_ENTRIES    objects of which functions are taken that nothing was compiled into
 */
#ifndef PROFILE_SAMPLER_SESSION_H
#define PROFILE_SAMPLER_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/estimate/estimate.h"

/*
 * What each of the two agents does. Functions that return an int return 0 or a negative errno.
 * @functions: as in the environment, or "*"; @visit: the process was running before
 */
int sampler_read(const char *options, const char *functions); /* before libfastinst starts */
int sampler_start(bool visit);
int sampler_finish(void); /* ends what the report is about */
int sampler_stop(void);	  /* after that: turns all probes off */
void sampler_report(FILE *out);
void sampler_run(uintptr_t number); /* in session_thread() */

/* Around dlclose(). The second is called if the first was true. */
bool sampler_before_unload(void);
void sampler_after_unload(void);

/* Around fork(). The last one is called in the child; true: the child is profiled. */
void sampler_before_fork(void), sampler_after_fork(void);
bool sampler_forked(bool runs, bool visit);

/* session_thread - one that runs sampler_run(), and counts as the tool's. Negative errno. */
int session_thread(pthread_t *thread, uintptr_t number);

/* --- The report ----------------------------------------------------------------------------- */

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
void report_text(FILE *out, const char *text);

/* report_numbers - write n doubles, and end the line. */
void report_numbers(FILE *out, const void *numbers, int n);

/* report_address - write an object and an address in its file. False: no object has it. */
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
