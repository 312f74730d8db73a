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

#endif
