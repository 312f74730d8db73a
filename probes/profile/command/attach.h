/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_ATTACH_H
#define PROBES_PROFILE_COMMAND_ATTACH_H

#include <sys/types.h>

#include "probes/launch/launch.h"

struct visited {
	pid_t pid;
	double seconds;				 /* 0: until the process ends, or ^C */
	const char *profile, *edges, *functions; /* as in the environment */
	const char *entries;			 /* the same, or NULL */
};

/*
 * attach_profile - profiles a process that runs, and leaves it. The reports are in launch->folder
 * then; agent was set before. STATUS_OK, or STATUS_* after a complaint: folder is empty.
 */
int attach_profile(const struct visited *visited, struct launch *launch);

#endif
