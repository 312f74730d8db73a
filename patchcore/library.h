/* SPDX-License-Identifier: MIT */
/*
 * The state of the library that its entry points share. Private.
 */
#ifndef PATCHCORE_LIBRARY_H
#define PATCHCORE_LIBRARY_H

#include <stdbool.h>

#include "patchcore/word.h"

/*
 * library_sync - how straddlers are patched now, and the atomic window. Lock-free
 * and async-signal-safe. NULL before pc_init() and after pc_fini(): entry points
 * return -ESHUTDOWN then.
 */
const struct sync *library_sync(void);

/* library_takes_traps - does SIGTRAP come to us, as far as was seen lately? */
bool library_takes_traps(void);

#endif
