/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <time.h>

/* clock_seconds - the time of a clock. 0: its thread has ended. */
static inline double clock_seconds(clockid_t clock)
{
	struct timespec time = { 0 };

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* seconds_now - since some fixed moment, never stepping back. */
static inline double seconds_now(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

#endif
