/* SPDX-License-Identifier: MIT */
/* Profiles of edges. */
#ifndef PROFILE_COMMAND_EDGES_H
#define PROFILE_COMMAND_EDGES_H

#include "profile/command/write.h"

/*
 * edges_sort - edges with most runs first. Complains where there are blocks, and no edge was
 * counted.
 */
void edges_sort(struct profile *profile);

/* edges_format - the format of that name for profiles of edges, or NULL. */
const struct profile_format *edges_format(const char *name);

#endif
