/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_EDGES_CALLS_H
#define PROBES_PROFILE_COMMAND_EDGES_CALLS_H

#include "probes/profile/command/edges_sites.h"
#include "probes/profile/lines/lines.h"

/*
 * edges_calls - where calls of an object led, by the address of the call; free() it. Their names
 * are in the image. None, where fastinst was built without a decoder. 0 or -ENOMEM.
 */
int edges_calls(const struct sites *sites, struct target **target, size_t *n);

#endif
