/* SPDX-License-Identifier: MIT */
/*
 * The sites that were ever patched with INT3, and which are held. Private.
 *
 * The trap handler needs this to tell our traps from other people's. A site,
 * once known, stays known: an executor may deliver its trap long after the
 * patch is finished.
 */
#ifndef PATCHCORE_SITE_H
#define PATCHCORE_SITE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "patchcore/table.h"

struct word;

#define SITE_LINE 64

struct site {
	struct entry entry;
	/*
	 * The patch in flight, for word_help(). On the patcher's stack: only
	 * signal handlers of that very thread may look at it.
	 */
	_Atomic(struct word *) word;
	_Atomic(uintptr_t) patcher; /* thread_self() of the holder, 0 if none */
	_Atomic(uint64_t) last;	    /* turn as the last holder left it; a guess */
	/*
	 * Odd while a patcher is between INT3 and front part. Counts on rather
	 * than back, so that a trap handler that was held up can tell "free all
	 * the time" from "free, held, free" (see settle() in trap.c). On a line
	 * of its own, since waiting executors watch it.
	 */
	_Atomic(uint64_t) turn __attribute__((aligned(SITE_LINE)));
};

/* thread_self - tells threads of this process apart. Async-signal-safe. */
static inline uintptr_t thread_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* site_find - NULL if no straddler was ever patched there. Async-signal-safe. */
struct site *site_find(uintptr_t addr);

/* site_get - the same, added if need be. NULL: out of memory. */
struct site *site_get(uintptr_t addr);

/* site_any_held - is a patch in flight anywhere? */
bool site_any_held(void);

/*
 * Acquire, pairs with site_release: the next holder sees what the last one
 * wrote. Starts from a guess, because reading turn first would cost a second
 * transfer of a line that executors hold.
 */
static inline bool site_try_hold(struct site *site)
{
	uint64_t turn = atomic_load_explicit(&site->last, memory_order_relaxed);

	while (turn % 2 == 0)
		if (atomic_compare_exchange_weak_explicit(&site->turn, &turn, turn + 1,
							  memory_order_acquire,
							  memory_order_relaxed)) {
			atomic_store_explicit(&site->last, turn + 2, memory_order_relaxed);
			return true;
		}
	return false;
}

/*
 * Release: who sees the site free also sees that its INT3 is gone. A plain
 * store, since only the holder writes in an odd turn; it need not wait until
 * the waiting executors have given up the line.
 */
static inline void site_release(struct site *site)
{
	uint64_t next = atomic_load_explicit(&site->last, memory_order_relaxed);

	atomic_store_explicit(&site->turn, next, memory_order_release);
}

static inline uint64_t site_turn(struct site *site)
{
	return atomic_load_explicit(&site->turn, memory_order_acquire);
}

#endif
