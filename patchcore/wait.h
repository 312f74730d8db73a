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
 * ticks_wait - return no earlier than ticks after now.
 *
 * The comparison is by difference, so a TSC near its wrap does no harm. The
 * loop has no PAUSE: on recent Intel parts one PAUSE takes 140 cycles, which
 * would coarsen every wait.
 */
static inline void ticks_wait(uint64_t ticks)
{
	uint64_t start = ticks_now();

	while (ticks_now() - start < ticks)
		;
}

#endif
