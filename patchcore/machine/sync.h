/* SPDX-License-Identifier: MIT */
/* What keeps the writes of a straddler apart: a wait, or membarrier. Private. */
#ifndef PATCHCORE_MACHINE_SYNC_H
#define PATCHCORE_MACHINE_SYNC_H

#include <stdbool.h>

#include "patchcore/patchcore.h"

#define SYNC_LEVELS 32 /* of waits, whose costs are told apart */

struct waits {
	uint64_t first;	  /* ticks between INT3 and the back part */
	uint64_t second;  /* ticks between back and front part */
	uint64_t stretch; /* each is at least so many times the latency of the stores; 0: no */
};

/* Longer latencies are those of a patcher that lost its CPU: they say nothing of the line. */
#define SYNC_LATENCY_MAX UINT64_C(100000) /* ticks */

/*
 * waits_longest - no wait by these is longer: for a patcher that does not time its stores, and
 * waits as long in every change.
 */
static inline uint64_t waits_longest(const struct waits *waits)
{
	uint64_t longest = waits->stretch * SYNC_LATENCY_MAX;

	if (longest < waits->first)
		longest = waits->first;
	return longest < waits->second ? waits->second : longest;
}

struct sync {
	enum pc_policy policy; /* WAIT or MEMBARRIER; AUTO: there is none */
	struct waits waits;
	uint64_t rest;	 /* ticks that the lines were left alone before; 0: they need not be */
	unsigned level;	 /* of machine.conf, from 1 to SYNC_LEVELS; 0: of none */
	unsigned window; /* bytes that one store changes at once: 8, 16, 32 or 64 */
	const struct sync *line;  /* for sites inside one page, or NULL: this one; word_sync() */
	const struct sync *later; /* a wait for changes that are started, or NULL: this one */
	const struct sync *other; /* may be used in place of this where it is cheaper, or NULL */
	/* Of waits that count against pc_set_accept_rate(): membarrier, for when it is used up. */
	const struct sync *instead;
	bool quiet;		  /* a change interrupts no other CPU, or is refused */
	double upper_p;		  /* bound on its tears per change; 0 unless it waits */
	struct word_trace *trace; /* filled in with how each straddler went; NULL in production */
};

/* sync_pick - this one or the other, whichever has cost less of late. */
const struct sync *sync_pick(const struct sync *sync);

/*
 * sync_limit_tears - from now on the waits with an `instead` count their bound against a rate: one
 * tear in so many ticks, 0: any. What is not used is kept, up to what comes in `most` ticks.
 *
 * sync_within_rate - this one, which is counted, or the one instead, if it would be too much.
 * Lock-free and async-signal-safe.
 */
void sync_limit_tears(double ticks, uint64_t most);
const struct sync *sync_within_rate(const struct sync *sync);

/*
 * sync_cost - what a pair of such syncs has cost of late, ticks; 0 if it was never used.
 * Of waits each level has its own. sync_note_cost - it has just cost so much.
 */
uint64_t sync_cost(const struct sync *sync);
void sync_note_cost(const struct sync *sync, uint64_t ticks);

/*
 * sync_expect - what the calibration measured that a level costs, or membarrier; 0: it did not. Of
 * a level this replaces what was known; a membarrier that was used is known better.
 */
#define SYNC_MEMBARRIER (SYNC_LEVELS + 1)
void sync_expect(unsigned level, uint64_t ticks);

/*
 * membarrier_register - allow sync by membarrier. 0, or -ENOTSUP.
 * membarrier_sync - every running thread of the process serialises. 0 or -errno.
 */
int membarrier_register(void);
int membarrier_sync(void);

/*
 * membarrier_sync_surely - the same, where there is no way back: tried so often if it fails for
 * want of memory, and then replaced by a wait of so many ticks, after which no fetch is from before
 * (where membarrier has worked and does not any more).
 */
#define SYNC_TRIES	 16
#define SYNC_LAST_RESORT (UINT64_C(1) << 28)
void membarrier_sync_surely(void);

#endif
