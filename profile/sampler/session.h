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

/* What an agent does. Those that return an int return 0 or a negative errno. */
struct sampler {
	/* Before libfastinst starts; @functions: as in the environment, or "*". */
	int (*read)(const char *options, const char *functions);
	int (*start)(bool visit); /* @visit: the process was running before */
	int (*finish)(void);	  /* ends what the report is about */
	int (*stop)(void);	  /* after that: turns all probes off */
	void (*report)(FILE *out);
	void (*run)(uintptr_t number); /* in session_thread() */

	/* Around dlclose(). after_unload() is called if before_unload() was true. */
	bool (*before_unload)(void);
	void (*after_unload)(void);

	/* Around fork(). forked() is called in the child; true: the child is profiled. */
	void (*before_fork)(void), (*after_fork)(void);
	bool (*forked)(bool runs, bool visit);
};

/* session_start - for the agent's constructor. */
void session_start(const struct sampler *agent);

/* session_thread - one that runs sampler.run(), and counts as the tool's. Negative errno. */
int session_thread(pthread_t *thread, uintptr_t number);

#endif
