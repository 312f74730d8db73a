/* SPDX-License-Identifier: MIT */
/*
 * What the program does, seen by turning all its probes on for a moment.
 *
 * An event tells in which function the thread was until then: an exit in its own, an entry in the
 * caller. So what a thread does from one event to the next is known at the next one, also of
 * functions without exits, and without knowing how the thread came there.
 *
 * 1. The thread of epochs notes each thread's clock, and turns all probes on that are off.
 * 2. It gives the glance a number. Threads note how long they were where.
 * 3. It sets the glance's end. A thread's first event behind it tells what the thread did until it,
 *    so a long stretch without events is seen as well as a short one.
 * 4. When all threads that run have had one, or are not waited for any longer, the number is 0
 *    again, and the thread of epochs reads what was noted.
 */
#ifndef PROBES_PROFILE_SAMPLE_GLANCE_H
#define PROBES_PROFILE_SAMPLE_GLANCE_H

#include "probes/profile/sample/watch.h"

#define GLANCE_FUNCTION __attribute__((target("general-regs-only")))

/* glance_number - of the one under way, or 0. */
static inline uint64_t glance_number(void)
{
	/* Pairs with the release of glance_begin(): the clocks that it noted are there. */
	return load_acquire(&watch_common.glance);
}

/*
 * glance_clock - when all loads of the program have come: a function that waits for memory has the
 * time of it, and not the next one.
 */
static inline GLANCE_FUNCTION uint64_t glance_clock(void)
{
	asm volatile("lfence" : : : "memory");
	return __builtin_ia32_rdtsc();
}

/*
 * glance_event - until now the thread was at that address, but for what its last probe took.
 * glance_go_on - the event is over.
 * @number: of the glance
 */
void glance_event(struct ring *ring, uint64_t number, uint64_t at, uint64_t now) GLANCE_FUNCTION;
void glance_go_on(struct ring *ring, uint64_t now) GLANCE_FUNCTION;

/* --- The thread of epochs --------------------------------------------------------------------- */

/* glance_begin - step 1's clocks, and step 2. glance_end - step 3. glance_over - step 4. */
void glance_begin(void);
void glance_end(void);
void glance_over(void);

/* glance_waits - whether a thread that has used a CPU since the last call has had no event yet. */
bool glance_waits(void);

/* glance_unknown - ticks of all threads until the end, of which none told. */
uint64_t glance_unknown(void);

#endif
