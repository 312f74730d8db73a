/* SPDX-License-Identifier: MIT */
/*
 * A program for "uftrace record -P": one function that is traced, one that could be but is not,
 * and one that cannot. Spoken to by lines, see bench/peers/outside.h; times are TSC ticks.
 *
 * Compiled without any instrumentation but that of the two attributes.
 */
#include "lines.h"

#define ENTRY	  9 /* bytes: ENDBR64 and the NOPs */
#define FIVE_NOPS __attribute__((patchable_function_entry(5), noinline, aligned(64)))

FIVE_NOPS void traced(void);
FIVE_NOPS void traced(void)
{
	__asm__ volatile("");
}

FIVE_NOPS static void left_alone(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, aligned(64))) static void plain(void)
{
	__asm__ volatile("nop");
}

int main(int argc, char **argv)
{
	uint64_t empty, off, on;
	unsigned long long calls;
	char line[128];

	if (argc != 2 || pin(argv[1]))
		return 1;
	/* Both begin alike, until one of them is changed. */
	if (!memcmp((void *)(uintptr_t)traced, (void *)(uintptr_t)left_alone, ENTRY)) {
		fputs("uftrace did not patch the function\n", stderr);
		return 1;
	}
	put_end();
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "cost %llu", &calls) == 1) {
		calls += !calls;
		TIME(plain, calls, empty);
		TIME(left_alone, calls, off);
		TIME(traced, calls, on);
		put_costs(empty, off, on, calls);
	}
	return 0;
}
