/* SPDX-License-Identifier: MIT */
/*
 * Start a program as the leader of a process group that does not outlive its parent.
 */
#ifndef STRESS_BASE_PROCESS_SPAWN_H
#define STRESS_BASE_PROCESS_SPAWN_H

#include <sys/types.h>

/*
 * process_spawn - @talk: its standard input and output; @said: its standard error. All others
 * are closed in it. The pid, or a negative errno, also of what kept it from being run.
 */
pid_t process_spawn(const char *const argv[], int talk, int said);

#endif
