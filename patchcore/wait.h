/* SPDX-License-Identifier: MIT */
/*
 * Ticks: reading the TSC and waiting by it. Private.
 */
#ifndef PATCHCORE_WAIT_H
#define PATCHCORE_WAIT_H

#include <stdint.h>
#include <x86intrin.h>

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
 * ticks_wait_since - return no earlier than ticks after start.
 *
 * The comparison is by difference, so a TSC near its wrap does no harm. RDTSC
 * may run ahead of what comes before it here, but a locked store that depends on
 * the outcome cannot: so what follows is at least that late. No PAUSE: on recent
 * Intel parts one takes 140 cycles, which would coarsen every wait.
 */
static inline void ticks_wait_since(uint64_t start, uint64_t ticks)
{
	while (__rdtsc() - start < ticks)
		;
}

/* ticks_wait - the same, from now on. */
static inline void ticks_wait(uint64_t ticks)
{
	ticks_wait_since(ticks_now(), ticks);
}

#endif
