/* SPDX-License-Identifier: MIT */
/* Which of two syncs is taken where both would do, and where the rate of tears allows one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "patchcore/machine/sync.h"
#include "patchcore/tests/child.h"
#include "patchcore/word/word.h"

static struct sync waiting = { .policy = PC_POLICY_WAIT,
			       .waits.first = 3000,
			       .waits.second = 2000 };
static struct sync membarrier = { .policy = PC_POLICY_MEMBARRIER };

static void link_them(void)
{
	waiting.other = &membarrier;
	membarrier.other = &waiting;
}

static void noted(const void *arg)
{
	(void)arg;
	MUST(sync_cost(&waiting) == 0);
	sync_note_cost(&waiting, 8000);
	MUST(sync_cost(&waiting) == 8000 && sync_cost(&membarrier) == 0);
	sync_note_cost(&waiting, 16000);
	MUST(sync_cost(&waiting) == 9000);
	for (int i = 0; i < 100; i++)
		sync_note_cost(&waiting, 800);
	MUST(sync_cost(&waiting) < 900);
	/* The time of a patcher that lost its CPU for a second is not taken for the cost. */
	sync_note_cost(&waiting, UINT64_C(3000000000));
	MUST(sync_cost(&waiting) < 2 * 900);
}

static void picked(const void *arg)
{
	(void)arg;
	MUST(sync_pick(&waiting) == &waiting && sync_pick(&membarrier) == &membarrier);
	link_them();
	sync_note_cost(&membarrier, 4000);
	/* How long a wait takes is known before the first one. */
	MUST(sync_pick(&waiting) == &membarrier && sync_pick(&membarrier) == &membarrier);
	for (int i = 0; i < 100; i++)
		sync_note_cost(&membarrier, 60000);
	MUST(sync_pick(&waiting) == &waiting && sync_pick(&membarrier) == &waiting);
	/* And that it takes no less. */
	sync_note_cost(&waiting, 1);
	for (int i = 0; i < 100; i++)
		sync_note_cost(&membarrier, 4000);
	MUST(sync_pick(&waiting) == &membarrier);
}

/* A sync that was expensive once is not passed over for ever. */
static void tried_again(const void *arg)
{
	int others = 0, rounds = 0;

	(void)arg;
	link_them();
	sync_note_cost(&waiting, 6000);
	sync_note_cost(&membarrier, 60000);
	for (; others < 3; rounds++) {
		MUST(rounds < 100000);
		if (sync_pick(&waiting) == &membarrier) {
			others++;
			sync_note_cost(&membarrier, 60000);
		} else {
			sync_note_cost(&waiting, 6000);
		}
	}
	/* Many picks share the cost of finding out. */
	MUST(rounds > 1000);
}

/* --- The rate of tears -------------------------------------------------------------- */

#define TRIES 2000
#define PRICE 1e12 /* ticks; no test takes as long */
#define ROOM  100  /* changes for which the bucket has tears */

static const struct sync counted = { .policy = PC_POLICY_WAIT,
				     .upper_p = 1e-3,
				     .instead = &membarrier };

/* A variant that is broken: it takes no notice of the bucket. */
static const struct sync *take_unlimited(const struct sync *sync)
{
	return sync;
}

static unsigned waits_of(const struct sync *(*choose)(const struct sync *sync))
{
	unsigned waits = 0;

	for (int i = 0; i < TRIES; i++)
		waits += choose(&counted)->policy == PC_POLICY_WAIT;
	return waits;
}

/* Did so many waits stay within the rate? One is lost to rounding. */
static bool is_within(unsigned waits)
{
	return waits <= ROOM;
}

static void within_a_rate(const void *arg)
{
	struct sync by_name = counted, rare = counted;
	unsigned waits;

	(void)arg;
	by_name.instead = NULL;
	rare.upper_p = 1;
	MUST(waits_of(sync_within_rate) == TRIES);
	sync_limit_tears(PRICE / counted.upper_p, (uint64_t)(ROOM * PRICE));
	/* What costs more than the bucket holds is never made, and takes nothing from it. */
	MUST(sync_within_rate(&rare) == &membarrier);
	waits = waits_of(sync_within_rate);
	MUST(is_within(waits) && waits >= ROOM - 1);
	MUST(!is_within(waits_of(take_unlimited)));
	MUST(waits_of(sync_within_rate) == 0);
	MUST(sync_within_rate(&by_name) == &by_name &&
	     sync_within_rate(&membarrier) == &membarrier);
	sync_limit_tears(0, 0);
	MUST(waits_of(sync_within_rate) == TRIES);
}

/* The bucket refills, up to what it holds. */
static void bucket_fills_again(const void *arg)
{
	const uint64_t most = 100000, step = 40000; /* ticks */
	uint64_t begin, end;
	unsigned waits = 0;

	(void)arg;
	sync_limit_tears((double)step / counted.upper_p, most);
	begin = __rdtsc();
	do {
		waits += sync_within_rate(&counted) == &counted;
		end = __rdtsc();
	} while (waits < 10);
	MUST((waits - 1) * step <= most + (end - begin));
	/* After a long rest no more than that at once. */
	while (__rdtsc() - end < 100 * step)
		;
	begin = __rdtsc();
	for (waits = 0; sync_within_rate(&counted) == &counted; waits++)
		;
	MUST(waits * step <= most + (__rdtsc() - begin));
}

static _Atomic(unsigned) waits_of_all;

static void *take_some(void *arg)
{
	(void)arg;
	waits_of_all += waits_of(sync_within_rate);
	return NULL;
}

/* Threads that take at once take no more together. */
static void threads_share_a_bucket(const void *arg)
{
	pthread_t thread[4];

	(void)arg;
	sync_limit_tears(PRICE / counted.upper_p, (uint64_t)(ROOM * PRICE));
	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, take_some, NULL) == 0);
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(thread[i], NULL) == 0);
	MUST(is_within(waits_of_all) && waits_of_all >= ROOM - 1);
}

static uint64_t longer_of_two(const struct waits *waits)
{
	return waits->first > waits->second ? waits->first : waits->second;
}

/* Is a wait of a change longer than what is said to be the longest? */
static bool exceeds(uint64_t (*longest)(const struct waits *waits))
{
	static const uint64_t ticks[] = { 0, 1, 99, 3200, 99999, 100000, 400000, 1000000000 };
	static const uint64_t latencies[] = { 0, 100, 25000, 99999, 100000, 100001, 1u << 30 };

	for (size_t f = 0; f < 8; f++)
		for (size_t s = 0; s < 8; s++)
			for (size_t l = 0; l < 7; l++)
				for (uint64_t stretch = 0; stretch <= 64; stretch += 4) {
					struct sync sync = { .waits = { ticks[f], ticks[s],
									stretch } };
					struct word word = { .sync = &sync };
					const struct moment asked = { .ticks = 7 };
					struct moment visible = asked;

					visible.ticks += latencies[l];
					word_note_visible(&word, WORD_PART_INT3, asked, visible);
					if (word_stretch(&word, ticks[f]) > longest(&sync.waits) ||
					    word_stretch(&word, ticks[s]) > longest(&sync.waits))
						return true;
				}
	return false;
}

static void no_wait_is_longer(void **state)
{
	(void)state;
	assert_false(exceeds(waits_longest));
	assert_true(exceeds(longer_of_two));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(noted),
		child_unit_test(picked),
		child_unit_test(tried_again),
		child_unit_test(within_a_rate),
		child_unit_test(bucket_fills_again),
		child_unit_test(threads_share_a_bucket),
		cmocka_unit_test(no_wait_is_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
