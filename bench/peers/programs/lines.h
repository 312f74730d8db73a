/* SPDX-License-Identifier: MIT */
/*
 * What the peers in C share: pinning, reading the clock, requests as lines; see
 * bench/peers/outside.h. Compiled with the peer where and when it is used, so it needs no more
 * than the C library, and no configure. To be included first.
 */
#ifndef PEERS_LINES_H
#define PEERS_LINES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define LINES_REST 2000 /* ticks between two changes */

/* Not to be instrumented: also where everything else is. */
#ifdef __clang__
#define LINES_PLAIN __attribute__((xray_never_instrument, unused)) static
#else
#define LINES_PLAIN __attribute__((patchable_function_entry(0), unused)) static
#endif

/* After every earlier load, as the patcher's own clock is read that this is compared with. */
LINES_PLAIN uint64_t ticks_now(void)
{
	_mm_lfence();
	return __rdtsc();
}

LINES_PLAIN uint64_t nanoseconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The calling thread. 0, or -1. */
LINES_PLAIN int pin(const char *cpu)
{
	int number = atoi(cpu), ret = -1;
	cpu_set_t *set = CPU_ALLOC((size_t)number + 1);
	size_t size = CPU_ALLOC_SIZE((size_t)number + 1);

	if (set) {
		CPU_ZERO_S(size, set);
		CPU_SET_S((size_t)number, size, set);
		ret = sched_setaffinity(0, size, set);
		CPU_FREE(set);
	}
	if (ret)
		perror("cannot pin a thread");
	return ret;
}

/*
 * Thousandths by hand: what is printed must not depend on what a tracer does to the registers
 * of a function that takes doubles.
 */
LINES_PLAIN void put_number(uint64_t ticks, uint64_t per, const char *end)
{
	uint64_t whole = ticks / per, part = ticks % per * 1000 / per;

	printf("%llu.%03u%s", (unsigned long long)whole, (unsigned)part, end);
}

LINES_PLAIN void put_end(void)
{
	puts(".");
	fflush(stdout);
}

/* The answer to "cost": a call without, off and on. */
LINES_PLAIN void put_costs(uint64_t empty, uint64_t off, uint64_t on, uint64_t calls)
{
	put_number(empty, calls, " ");
	put_number(off, calls, " ");
	put_number(on, calls, "\n");
	put_end();
}

/* What so many calls of a function take. Inlined by hand: what calls it must not be traced. */
#define TIME(call, calls, ticks)                                                                   \
	do {                                                                                       \
		(ticks) = ticks_now();                                                             \
		for (uint64_t i = 0; i < (calls); i++)                                             \
			call();                                                                    \
		(ticks) = ticks_now() - (ticks);                                                   \
	} while (0)

#endif
