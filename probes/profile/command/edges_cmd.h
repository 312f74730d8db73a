/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_EDGES_CMD_H
#define PROBES_PROFILE_COMMAND_EDGES_CMD_H

#include <stdbool.h>

/*
 * edges_show - the lines that processes left (probes/profile/edges/agent.c), as one profile.
 * @folder: is removed
 * @output: NULL: standard error
 *
 * Negative errno, which was told.
 */
int edges_show(const char *folder, const char *program, const char *output, bool json);

#endif
