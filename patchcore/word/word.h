/* SPDX-License-Identifier: MIT */
/*
 * Word patching: the steps, and the protocol made of them. Private.
 *
 * The steps are apart so that the harness can also put them together wrongly
 * and show that its oracle notices.
 */
#ifndef PATCHCORE_WORD_WORD_H
#define PATCHCORE_WORD_WORD_H

#include "patchcore/machine/sync.h"
#include "patchcore/site/site.h"

/*
 * One patch of a straddler, to tell why it tore. TSC ticks. latency: from asking for a line to its
 * store being visible everywhere. prepared: of a harness, called when all is ready for the INT3,
 * which is put as soon as it returns; NULL: nothing is.
 */
struct word_trace {
	void (*prepared)(void *arg);
	void *arg;
	uint64_t visible[3]; /* when INT3, back and front part were visible */
	uint64_t latency[3]; /* of the same */
	uint64_t waited[2];
	uint64_t step[2]; /* longest time between two readings of the clock in each wait */
};

/* word_straddles - does [addr, addr + len) cross a multiple of window? */
NOPATCH_INLINE bool word_straddles(const void *addr, size_t len, unsigned window)
{
	return ((uintptr_t)addr & (window - 1)) + len > window;
}

/* word_sync - what keeps the writes apart of a straddler that lies there. */
NOPATCH_INLINE const struct sync *word_sync(const struct sync *sync, const void *addr, size_t len)
{
	return sync->line && !word_straddles(addr, len, TEXT_PAGE) ? sync->line : sync;
}

/*
 * word_is_timed - does a wait count from the INT3? Not under membarrier: to read the clock costs as
 * much as a start.
 */
NOPATCH_INLINE bool word_is_timed(const struct sync *sync)
{
	return sync->policy != PC_POLICY_MEMBARRIER || sync->trace;
}

/*
 * word_expect - ask for all lines that a change of this straddler will write: one trip for all.
 * Before word_hold() alone: during the waits it would take lines away from executors in mid-fetch,
 * which is what makes them tear. The line of the front is left to word_hold() where its latency
 * counts. Returns the site; NULL: there is none yet.
 */
struct site *word_expect(uint8_t *addr, const struct sync *sync);

/*
 * word_put - change bytes inside one 64-byte line of writable code with one locked store.
 * Neighbours in the same 8 bytes keep what they hold at that moment. False, and nothing changed:
 * the first byte is an INT3, so another patcher holds it, or a 1-byte NOP, which may be one of
 * several.
 */
bool word_put(uint8_t *at, const uint8_t *bytes, size_t len);

/* What is to be changed. */
struct change {
	struct text_span span;	 /* begun */
	const uint8_t *bytes;	 /* as many as the span is long */
	uint8_t starts;		 /* bit i: an instruction starts at byte i; bit 0 is set */
	bool merges;		 /* no thread is inside a run of 1-byte NOPs that it may replace */
	const uint8_t *expected; /* the old code must be this, or NULL */
};

/* change_in_place - of one instruction, in code that is writable where it runs. */
static inline struct change change_in_place(uint8_t *addr, const uint8_t *bytes, size_t len)
{
	return (struct change){ .span = { .addr = addr, .len = len }, .bytes = bytes, .starts = 1 };
}

/*
 * word_hold - take a straddler for a change, cut at the boundary of the window.
 * On return *word is the site's own. -EAGAIN: another patcher of this library
 * has it. -ENOMEM. -EILSEQ: see merge_check.h.
 */
int word_hold(struct word **word, const struct change *change, const struct sync *sync);

/*
 * word_hold_again - hold it, and put the INT3, if the change differs from the last one there in
 * nothing but its bytes. One instruction, in open code without an alias, not at rest. NULL: nothing
 * is done, and word_begin() may do it or say why not.
 */
struct word *word_hold_again(struct site *site, uint8_t *addr, const uint8_t *bytes, size_t len,
			     const struct sync *sync);

/*
 * word_await_rest - between holding sites of one choice and the first store: until the lines of
 * those under a level that was measured at rest have rested. That is at most the rest once, and
 * twice if another patcher changes one of the lines meanwhile; or they take the sync beside the
 * level (sync->other: a membarrier), where that costs less.
 */
void word_await_rest(struct site *const *sites, size_t n);

/* word_prepared - between holding it and the first store: let the trace's harness act. */
void word_prepared(struct word *word);

/*
 * word_begin - hold it and put the INT3. Errors of both, and -ESTALE where the old code is not what
 * the change expects; then it is not held.
 */
int word_begin(struct word **word, const struct change *change, const struct sync *sync);

/*
 * word_stretch - the longest wait that the stores so far call for, ticks.
 *
 * The executor's two fetches and the patcher's stores travel the same way. When that way is slow
 * (CPUs far apart, a busy interconnect) the gap between the fetches grows with it, and so does what
 * our own store takes: measured here, while the thing is happening, it says more than any constant.
 */
NOPATCH_INLINE uint64_t word_stretch(const struct word *word, uint64_t ticks)
{
	uint64_t stretched = word->sync->waits.stretch * word->latency;

	return stretched > ticks ? stretched : ticks;
}

/*
 * The three writes, each one locked store; visible everywhere on return.
 * word_put_int3: -EAGAIN and nothing changed if there was an INT3 already, a
 * debugger's or that of a patcher that is not of this library.
 */
int word_put_int3(struct word *word);
void word_put_back(struct word *word);
void word_put_front(struct word *word);

/*
 * word_undo - by the owner, from HELD or FIRST_WAIT: take the INT3 back. False, and nothing
 * changed: a signal handler of this thread has made the change meanwhile.
 */
bool word_undo(struct word *word);

/* The stores of a change, as a trace counts them. */
enum word_part {
	WORD_PART_INT3,
	WORD_PART_BACK,
	WORD_PART_FRONT
};

/*
 * word_note_store - right after one that was asked for then. When it was visible. If the patcher
 * has migrated meanwhile it cannot be told how long that took: the longest latency that may count.
 */
struct moment word_note_store(struct word *word, enum word_part which, struct moment asked);

/* word_note_visible - the same, where the caller knows when that was. */
void word_note_visible(struct word *word, enum word_part which, struct moment asked,
		       struct moment visible);

/*
 * word_set_since - the time of a sync begins now. word_note_since - right after a store that was
 * asked for then: the same, and word_note_visible(); not of an INT3 under membarrier.
 * word_has_passed - have so many ticks since?
 */
void word_set_since(struct word *word);
void word_note_since(struct word *word, enum word_part which, struct moment asked);
bool word_has_passed(struct word *word, uint64_t ticks);

/*
 * word_store_back, word_store_front - by the owner, after the sync that each needs: make the
 * transition and the store, unless a signal handler of this thread has.
 */
void word_store_back(struct word *word);
void word_store_front(struct word *word);

/*
 * word_settle - by the owner: the last store of a change that is WRITTEN or UNDONE, if it is still
 * missing. It replaces an INT3 and nothing else, so it is made once.
 */
void word_settle(struct word *word);

/*
 * word_finish - the rest of a change whose INT3 stands: both syncs, back and
 * front, from the state it is in. 0: it is made. -ECANCELED: it is undone. Else what the first
 * sync failed with; then the INT3 still stands. Async-signal-safe.
 * word_finish_all - the same for some that the caller owns, at least one: each step for all before
 * the next for any, so one sync does for all. 0 also where some are undone.
 */
int word_finish(struct word *word);
int word_finish_all(struct site *const *sites, size_t n);

/* word_has_failed - count one more failure of the first sync. True: there will be no sync. */
bool word_has_failed(struct word *word, int error);

/*
 * word_patch - change a site: by one store inside the window, a straddler by the sync that
 * word_sync() and sync_pick() choose. The pages must be writable, and for a straddler SIGTRAP
 * must come to us. Errors as pc_patch().
 */
int word_patch(const struct change *change, const struct sync *sync);

/*
 * word_publish - the same for code that no thread runs: the stores and nothing else, back first.
 * -EAGAIN, -ESTALE, -EILSEQ as pc_patch_how().
 */
int word_publish(const struct change *change, const struct sync *sync);

#endif
