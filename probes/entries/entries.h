/* SPDX-License-Identifier: MIT */
#ifndef PROBES_ENTRIES_ENTRIES_H
#define PROBES_ENTRIES_ENTRIES_H

#include "probes/core/provider.h"

/* entries_asked - whether fi_take_entries() has asked for others since this was called last. The
 * core's lock is held. */
bool entries_asked(void);

/* entries_own - whether the object is this library, or a program that it is linked into. */
bool entries_own(const struct object *object);

#endif
