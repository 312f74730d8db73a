/* SPDX-License-Identifier: MIT */
/* A program whose lines are run in known proportions. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long often, seldom;

static inline __attribute__((always_inline)) void inlined(void)
{
	often = often + 1;
}

__attribute__((noinline)) static void work(unsigned long n)
{
	/* Copies of a loop are taken to be run as often as each other. */
#pragma clang loop unroll(disable)
	for (unsigned long i = 0; i < n; i++) {
		inlined();
		if (i % 16 == 0)
			seldom = seldom + 1;
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	for (unsigned long i = 0; i < rounds; i++)
		work(1000);
	return printf("%lu %lu\n", often, seldom) < 0;
}
