/* SPDX-License-Identifier: MIT */
/*
 * The state of the library that its entry points share. Private.
 */
#ifndef PATCHCORE_LIFE_LIBRARY_H
#define PATCHCORE_LIFE_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "patchcore/word/word.h"

/*
 * library_sync - how straddlers are patched now, and the atomic window. Lock-free
 * and async-signal-safe. NULL before pc_init() and after pc_fini(): entry points
 * return -ESHUTDOWN then.
 */
const struct sync *library_sync(void);

/* library_sync_of - the same for a caller's own choice; NULL: the process's. */
const struct sync *library_sync_of(const struct pc_choice *choice);

/* library_takes_traps - does SIGTRAP come to us, as far as was seen lately? */
bool library_takes_traps(void);

/*
 * library_assume_waits - let policy wait be had by name, with these waits, whatever machine.conf
 * says or whether there is one. To measure what changes would cost: nothing is claimed about
 * tears, so AUTO waits by them only for a caller who accepts a probability of 1. Ticks; stretch
 * as in pc_status. Before pc_init(), and not while another thread is in it.
 */
void library_assume_waits(uint64_t first, uint64_t second, uint64_t stretch);

#endif
