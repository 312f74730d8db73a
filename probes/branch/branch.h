/* SPDX-License-Identifier: MIT */
/*
 * The provider of static branches and static calls. They are no probes: they have no ids, and what
 * turns on all probes of a program leaves them alone.
 */
#ifndef PROBES_BRANCH_BRANCH_H
#define PROBES_BRANCH_BRANCH_H

#include "probes/core/core.h"
#include "probes/elf/elf.h"

extern const struct provider branch_provider;

/* The calls of an object that was just loaded. The core's lock is held. */
int call_discover(struct object *object, const struct elf *elf);

#endif
