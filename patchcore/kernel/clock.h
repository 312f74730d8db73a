/* SPDX-License-Identifier: MIT */
/* Time without libc. Private. */
#ifndef PATCHCORE_KERNEL_CLOCK_H
#define PATCHCORE_KERNEL_CLOCK_H

#include <time.h>

#include "patchcore/kernel/sys.h"

#define CLOCK_MS INT64_C(1000000) /* in ns */

/* clock_ns - nanoseconds of CLOCK_MONOTONIC. Async-signal-safe. */
NOPATCH_INLINE int64_t clock_ns(void)
{
	struct timespec now;

	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* clock_sleep - for less than a second, or until a signal. Async-signal-safe. */
NOPATCH_INLINE void clock_sleep(int64_t ns)
{
	struct timespec time = { .tv_nsec = ns };

	sys_call(SYS_nanosleep, &time, 0);
}

/*
 * nap - leave the CPU to a thread that may need it, for some 50 microseconds. A yield is not
 * enough: that thread may have the lower priority. Async-signal-safe.
 */
NOPATCH_INLINE void nap(void)
{
	clock_sleep(CLOCK_MS / 20);
}

#endif
