/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_PROFILE_CMD_H
#define PROBES_PROFILE_COMMAND_PROFILE_CMD_H

#include <sys/types.h>

#include "probes/launch/launch.h"

/* profile_command - "fastinst profile": argv from its own name on. The exit status. */
int profile_command(int argc, char **argv);

/*
 * attach_profile - profiles a process that runs as the environment says, for so many seconds (0:
 * until it ends, or ^C), and leaves it. The reports are in launch->folder then; agent was set
 * before. STATUS_OK, or STATUS_* after a complaint: folder is empty.
 */
int attach_profile(pid_t pid, double seconds, struct launch *launch);

#endif
