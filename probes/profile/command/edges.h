/* SPDX-License-Identifier: MIT */
/*
 * Profiles of edges: what processes reported (probes/profile/edges/agent.c), and the formats that
 * are of those only.
 */
#ifndef PROBES_PROFILE_COMMAND_EDGES_H
#define PROBES_PROFILE_COMMAND_EDGES_H

#include "probes/profile/write/write.h"

/* edges_gather - as gather(). Edges come with the most first. */
int edges_gather(struct profile *profile, const char *folder);

/* edges_format - by name: one of these, or one that both kinds of profiles have; NULL. */
const struct profile_format *edges_format(const char *name);

/* edges_write_autofdo - what create_llvm_prof and create_gcov read with --profiler=text, of one
 * object. */
profile_writer edges_write_autofdo;

#endif
