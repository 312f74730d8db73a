/* SPDX-License-Identifier: MIT */
/*
 * Code that signal handlers have interrupted: the frames that the kernel has put
 * on a stack. Private. All is NOPATCH.
 *
 * A frame is known by its return address, which is the restorer that the handler
 * was installed with; the C library has one for all. Of a stack the first
 * FRAMES_REACH bytes are searched.
 */
#ifndef PATCHCORE_MERGE_FRAMES_H
#define PATCHCORE_MERGE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "patchcore/kernel/kernel_signal.h"

#define FRAMES_REACH  (256u << 10) /* bytes per stack */
#define FRAMES_STACKS 8		   /* one leading to the next */
#define FRAMES_CHUNK  2048u	   /* bytes, read at once */

struct frames {
	uintptr_t restorers[KERNEL_SIGNALS];
	unsigned count;
};

/*
 * The places behind start and before end, but for the doors: bit i, an INT3 of ours
 * stands at start + i.
 */
struct frames_inside {
	uintptr_t start;
	uintptr_t end;
	unsigned doors;
	unsigned found; /* threads and frames that were not moved out. Atomically */
};

/* Such places of several changes, in order of address. None reaches into another. */
struct frames_places {
	struct frames_inside *inside;
	size_t n;
};

/* What one search needs, for which the stack of a signal handler may be too small. */
struct frames_search {
	unsigned stack_count;
	uintptr_t stacks[FRAMES_STACKS]; /* where to search from */
	uintptr_t words[FRAMES_CHUNK / sizeof(uintptr_t)];
};

NOPATCH_INLINE bool frames_is_door(const struct frames_inside *inside, uintptr_t pc)
{
	return pc - inside->start < 32 && (inside->doors >> (pc - inside->start) & 1);
}

NOPATCH_INLINE bool frames_is_inside(const struct frames_inside *inside, uintptr_t pc)
{
	return pc > inside->start && pc < inside->end && !frames_is_door(inside, pc);
}

/* frames_find - the one that pc is in, or NULL. */
NOPATCH_INLINE struct frames_inside *frames_find(const struct frames_places *places, uintptr_t pc)
{
	size_t low = 0, high = places->n, mid;

	/* Below low they start before pc, from high on they do not. */
	while (low < high) {
		mid = low + (high - low) / 2;
		if (places->inside[mid].start < pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || !frames_is_inside(&places->inside[low - 1], pc))
		return NULL;
	return &places->inside[low - 1];
}

/* frames_count - one more was found there. */
NOPATCH_INLINE void frames_count(struct frames_inside *inside)
{
	__atomic_fetch_add(&inside->found, 1, __ATOMIC_SEQ_CST);
}

/* frames_learn - which restorers are in use now. */
void frames_learn(struct frames *frames);

/*
 * frames_visit - for every frame on the stack above sp, and on those that it leads
 * to: is its place inside one of them? Then set it to the end of that, if move is set; else it
 * is counted there. search: memory to work with. Returns how many such there were, or -EACCES:
 * stacks cannot be read. Async-signal-safe.
 *
 * An executor that waits in our trap handler, with all signals blocked, has a
 * place behind the INT3 in its frame, but goes back to it. So without move,
 * frames of INT3 at a door are passed over; with move there are none, since the
 * signal of the look does not get through to such an executor. And a thread that was
 * found inside by a look leaves the frame of that behind: these are passed over, too.
 */
int frames_visit(const struct frames *frames, struct frames_search *search, uintptr_t sp,
		 const struct frames_places *places, bool move);

#endif
