/* SPDX-License-Identifier: MIT */
/*
 * Ticks: reading the TSC and waiting by it. Private.
 *
 * Every CPU has a TSC of its own. They should agree; where the kernel doubts that, or where RDTSCP
 * does not tell the CPU, nothing is waited by them (tsc.h). Where it is not in doubt, two readings
 * are compared all the same only if they are of one CPU: a patcher that migrates to a CPU whose TSC
 * is ahead would cut its wait short. All of this runs while an INT3 stands.
 */
#ifndef PATCHCORE_MACHINE_WAIT_H
#define PATCHCORE_MACHINE_WAIT_H

#include <stdbool.h>

#include "patchcore/syscall/sys.h"

/* line_for_writing - ask for the line that addr runs from while other things are looked up. */
NOPATCH_INLINE void line_for_writing(const void *addr)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

/*
 * ticks_now - the TSC, read after every earlier load has completed. After a locked store (which
 * drains the store buffer) this is a time at which that store was globally visible: SDM vol. 2,
 * RDTSC and LFENCE. For what takes long enough, or where a wrong time does no harm; else see
 * moment_now().
 */
NOPATCH_INLINE uint64_t ticks_now(void)
{
	__builtin_ia32_lfence();
	return __builtin_ia32_rdtsc();
}

/* A reading of a TSC, and what says whose it was. */
struct moment {
	uint64_t ticks;
	unsigned cpu; /* TSC_AUX: the node and the CPU, as Linux sets it */
};

/* There is no RDTSCP: set once by tsc_learn(), and then nothing is waited by ticks. */
extern bool moment_lacks_cpu __attribute__((visibility("hidden")));

/* moment_now - as ticks_now(): RDTSCP waits for earlier loads by itself. */
NOPATCH_INLINE struct moment moment_now(void)
{
	struct moment now = { .cpu = 0 };

	if (__builtin_expect(moment_lacks_cpu, false))
		now.ticks = ticks_now();
	else
		now.ticks = __builtin_ia32_rdtscp(&now.cpu);
	return now;
}

/*
 * moment_known - can it be told how long it was from one to the other? Not between two CPUs, nor
 * when the TSC steps back (a guest that was moved).
 */
NOPATCH_INLINE bool moment_known(struct moment from, struct moment to)
{
	return from.cpu == to.cpu && (int64_t)(to.ticks - from.ticks) >= 0;
}

/* In less than that no thread leaves a CPU and comes back: three context switches. */
#define MOMENT_STAYED 2000

/*
 * moment_visible - right after a locked store that was asked for then: when it was visible.
 *
 * That is at the moment of RDTSCP for sure. LFENCE and RDTSC before it come closer, and what
 * they read is the same CPU's where nothing can have happened since the store was asked for.
 */
NOPATCH_INLINE struct moment moment_visible(struct moment asked)
{
	uint64_t ticks = ticks_now();
	struct moment now = moment_now();

	if (now.cpu == asked.cpu && now.ticks - asked.ticks < MOMENT_STAYED)
		now.ticks = ticks;
	return now;
}

/* Tests of the waits below put a clock of their own here. */
#ifndef MOMENT_READ
#define MOMENT_READ() moment_now()
#endif

/*
 * ticks_wait_since - return no earlier than ticks after start, and the longest time between two
 * readings of the clock: how long the waiting CPU itself stood still at most. UINT64_MAX: that
 * cannot be told of a step.
 *
 * The steps are added up, each between two readings of one CPU's TSC. So neither a migration nor a
 * TSC near its wrap or one that steps back makes the wait shorter, or endless: what a step lasted
 * that cannot be told is waited for again. RDTSCP may not run ahead of what comes before it; and a
 * locked store that depends on the outcome cannot run ahead of RDTSCP: so what follows is late
 * enough. No PAUSE: on recent Intel parts one takes 140 cycles, which would coarsen every wait.
 */
NOPATCH_INLINE uint64_t ticks_wait_since(struct moment start, uint64_t ticks)
{
	uint64_t waited = 0, longest = 0;

	do {
		struct moment now = MOMENT_READ();
		uint64_t step = moment_known(start, now) ? now.ticks - start.ticks : UINT64_MAX;

		if (step > longest)
			longest = step;
		if (step != UINT64_MAX)
			waited += step;
		start = now;
	} while (waited < ticks);
	return longest;
}

/* ticks_wait - like ticks_wait_since, from now on. */
NOPATCH_INLINE void ticks_wait(uint64_t ticks)
{
	ticks_wait_since(MOMENT_READ(), ticks);
}

#endif
