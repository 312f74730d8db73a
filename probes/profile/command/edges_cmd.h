/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_EDGES_CMD_H
#define PROBES_PROFILE_COMMAND_EDGES_CMD_H

/*
 * edges_show - the lines that processes left (probes/profile/edges/agent.c), as one profile.
 * @folder:  is removed
 * @formats: of edges_format(), with a comma between
 * @output:  NULL: standard error
 *
 * Negative errno, which was told.
 */
int edges_show(const char *folder, const char *program, const char *output, const char *formats);

/* edges_format - whether there is one of that name. */
int edges_format(const char *name);

#endif
