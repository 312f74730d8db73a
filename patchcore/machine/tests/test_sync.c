/* SPDX-License-Identifier: MIT */
/* Which of two syncs is taken where both would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/machine/sync.h"
#include "patchcore/tests/child.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(noted),
		child_unit_test(picked),
		child_unit_test(tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
