/* SPDX-License-Identifier: MIT */
/*
 * A profile of this process from its start to its report, by the agent of either kind:
 *
 *	LD_PRELOAD	 the environment has FASTINST_OUTPUT, the folder in which each process
 *leaves its lines in a file named by its PID; the agent's options; and FASTINST_FUNCTIONS, patterns
 *as text_word() reads them, and FASTINST_ENTRIES, objects of which functions are taken that nothing
 *was compiled into profile --pid	 calls fastinst_profile() in the process
 */
#ifndef PROBES_PROFILE_SESSION_SESSION_H
#define PROBES_PROFILE_SESSION_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/* What an agent does. Those that return an int return 0 or a negative errno. */
struct sampler {
	const char *variable; /* of the environment, with its options */
	int line;	      /* of a command's text, with the same */

	/* Before libfastinst starts; @functions: as in the environment, or "*". */
	int (*read)(const char *options, const char *functions);
	int (*start)(bool visit); /* @visit: the process was running before */
	int (*finish)(void);	  /* the report can be written from here on */
	int (*stop)(void);	  /* behind that: nothing is probed any more */
	void (*report)(FILE *out);

	/* Around fork(); the last in the child, and true: that is profiled. */
	void (*before_fork)(void), (*after_fork)(void);
	bool (*forked)(bool runs, bool visit);
};

/* session_start - for the agent's constructor. */
void session_start(const struct sampler *agent);

#endif
