/* SPDX-License-Identifier: MIT */
#ifndef PROFILE_COMMAND_PROFILE_CMD_H
#define PROFILE_COMMAND_PROFILE_CMD_H

/* profile_command - "fastinst profile": argv from its own name on. The exit status. */
int profile_command(int argc, char **argv);

#endif
