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

#include "patchcore/patchcore.h"
#include "patchcore/site.h"

#define WORD_INT3 0xcc

/* How the writes of a straddler are kept apart. */
struct sync {
	enum pc_policy policy;	  /* WAIT or MEMBARRIER; AUTO: there is none */
	uint64_t first_wait;	  /* ticks */
	uint64_t second_wait;	  /* ticks */
	uint64_t stretch;	  /* a wait is at least so many times the latency of the stores */
	unsigned window;	  /* bytes that one store changes at once: 8, 16, 32 or 64 */
	struct word_trace *trace; /* filled in with how each straddler went; NULL in production */
};

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

/* A straddler being patched. */
struct word {
	struct site *site; /* held */
	uint8_t *addr;
	uint64_t new_front; /* lowest byte first */
	uint64_t new_back;
	uint8_t old_first; /* what INT3 stands on, for undoing it */
	size_t len;
	size_t front; /* bytes before the boundary */
	const struct sync *sync;
	uint64_t asked;	  /* for the front line: TSC */
	uint64_t latency; /* ticks, the longest of the stores so far */
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
int word_store(uint8_t *addr, const uint8_t *bytes, size_t len);

/*
 * word_hold - take a straddler for a change to new bytes, cut at the boundary.
 * -EAGAIN: another patcher of this library has it. -ENOMEM.
 */
int word_hold(struct word *word, uint8_t *addr, const uint8_t *bytes, size_t len, unsigned window);

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
 * word_patch - change a site by whatever its place needs. The pages must be
 * writable, and for a straddler SIGTRAP must come to us. Errors as pc_patch().
 */
int word_patch(uint8_t *addr, const uint8_t *bytes, size_t len, const struct sync *sync);

/*
 * word_help - for the trap handler: if the calling thread is itself the patcher
 * of this held site, interrupted by a signal whose handler ran into the INT3,
 * do the rest of its work. True: the site is whole, though still held.
 * Async-signal-safe.
 */
bool word_help(struct site *site);

/* membarrier_register - allow sync by membarrier. 0, or -ENOTSUP. */
int membarrier_register(void);

/* membarrier_sync - every running thread of the process serialises. 0 or -errno. */
int membarrier_sync(void);

#endif
