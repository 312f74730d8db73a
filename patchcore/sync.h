/* SPDX-License-Identifier: MIT */
/*
 * What keeps the writes of a straddler apart: a wait, or membarrier. Private.
 */
#ifndef PATCHCORE_SYNC_H
#define PATCHCORE_SYNC_H

#include <stdint.h>

#include "patchcore/patchcore.h"

struct sync {
	enum pc_policy policy;	  /* WAIT or MEMBARRIER; AUTO: there is none */
	uint64_t first_wait;	  /* ticks */
	uint64_t second_wait;	  /* ticks */
	uint64_t stretch;	  /* a wait is at least so many times the latency of the stores */
	unsigned window;	  /* bytes that one store changes at once: 8, 16, 32 or 64 */
	const struct sync *other; /* may be used in place of this where it is cheaper, or NULL */
	struct word_trace *trace; /* filled in with how each straddler went; NULL in production */
};

/* sync_pick - this one or the other, whichever has cost less of late. */
const struct sync *sync_pick(const struct sync *sync);

/*
 * sync_cost - what a pair of syncs has cost under that policy of late, ticks; 0
 * if it was never used. sync_note_cost - it has just cost so much.
 */
uint64_t sync_cost(enum pc_policy policy);
void sync_note_cost(enum pc_policy policy, uint64_t ticks);

/* membarrier_register - allow sync by membarrier. 0, or -ENOTSUP. */
int membarrier_register(void);

/* membarrier_sync - every running thread of the process serialises. 0 or -errno. */
int membarrier_sync(void);

#endif
