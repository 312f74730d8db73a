/* SPDX-License-Identifier: MIT */
/*
 * The sites that were ever patched with INT3, which are held, and for which change. Private.
 *
 * The trap handler needs this to tell the library's traps from foreign ones. A site, once known,
 * stays known until its code is forgotten: an executor may deliver its trap long after the patch is
 * finished.
 */
#ifndef PATCHCORE_SITE_SITE_H
#define PATCHCORE_SITE_SITE_H

#include "patchcore/machine/wait.h"
#include "patchcore/site/table.h"
#include "patchcore/site/thread.h"

#define SITE_LINE 64

#define WORD_INT3   0xcc
#define WORD_STARTS 8 /* instruction starts in one change at most */

struct merge;
struct site;
struct sync;

/* --- A stretch of code that is changed; text.h begins one and ends it ------------------------- */

#define TEXT_PAGE 4096u

/*
 * Where one patch writes. The code of [addr, addr + len) runs at addr and is written at addr +
 * shift: shift[0] for bytes on the first page, shift[1] for those on the last (the same page, if it
 * does not cross). 0 unless the page has an alias.
 */
struct text_span {
	uint8_t *addr;
	size_t len;
	ptrdiff_t shift[2];
	uint64_t loan; /* made writable for this patch alone: by text_borrow(); else 0 */
};

/* text_at - where the byte that runs at addr, of a span, is written. */
NOPATCH_INLINE uint8_t *text_at(const struct text_span *span, const uint8_t *addr)
{
	bool first = ((uintptr_t)addr & ~(uintptr_t)(TEXT_PAGE - 1)) ==
		     ((uintptr_t)span->addr & ~(uintptr_t)(TEXT_PAGE - 1));

	return (uint8_t *)(uintptr_t)addr + span->shift[first ? 0 : 1];
}

/* --- Sites ------------------------------------------------------------------------------------ */

/* How far the change of a site is: the table is above struct site. */
enum word_state {
	WORD_IDLE,	  /* there is none */
	WORD_HELD,	  /* its owner sees it through to the end */
	WORD_FIRST_WAIT,  /* INT3 stands; the next owner goes on */
	WORD_COMMITTED,	  /* there is no way back any more: the back part is being stored */
	WORD_SECOND_WAIT, /* the back part is there */
	WORD_WRITTEN, /* only the first byte may still be missing, and the pages be given back */
	WORD_UNDONE,  /* the INT3 is being taken back, or was */
};

/*
 * The change of a straddler. First what is new with each change and each step, behind what its site
 * has in front: two lines. Then what is the same with most changes of a site, and is stored only
 * where it differs: executors that help read these lines, and need not lose them.
 */
struct word {
	uint64_t new_front; /* lowest byte first */
	uint64_t new_back;
	uint64_t old_front;  /* what the INT3 stand on, for undoing them */
	struct moment asked; /* for the front line */
	uint64_t latency;    /* ticks, the longest of the stores so far */
	/* For changes that other threads go on with: when the last part was visible, ... */
	struct moment since;
	uint64_t seen;	   /* ... and first seen on another CPU: ns of CLOCK_MONOTONIC_RAW, or 0 */
	unsigned failures; /* of its first sync, so far */
	unsigned also_count;
	struct site *site;     /* held */
	struct text_span span; /* where it runs */
	uint8_t *front_at;     /* where its parts are written */
	uint8_t *back_at;
	size_t front;	    /* bytes before the boundary */
	uint64_t int3_mask; /* 0xff for each byte of the front that starts an instruction */
	const struct sync *sync;
	_Atomic(uint64_t) holder;	    /* id of the patcher that held it and its also */
	const struct merge *merge;	    /* the change is one of these (merge.h); else NULL */
	struct site *also[WORD_STARTS - 1]; /* held for starts behind the first */
};

/* WORD_KEEP - store a member only where it differs. */
#define WORD_KEEP(word, member, value)                                                             \
	do {                                                                                       \
		if ((word)->member != (value))                                                     \
			(word)->member = (value);                                                  \
	} while (0)

/*
 * A site, and the change of it that is being made.
 *
 * `owner` says which thread may write to the code and to the fields below it. `turn` is odd from
 * before the first INT3 until after the last store. `state` is how far the change is; F B are the
 * old front and back part, f b the new ones, 3 is the INT3:
 *
 *   state        code         left by, for
 *   IDLE         F B          a patcher: turn odd (site_try_hold), fields filled in, HELD
 *   HELD         F B or 3 B   the patcher, synchronous, after its sync: COMMITTED
 *                             the patcher, asynchronous, after INT3: FIRST_WAIT, and disowns it
 *                             the patcher, if the sync fails: UNDONE; if nothing is stored: IDLE
 *   FIRST_WAIT   3 B          any owner after a sync: COMMITTED; if none can be had: UNDONE
 *   COMMITTED    3 B or 3 b   the owner, at once: SECOND_WAIT
 *   SECOND_WAIT  3 b          the owner, after a sync: WRITTEN
 *   WRITTEN      3 b or f b   the owner, at once: IDLE, turn even
 *   UNDONE       3 B or F B   the owner, at once: IDLE, turn even
 *
 * Owners: the patcher; then, of a change in flight (FIRST_WAIT or SECOND_WAIT and no owner), every
 * thread that finishes, drains or closes, and an executor that waits at the INT3 (a guest).
 * Where an owner is interrupted by a signal, the trap handler acts as that owner: so each of these
 * transitions is a compare and exchange (site_move()) before the store that it permits, and the
 * owner, back from the signal, goes on from the state that it finds. Where the owner is
 * gone, flight_rescue() takes its place: from HELD by whether the INT3 stands, from COMMITTED by
 * storing the back part again, from the others as any owner. What fork() leaves behind is gone.
 *
 * `lead`: a change with several instruction starts in its front has an INT3 on each. The sites of
 * the others are HELD for the first one's, which has the change and releases them; a trap
 * there is one of the first.
 *
 * A thread that does not own a site reads its atomics alone: all else may change at any moment.
 *
 * Three groups, each on lines of its own: what every trap reads and a patch hardly ever writes,
 * what the owner writes and executors leave alone, and what waiting executors watch.
 */
struct site {
	struct entry entry;
	/*
	 * The site whose change this one is held for: that of the instruction in
	 * front. NULL: this is it, or it is free.
	 */
	_Atomic(struct site *) lead;
	size_t number; /* of its mark; the same for ever */
	/* The owner's id (thread.h), 0: there is none. The rest of the group is the owner's. */
	_Atomic(uint64_t) owner __attribute__((aligned(SITE_LINE)));
	uint64_t turns;			/* turn as it was when last free */
	_Atomic(enum word_state) state; /* relaxed where read by others: a guess */
	_Atomic(bool) undone;		/* the last change was taken back after it had begun */
	_Atomic(bool) by_barrier;	/* its syncs are membarriers; relaxed, `turn` tells whose */
	_Atomic(uint64_t) changes;	/* made so far; relaxed */
	struct word word;		/* the change */
	/*
	 * Odd while a patcher is between INT3 and front part. Counts on rather
	 * than back, so that a trap handler that was held up can tell "free all
	 * the time" from "free, held, free" (see settle_trap() in trap.c).
	 */
	_Atomic(uint64_t) turn __attribute__((aligned(SITE_LINE)));
	/* Relaxed, a hint: the change is in flight, and no thread is at it. */
	_Atomic(bool) needs_help;
	/* Relaxed, a statistic. Here, where a patcher asks for the line for writing anyway. */
	_Atomic(uint64_t) traps;
};

/* site_find - NULL if no straddler was ever patched there. Async-signal-safe. */
struct site *site_find(uintptr_t addr);

/* site_get - the same, added if need be. NULL: out of memory. */
struct site *site_get(uintptr_t addr);

/*
 * site_remove - by the owner of a site that is IDLE and whose code no thread runs any more: it is
 * not known any more.
 */
void site_remove(struct site *site);

/*
 * sites_each - call fn for every site, removed ones too, which are IDLE. sites_each_in - as
 * table_each_in().
 */
typedef void site_fn(struct site *site, void *arg);

void sites_each(site_fn *fn, void *arg);
int sites_each_in(uintptr_t start, uintptr_t end, table_fn *fn, void *arg);

/*
 * A site is marked from before its change begins until a drain finds that it has none. One locked
 * store does it, so a thread that ends at any moment leaves the mark. A marked site costs its next
 * patcher one load.
 *
 * site_mark, site_unmark - by the owner. sites_next_marked - the first one from that number on;
 * NULL: there is no more. Async-signal-safe.
 */
void site_mark(const struct site *site);
void site_unmark(const struct site *site);
struct site *sites_next_marked(size_t number);

/* sites_count - the sum over all sites that ever were: how many are held just now, changes made,
 * traps met. */
struct site_counts {
	uint64_t held, changes, traps;
};

struct site_counts sites_count(void);

/*
 * site_try_own - be the only one that writes there, as thread_id() or thread_guest(). Acquire,
 * pairs with site_disown(): sees all that the owner before has written. site_replace_owner - the
 * same in place of an owner that is gone; 0: there is none.
 */
NOPATCH_INLINE bool site_replace_owner(struct site *site, uint64_t owner, uint64_t id)
{
	return atomic_compare_exchange_strong_explicit(&site->owner, &owner, id,
						       memory_order_acquire, memory_order_relaxed);
}

NOPATCH_INLINE bool site_try_own(struct site *site, uint64_t id)
{
	return site_replace_owner(site, 0, id);
}

NOPATCH_INLINE void site_disown(struct site *site)
{
	store_release(&site->owner, 0);
}

NOPATCH_INLINE bool site_is_owned_by(const struct site *site, uint64_t id)
{
	return load_relaxed(&site->owner) == id;
}

/* site_state - acquire: pairs with site_release(). For a thread that does not own it, a guess. */
NOPATCH_INLINE enum word_state site_state(const struct site *site)
{
	return load_acquire(&site->state);
}

NOPATCH_INLINE void site_set_state(struct site *site, enum word_state state)
{
	store_relaxed(&site->state, state);
}

/*
 * site_move - the owner's: from that state to this one. False: a signal handler of this thread has
 * moved it meanwhile. Not locked: other threads do not write it.
 */
NOPATCH_INLINE bool site_move(struct site *site, enum word_state from, enum word_state to)
{
	bool done;

	__asm__ volatile("cmpxchgl %3, %1"
			 : "=@ccz"(done), "+m"(site->state), "+a"(from)
			 : "r"(to)
			 : "memory");
	return done;
}

/*
 * site_ask_help - shall executors that wait at the INT3 go on with the change? Of a patcher at work
 * they watch the turn alone. Stored only if it differs: they read this line.
 */
NOPATCH_INLINE void site_ask_help(struct site *site, bool needs_help)
{
	if (load_relaxed(&site->needs_help) != needs_help)
		store_relaxed(&site->needs_help, needs_help);
}

/*
 * site_try_hold - own the site that was found for that address, for a change of which nothing is
 * done yet. False: another thread is at it, or has a change in flight there, or forgets that code.
 *
 * The turn is a plain store: the locked store of the INT3 that follows makes it
 * visible first, so no executor can meet the INT3 of a site that looks free.
 */
NOPATCH_INLINE bool site_try_hold(struct site *site, uintptr_t addr, uint64_t id)
{
	/* A caller that retries must not keep the site from the thread that finishes its change. */
	if (site_state(site) != WORD_IDLE)
		return false;
	if (!site_try_own(site, id))
		return false;
	if (site_state(site) != WORD_IDLE || site->entry.addr != addr) {
		site_disown(site);
		return false;
	}
	site_mark(site);
	if (load_relaxed(&site->undone))
		store_relaxed(&site->undone, false);
	store_relaxed(&site->turn, site->turns + 1);
	site_ask_help(site, false);
	return true;
}

/* Stored only if it differs: executors read this line. `turn` puts these stores in order. */
NOPATCH_INLINE void site_set_lead(struct site *site, struct site *lead)
{
	if (load_relaxed(&site->lead) != lead)
		store_release(&site->lead, lead);
}

/*
 * site_release - the owner is done. Release: a thread that sees the site free also sees
 * that its INT3 is gone. Plain stores; they need not wait until the waiting
 * executors have given up the line.
 */
NOPATCH_INLINE void site_release(struct site *site)
{
	site->turns += 2;
	site_set_lead(site, NULL);
	store_release(&site->turn, site->turns);
	/* After the turn: a caller whose drain finds the site IDLE must find its turn even. */
	store_release(&site->state, WORD_IDLE);
	site_disown(site);
}

/*
 * The library's own code, which it does not change: all of the shared library. In a program that
 * has the library linked into it, the NOPATCH code (sys.h): the rest is between the program's own
 * functions, and may be changed like them.
 */
extern uintptr_t own_start, own_end;

/* own_overlaps - is some of it in [addr, addr + len)? Async-signal-safe. */
static inline bool own_overlaps(const void *addr, size_t len)
{
	return (uintptr_t)addr < own_end && (uintptr_t)addr + len > own_start;
}

/*
 * word_hold_also - hold the site of another start along with the one that has the change. It is
 * noted before: if this thread goes no further, the thread that releases the first finds it.
 */
bool word_hold_also(struct word *word, struct site *site, uintptr_t addr);

/* word_release - let the next patcher have the site of a change, and those held along with it. */
void word_release(struct word *word);

/* site_count_change - the owner's: one more change was made. */
NOPATCH_INLINE void site_count_change(struct site *site)
{
	uint64_t changes = load_relaxed(&site->changes);

	store_relaxed(&site->changes, changes + 1);
}

NOPATCH_INLINE uint64_t site_turn(struct site *site)
{
	return load_acquire(&site->turn);
}

/* site_lead - the site that has the change for which this one is held. */
NOPATCH_INLINE struct site *site_lead(struct site *site)
{
	struct site *lead = load_acquire(&site->lead);

	return lead ? lead : site;
}

#endif
