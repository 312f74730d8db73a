/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/plan/plan.h"

static void rungs_rise_to_a_membarrier(void **state)
{
	static const struct {
		uint64_t ticks, top;
	} cases[] = {
		{ 0, 102400 },	 { 1, 3200 },	   { 6399, 3200 },	{ 12799, 3200 },
		{ 12800, 6400 }, { 73000, 25600 }, { 1000000, 102400 }, { UINT64_MAX, 102400 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ladder l;

		ladder_make(&l, cases[i].ticks);
		assert_int_equal(l.rung[0].first, 0);
		assert_int_equal(l.rung[1].first, 100);
		assert_int_equal(l.rung[l.stretched - 1].first, cases[i].top);
		for (unsigned k = 1; k < l.stretched; k++)
			assert_true(l.rung[k].stretch && l.rung[k].first > l.rung[k - 1].first);
	}
}

/* The same rungs on every machine: else runs would not add up. */
static void rungs_are_the_same_everywhere(void **state)
{
	struct ladder all, some;

	(void)state;
	ladder_make(&all, 0);
	for (uint64_t ticks = 1; ticks < 300000; ticks += 997) {
		ladder_make(&some, ticks);
		for (unsigned i = 0; i < some.stretched; i++)
			assert_true(waits_same(&some.rung[i], &all.rung[i]));
	}
}

static void the_papers_waits_come_behind(void **state)
{
	struct ladder l;

	(void)state;
	ladder_make(&l, 0);
	assert_int_equal(l.count - l.stretched, LADDER_PAPER / LADDER_STEP + 1);
	for (unsigned i = l.stretched; i < l.count; i++) {
		assert_int_equal(l.rung[i].stretch, 0);
		assert_int_equal(l.rung[i].first, (i - l.stretched) * LADDER_STEP);
	}
	assert_true(l.count <= RUNGS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rungs_rise_to_a_membarrier),
		cmocka_unit_test(rungs_are_the_same_everywhere),
		cmocka_unit_test(the_papers_waits_come_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
