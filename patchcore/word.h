/* SPDX-License-Identifier: MIT */
/*
 * Word patching: the steps, and the protocol made of them. Private.
 *
 * The steps are apart so that the harness can also put them together wrongly
 * and show that its oracle notices.
 */
#ifndef PATCHCORE_WORD_H
#define PATCHCORE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/sync.h"
#include "patchcore/text.h"

#define WORD_INT3   0xcc
#define WORD_STARTS 8 /* instruction starts in one change at most */

struct site;

/*
 * One patch of a straddler, for whoever wants to know why it tore. TSC ticks.
 * latency: from asking for a line to its store being visible everywhere.
 */
struct word_trace {
	uint64_t visible[3]; /* when INT3, back and front were */
	uint64_t latency[3]; /* of the same */
	uint64_t waited[2];
	uint64_t step[2]; /* longest time between two readings of the clock in each wait */
};

/* How far the change of a site is. */
enum word_state {
	WORD_IDLE,	  /* there is none */
	WORD_HELD,	  /* its owner sees it through to the end */
	WORD_FIRST_WAIT,  /* INT3 stands; whoever owns the site next goes on */
	WORD_SECOND_WAIT, /* the back part is there */
	WORD_WRITTEN,	  /* the code is whole; only the pages are still to be given back */
};

/* The change of a straddler. */
struct word {
	struct site *site; /* held */
	uint8_t *addr;	   /* where it runs */
	uint8_t *front_at; /* where its parts are written */
	uint8_t *back_at;
	uint64_t new_front; /* lowest byte first */
	uint64_t new_back;
	uint64_t old_front; /* what the INT3 stand on, for undoing them */
	uint64_t int3_mask; /* 0xff for each byte of the front that starts an instruction */
	size_t len;
	size_t front; /* bytes before the boundary */
	const struct sync *sync;
	uint64_t asked;	  /* for the front line: TSC */
	uint64_t latency; /* ticks, the longest of the stores so far */
	/* For changes that others go on with: when the last part was visible, ... */
	uint64_t since; /* ... TSC, ... */
	unsigned cpu;	/* ... as read there, ... */
	uint64_t seen;	/* ... and first seen on another CPU: ns of CLOCK_MONOTONIC_RAW, or 0 */
	struct text_span span;
	uint64_t holder;		    /* thread_id() of who held it and its also */
	struct site *also[WORD_STARTS - 1]; /* held for starts behind the first */
	unsigned also_count;
};

/* word_straddles - does [addr, addr + len) cross a multiple of window? */
static inline bool word_straddles(const void *addr, size_t len, unsigned window)
{
	return ((uintptr_t)addr & (window - 1)) + len > window;
}

/*
 * word_store - change bytes inside one window with one locked store.
 *
 * Neighbours in the same 8 bytes keep what they hold at that moment. The range
 * must not cross a 64-byte line. -EAGAIN, nothing changed: its first byte is
 * INT3, so another patcher holds it.
 */
int word_store(uint8_t *at, const uint8_t *bytes, size_t len);

/* What is to be changed. */
struct change {
	struct text_span span; /* begun */
	const uint8_t *bytes;  /* as many as the span is long */
	uint8_t starts;	       /* bit i: an instruction starts at byte i; bit 0 is set */
	bool merges;	       /* nobody is inside a run of 1-byte NOPs that it may replace */
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

/* word_begin - hold it and put the INT3. Errors of both, and then it is not held. */
int word_begin(struct word **word, const struct change *change, const struct sync *sync);

/*
 * word_stretch - the longest wait that the stores so far call for, ticks.
 *
 * The executor's two fetches and the patcher's stores travel the same way. When
 * that way is slow (CPUs far apart, a busy interconnect) the gap between the
 * fetches grows with it, and so does what our own store takes: measured here,
 * while the thing is happening, it says more than any constant.
 */
uint64_t word_stretch(const struct word *word, uint64_t ticks);

/* word_release - let the next patcher have it. */
void word_release(struct word *word);

/*
 * The three writes, each one locked store; visible everywhere on return.
 * word_put_int3: -EAGAIN and nothing changed if there was an INT3 already, a
 * debugger's or that of a patcher that is not of this library.
 */
int word_put_int3(struct word *word);
void word_put_back(struct word *word);
void word_put_front(struct word *word);

/*
 * word_undo - put the old front back in place of the INT3. False, and nothing
 * changed: they are gone, somebody has made the change meanwhile.
 */
bool word_undo(const struct word *word);

/* The stores of a change, as a trace counts them. */
enum word_part {
	WORD_PART_INT3,
	WORD_PART_BACK,
	WORD_PART_FRONT
};

/* word_note_store - right after one that was asked for then (TSC). When it was visible. */
uint64_t word_note_store(struct word *word, enum word_part which, uint64_t asked);

/* word_note_visible - the same, for who knows when that was. */
void word_note_visible(struct word *word, enum word_part which, uint64_t asked, uint64_t visible);

/*
 * word_finish - the rest of a change whose INT3 stands: both syncs, back and
 * front. Doing it again, or anew from any point, changes nothing. 0, or what
 * the first sync failed with; then the INT3 still stands. Async-signal-safe.
 */
int word_finish(struct word *word);

/*
 * word_patch - change a site by whatever its place needs. The pages must be
 * writable, and for a straddler SIGTRAP must come to us. Errors as pc_patch().
 */
int word_patch(const struct change *change, const struct sync *sync);

#endif
