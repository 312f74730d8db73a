/* SPDX-License-Identifier: MIT */
/*
 * Calls that are timed, from entry to exit: a stack per thread.
 *
 * An exit belongs to an entry if it has the same function, and its return address is in the same
 * place: no two calls that are under way share that. Of an entry whose exit never comes (tail call,
 * exception, longjmp) nothing is told but that there was one: the next entry or exit of the thread
 * at that place or above it drops it. Between such an entry and the next call of the function the
 * probe of the entry is never off: it is turned off only when no call of the function is timed, or
 * all that are have been cut. So no exit of a later call, which was not seen to begin, can be taken
 * for it.
 *
 * With -finstrument-functions a probe is a call of a hook in the function, and the function is told
 * by its address; its return address is looked for above the stack pointer.
 */
#ifndef PROBES_PROFILE_SAMPLE_FRAMES_H
#define PROBES_PROFILE_SAMPLE_FRAMES_H

#include "probes/profile/sample/watch.h"

#define FRAMES_FUNCTION __attribute__((target("general-regs-only")))

/* What a probe is at: the function, the place of its return address, and the address. */
struct spot {
	uint64_t function, slot, from;
};

/* frames_spot - false: the return address was not found. @entry: the probe of the function's entry
 */
bool frames_spot(struct spot *spot, uint32_t entry, const struct fi_regs *regs) FRAMES_FUNCTION;

/* frames_clear - what cannot be under way any more when a function is entered there. */
void frames_clear(struct ring *ring, const struct spot *spot, bool hooks) FRAMES_FUNCTION;

/*
 * frames_enter - a call begins, if the state of its watch is still the one that it saw, and there
 * is room: then depth is one more. frames_start - from here on its time is taken.
 */
void frames_enter(struct ring *ring, uint32_t id, uint64_t state,
		  const struct spot *spot) FRAMES_FUNCTION;

void frames_start(struct ring *ring) FRAMES_FUNCTION;

/* frames_leave - one ends, that was entered or not. True: it was, and frame has it. */
bool frames_leave(struct ring *ring, const struct spot *spot, bool hooks,
		  struct frame *frame) FRAMES_FUNCTION;

/* frames_cut - no call of it that is under way is timed any more. */
void frames_cut(struct watch *watch) FRAMES_FUNCTION;

/* frames_without_cpu - ticks until now that are not in what was used, from some time on. */
uint64_t frames_without_cpu(const struct timespec *used, uint64_t now) FRAMES_FUNCTION;

/* frames_waited - ticks that the calling thread was without a CPU, from some time on until now. */
uint64_t frames_waited(struct ring *ring, uint64_t now) FRAMES_FUNCTION;

/*
 * frames_overlong - a function that is called so often that it has windows took so long for one
 * call: so the machine was stopped in it, or many threads were. The clocks of threads run on then.
 */
bool frames_overlong(const struct watch *watch, int64_t wall) FRAMES_FUNCTION;

/* frames_drop - all of a thread that ends. */
void frames_drop(struct ring *ring);

#endif
