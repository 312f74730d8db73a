/* SPDX-License-Identifier: MIT */
/* Profiles of edges. */
#ifndef PROBES_PROFILE_COMMAND_EDGES_H
#define PROBES_PROFILE_COMMAND_EDGES_H

#include "probes/profile/write/write.h"

/* edges_sort - the most first. Complains where blocks were run, and no edge was counted. 0. */
int edges_sort(struct profile *profile);

/* edges_format - by name: one of these, or one that both kinds of profiles have; NULL. */
const struct profile_format *edges_format(const char *name);

/* edges_write_autofdo - what create_llvm_prof and create_gcov read with --profiler=text, of one
 * object. */
profile_writer edges_write_autofdo;

#endif
