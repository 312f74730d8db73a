/* SPDX-License-Identifier: MIT */
/*
 * What callers have chosen, and the syncs that follow from it. Private.
 */
#ifndef PATCHCORE_MACHINE_CHOICE_H
#define PATCHCORE_MACHINE_CHOICE_H

#include "patchcore/machine/policy.h"

/*
 * A policy and an accepted probability, and what follows from them on this machine. Kept for ever:
 * changes in flight point to the sync. There are as many as callers have had wishes.
 */
struct pc_choice {
	struct pc_choice *next;
	unsigned learned; /* number of the pc_init() that learned its facts */
	enum pc_policy asked;
	double accept_p;
	struct syncs syncs; /* how straddlers are patched, and the atomic window */
	char reason[256];
};

/*
 * choice_sync - how straddlers are patched now, and the atomic window. Lock-free
 * and async-signal-safe. NULL before pc_init() and after pc_fini(): entry points
 * return -ESHUTDOWN then.
 */
const struct sync *choice_sync(void);

/* choice_sync_of - the same for a caller's own choice; NULL: the process's. */
const struct sync *choice_sync_of(const struct pc_choice *choice);

/*
 * choice_get - the one for these wishes, by those facts, which pc_init() number `learned` has
 * learned. NULL: no memory. Callers exclude each other.
 */
struct pc_choice *choice_get(const struct facts *facts, unsigned learned, enum pc_policy policy,
			     double accept_p);

/* choice_use - from now on this is the process's own; NULL: there is none. */
void choice_use(struct pc_choice *choice);

/* choice_in_use - the process's own choice. The caller keeps choice_use() out meanwhile. */
const struct pc_choice *choice_in_use(void);

#endif
