/* SPDX-License-Identifier: MIT */
/*
 * A patcher of your own that takes its wait from tmax:
 *
 *     tmax export --for c-header --accept 1e-4 --output staleness.h
 *     cc staleness.c -o staleness && ./staleness
 *
 * The header is of one machine. On another one this program says so, and has no wait.
 */
#include <cpuid.h>
#include <stdio.h>
#include <x86intrin.h>

#include "staleness.h"

static int is_this_machine(void)
{
	unsigned a, b, c, d, family, model;

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return 0;
	family = (a >> 8 & 15) + (a >> 20 & 255);
	model = (a >> 4 & 15) | (a >> 12 & 240);
	return family == TMAX_STALENESS_FAMILY && model == TMAX_STALENESS_MODEL &&
	       (a & 15) == TMAX_STALENESS_STEPPING;
}

/* Between two stores of a change, once the first is visible: after a locked one it is. */
static unsigned long long wait_constant(void)
{
	unsigned long long start, ticks;

	_mm_lfence();
	start = __rdtsc();
	do {
		_mm_lfence();
		ticks = __rdtsc() - start;
	} while (ticks < TMAX_STALENESS_CONSTANT_TICKS);
	return ticks;
}

int main(void)
{
	if (!is_this_machine()) {
		printf("no budget: this is not %s family %d model %d\n", TMAX_STALENESS_VENDOR,
		       TMAX_STALENESS_FAMILY, TMAX_STALENESS_MODEL);
		return 3;
	}
	if (wait_constant() < TMAX_STALENESS_CONSTANT_TICKS)
		return 1;
	printf("waits %llu ticks, at most %g tears per change on CPUs %s\n",
	       (unsigned long long)TMAX_STALENESS_CONSTANT_TICKS, TMAX_STALENESS_TEARS_PER_CHANGE,
	       TMAX_STALENESS_SCOPE_CPUS);
	return 0;
}
