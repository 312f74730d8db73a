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

/*
 * Three groups, each on lines of its own: what every trap reads and a patch
 * hardly ever writes, what the patcher writes and executors leave alone, and what
 * waiting executors watch.
 */
struct site {
	struct entry entry;
	/*
	 * The site whose change this one is held for: that of the instruction in
	 * front. NULL: this is it, or it is free.
	 */
	_Atomic(struct site *) lead;
	/* Where who trapped here goes on, 0: here again. Kept, for late traps. */
	_Atomic(uintptr_t) resume;
	/*
	 * Whose the change is: thread_id() of who writes just now, 0 if nobody
	 * does. The next three are his.
	 */
	_Atomic(uint64_t) owner __attribute__((aligned(SITE_LINE)));
	uint64_t turns;			/* turn as it was when last free */
	_Atomic(enum word_state) state; /* relaxed where read by others: a guess */
	struct word word;		/* the change */
	_Atomic(bool) queued;		/* is it in the list of flights? */
	struct site *next;		/* there */
	/*
	 * Odd while a patcher is between INT3 and front part. Counts on rather
	 * than back, so that a trap handler that was held up can tell "free all
	 * the time" from "free, held, free" (see settle() in trap.c).
	 */
	_Atomic(uint64_t) turn __attribute__((aligned(SITE_LINE)));
};

/* site_find - NULL if no straddler was ever patched there. Async-signal-safe. */
struct site *site_find(uintptr_t addr);

/* site_get - the same, added if need be. NULL: out of memory. */
struct site *site_get(uintptr_t addr);

/* sites_each - as table_each(). */
int sites_each(table_fn *fn, void *arg);

/* Around fork(): nobody is adding a site in the child. */
void sites_fork_lock(void);
void sites_fork_unlock(void);

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

static inline bool site_is_owned_by(const struct site *site, uint64_t thread)
{
	return atomic_load_explicit(&site->owner, memory_order_relaxed) == thread;
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
	/* Who asks again and again must not keep it from who would finish the change. */
	if (atomic_load_explicit(&site->state, memory_order_relaxed) != WORD_IDLE)
		return false;
	if (!site_try_own(site))
		return false;
	if (atomic_load_explicit(&site->state, memory_order_relaxed) != WORD_IDLE) {
		site_disown(site);
		return false;
	}
	atomic_store_explicit(&site->turn, site->turns + 1, memory_order_relaxed);
	return true;
}

/* Only where it changes something: the line is the executors'. Their order is turn's. */
static inline void site_set_lead(struct site *site, struct site *lead)
{
	if (atomic_load_explicit(&site->lead, memory_order_relaxed) != lead)
		atomic_store_explicit(&site->lead, lead, memory_order_release);
}

static inline void site_set_resume(struct site *site, uintptr_t resume)
{
	if (atomic_load_explicit(&site->resume, memory_order_relaxed) != resume)
		atomic_store_explicit(&site->resume, resume, memory_order_relaxed);
}

/*
 * site_release - the owner is done. Release: who sees the site free also sees
 * that its INT3 is gone. Plain stores; they need not wait until the waiting
 * executors have given up the line.
 */
static inline void site_release(struct site *site)
{
	site->turns += 2;
	site_set_lead(site, NULL);
	atomic_store_explicit(&site->turn, site->turns, memory_order_release);
	/* Behind the turn: a drain that finds nothing in flight any more lets its caller go. */
	atomic_store_explicit(&site->state, WORD_IDLE, memory_order_release);
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
