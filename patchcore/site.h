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
#include "patchcore/thread.h"
#include "patchcore/word.h"

#define SITE_LINE 64

struct site {
	struct entry entry;
	/*
	 * Whose the change is: thread_id() of who writes just now, 0 if nobody
	 * does. All else in here but turn, lead, resume, queued and next is his.
	 */
	_Atomic(uint64_t) owner;
	uint64_t turns;			/* turn as it was when last free */
	_Atomic(enum word_state) state; /* relaxed where read by others: a guess */
	struct word word;		/* the change */
	/*
	 * The site whose change this one is held for: that of the instruction in
	 * front. NULL: this is it. Kept, for late traps.
	 */
	_Atomic(struct site *) lead;
	/* Where who trapped here goes on, 0: here again. Kept, for late traps. */
	_Atomic(uintptr_t) resume;
	_Atomic(bool) queued; /* is it in the list of flights? */
	struct site *next;    /* there */
	/*
	 * Odd while a patcher is between INT3 and front part. Counts on rather
	 * than back, so that a trap handler that was held up can tell "free all
	 * the time" from "free, held, free" (see settle() in trap.c). On a line
	 * of its own, since waiting executors watch it.
	 */
	_Atomic(uint64_t) turn __attribute__((aligned(SITE_LINE)));
};

/* site_find - NULL if no straddler was ever patched there. Async-signal-safe. */
struct site *site_find(uintptr_t addr);

/* site_get - the same, added if need be. NULL: out of memory. */
struct site *site_get(uintptr_t addr);

/* sites_each - as table_each(). */
int sites_each(table_fn *fn, void *arg);

/* site_any_held - is a patch in flight anywhere? */
bool site_any_held(void);

/*
 * site_try_own - be the only one who writes there. Acquire, pairs with
 * site_disown(): sees all that the owner before has written.
 */
static inline bool site_try_own(struct site *site)
{
	uint64_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(&site->owner, &nobody, thread_id(),
						       memory_order_acquire, memory_order_relaxed);
}

static inline void site_disown(struct site *site)
{
	atomic_store_explicit(&site->owner, 0, memory_order_release);
}

/*
 * site_try_hold - own it for a change of which nothing is done yet. False:
 * somebody else is at it, or has a change in flight there.
 *
 * The turn is a plain store: the locked store of the INT3 that follows makes it
 * visible first, so nobody can meet the INT3 of a site that looks free.
 */
static inline bool site_try_hold(struct site *site)
{
	if (!site_try_own(site))
		return false;
	if (atomic_load_explicit(&site->state, memory_order_relaxed) != WORD_IDLE) {
		site_disown(site);
		return false;
	}
	atomic_store_explicit(&site->turn, site->turns + 1, memory_order_relaxed);
	return true;
}

/*
 * site_release - the owner is done. Release: who sees the site free also sees
 * that its INT3 is gone. Plain stores; they need not wait until the waiting
 * executors have given up the line.
 */
static inline void site_release(struct site *site)
{
	site->turns += 2;
	atomic_store_explicit(&site->state, WORD_IDLE, memory_order_relaxed);
	atomic_store_explicit(&site->turn, site->turns, memory_order_release);
	site_disown(site);
}

static inline uint64_t site_turn(struct site *site)
{
	return atomic_load_explicit(&site->turn, memory_order_acquire);
}

/* site_lead - the site that has the change for which this one is held. */
static inline struct site *site_lead(struct site *site)
{
	struct site *lead = atomic_load_explicit(&site->lead, memory_order_acquire);

	return lead ? lead : site;
}

#endif
