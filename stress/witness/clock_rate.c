/* SPDX-License-Identifier: MIT */
#include "stress/witness/clock_rate.h"

#include "patchcore/machine/wait.h"

#define ADDS  100
#define LOOPS 2500 /* about 100 us */
#define RUNS  20   /* long enough to come up to speed, and one of them undisturbed */

#define TEXT_OF(x) #x
#define TEXT(x)	   TEXT_OF(x)

/*
 * Every add waits for the one before, so a cycle each; the loop's own counting
 * runs beside them. Of registers: some cores do additions of a constant while
 * renaming, for nothing.
 */
static uint64_t time_adds(void)
{
	uint64_t sum = 1, step = 3, loops = LOOPS, begin = ticks_now();

	__asm__ volatile("1:\n\t"
			 ".rept " TEXT(ADDS) "\n\t"
					     "add %[step], %[sum]\n\t"
					     ".endr\n\t"
					     "dec %[loops]\n\t"
					     "jnz 1b"
			 : [sum] "+r"(sum), [loops] "+r"(loops)
			 : [step] "r"(step)
			 : "cc");
	return ticks_now() - begin;
}

double clock_rate(void)
{
	uint64_t best = UINT64_MAX, ticks;

	for (unsigned i = 0; i < RUNS; i++) {
		ticks = time_adds();
		if (ticks && ticks < best)
			best = ticks;
	}
	return best == UINT64_MAX ? -1 : (double)ADDS * LOOPS / (double)best;
}
