/* SPDX-License-Identifier: MIT */
/*
 * What a look-up of a site costs by how many are known: of the same site again, and in random
 * order. No test. One line per number of sites: ticks of the look-up, and the ratio to the first.
 *
 *	make patchcore/site/tests/bench_find && ./patchcore/site/tests/bench_find
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "patchcore/site/table.h"

#define APART	16u /* bytes between sites */
#define FIRST	UINT64_C(0x400000)
#define LOOKUPS 4096u
#define ROUNDS	101u

static uint64_t random_state = 1;

static uint32_t next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(random_state >> 32);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of the rounds. Each look-up waits for the one before it, as a patch does. */
static double find_ticks(struct table *table, unsigned known, bool random)
{
	static uintptr_t addrs[LOOKUPS];
	double ticks[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t start, zero = 0;

		for (unsigned i = 0; i < LOOKUPS; i++)
			addrs[i] = FIRST + APART * (random ? next_random() % known : 0u);
		start = __rdtsc();
		for (unsigned i = 0; i < LOOKUPS; i++) {
			struct entry *entry = table_find(table, addrs[i] + zero);

			if (!entry)
				abort();
			zero = entry->addr - addrs[i];
		}
		ticks[round] = (double)(__rdtsc() - start) / LOOKUPS;
	}
	qsort(ticks, ROUNDS, sizeof(ticks[0]), by_size);
	return ticks[ROUNDS / 2];
}

int main(void)
{
	static struct table table = TABLE_INIT(struct entry, 6, NULL);
	double same_first = 0, random_first = 0;
	unsigned known = 0;

	puts("known    same  ratio  random  ratio");
	for (unsigned wanted = 10; wanted <= 1000000; wanted *= 10) {
		double same, random;

		for (; known < wanted; known++)
			if (!table_get(&table, FIRST + APART * known))
				return EXIT_FAILURE;
		same = find_ticks(&table, known, false);
		random = find_ticks(&table, known, true);
		if (wanted == 10) {
			same_first = same;
			random_first = random;
		}
		printf("%-7u %5.1f %6.2f %7.1f %6.2f\n", known, same, same / same_first, random,
		       random / random_first);
	}
	return EXIT_SUCCESS;
}
