/* SPDX-License-Identifier: MIT */
/* Functions with probes, for tests. */
#ifndef PROBES_TESTS_SAMPLE_H
#define PROBES_TESTS_SAMPLE_H

#include <stdint.h>

#define PROBED __attribute__((noinline, patchable_function_entry(5)))

/* One probe, by name. */
#define SAMPLE(name, factor)                                                                       \
	PROBED uint64_t name(uint64_t a, double b, uint64_t c);                                    \
	PROBED uint64_t name(uint64_t a, double b, uint64_t c)                                     \
	{                                                                                          \
		__asm__ volatile("");                                                              \
		return a * (factor) + (uint64_t)b + c;                                             \
	}

#endif
