/* SPDX-License-Identifier: MIT */
/*
 * Ticks: reading the TSC and waiting by it. Private.
 */
#ifndef PATCHCORE_WAIT_H
#define PATCHCORE_WAIT_H

#include <stdint.h>
#include <x86intrin.h>

/* line_for_writing - ask for the line that addr runs from while other things are looked up. */
static inline void line_for_writing(const void *addr)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

/*
 * ticks_now - the TSC, read after every earlier load has completed. After a
 * locked store (which drains the store buffer) this is a time at which that
 * store was globally visible: SDM vol. 2, RDTSC and LFENCE.
 */
static inline uint64_t ticks_now(void)
{
	_mm_lfence();
	return __rdtsc();
}

/*
 * ticks_passed - ticks since *last, which becomes now. A TSC that steps back (a
 * guest that was moved) gives 0: nobody knows how long that was.
 */
static inline uint64_t ticks_passed(uint64_t *last)
{
	uint64_t now = __rdtsc();
	int64_t step = (int64_t)(now - *last);

	*last = now;
	return step > 0 ? (uint64_t)step : 0;
}

/*
 * ticks_wait_since - return no earlier than ticks after start.
 *
 * The steps are added up, so neither a TSC near its wrap nor one that steps back
 * makes the wait shorter, or endless. RDTSC may run ahead of what comes before
 * it here, but a locked store that depends on the outcome cannot: so what
 * follows is at least that late. No PAUSE: on recent Intel parts one takes 140
 * cycles, which would coarsen every wait.
 */
static inline void ticks_wait_since(uint64_t start, uint64_t ticks)
{
	uint64_t waited = 0;

	do {
		waited += ticks_passed(&start);
	} while (waited < ticks);
}

/*
 * ticks_wait_watched - the same, and returns the longest time between two
 * readings of the clock: how long the waiting CPU itself stood still at most.
 * UINT64_MAX: the TSC stepped back.
 */
static inline uint64_t ticks_wait_watched(uint64_t start, uint64_t ticks)
{
	uint64_t waited = 0, longest = 0;

	do {
		uint64_t before = start, step = ticks_passed(&start);

		if ((int64_t)(start - before) < 0)
			longest = UINT64_MAX;
		if (step > longest)
			longest = step;
		waited += step;
	} while (waited < ticks);
	return longest;
}

/* ticks_wait - like ticks_wait_since, from now on. */
static inline void ticks_wait(uint64_t ticks)
{
	ticks_wait_since(ticks_now(), ticks);
}

#endif
