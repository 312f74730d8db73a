/* SPDX-License-Identifier: MIT */
/*
 * Code that signal handlers have interrupted: the frames that the kernel has put
 * on a stack. Private.
 *
 * A frame is known by its return address, which is the restorer that the handler
 * was installed with; the C library has one for all. Of a stack the first
 * FRAMES_REACH bytes are searched.
 */
#ifndef PATCHCORE_FRAMES_H
#define PATCHCORE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define FRAMES_REACH   (256u << 10) /* bytes per stack */
#define FRAMES_SIGNALS 64

struct frames {
	uintptr_t restorers[FRAMES_SIGNALS];
	unsigned count;
};

/* frames_learn - which restorers are in use now. */
void frames_learn(struct frames *frames);

/*
 * frames_visit - for every frame on the stack above sp, and on those that it leads
 * to: is its place behind start and before end? Then set it to end, if move is
 * set. Returns how many such there were, or -EACCES: stacks cannot be read.
 * Async-signal-safe.
 *
 * An executor that waits in our trap handler, with all signals blocked, has a
 * place behind the INT3 in its frame, but goes back to it. So without move,
 * frames of INT3 are passed over; with move there are none, since the signal of
 * the look does not get through to such an executor.
 */
int frames_visit(const struct frames *frames, uintptr_t sp, uintptr_t start, uintptr_t end,
		 bool move);

#endif
