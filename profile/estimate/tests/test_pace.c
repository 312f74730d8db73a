/* SPDX-License-Identifier: MIT */
/* Programs that cost more or less to watch: the budget is kept, and no longer epochs than it takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/estimate/estimate.h"

/* An epoch costs so much at any length. */
static double run(struct pace *pace, uint64_t cost, uint64_t toggling, unsigned epochs)
{
	double spent = 0, used = 0;
	uint64_t length = pace->length;

	for (unsigned i = 0; i < epochs; i++) {
		spent += (double)cost;
		used += (double)length;
		length = pace_next(pace, cost, toggling, length);
		assert_in_range(length, pace->shortest / 2, pace->longest * 3 / 2 + 1);
	}
	return spent / used;
}

static struct pace fresh(void)
{
	return (struct pace){
		.budget = 0.01, .shortest = 10000, .longest = 1000000, .length = 10000, .random = 1
	};
}

static void test_cheap(void **state)
{
	struct pace pace = fresh();

	(void)state;
	assert_true(run(&pace, 20, 0, 1000) < 0.01);
	assert_int_equal(pace.length, pace.shortest);
}

static void test_dear(void **state)
{
	struct pace pace = fresh();
	double share = run(&pace, 2000, 0, 1000);

	(void)state;
	assert_true(share < 0.0101);
	assert_true(share > 0.005);
	/* It becomes cheap again. */
	run(&pace, 20, 0, 1000);
	assert_int_equal(pace.length, pace.shortest);
}

/* Changes have less than a tenth of it. */
static void test_toggling(void **state)
{
	struct pace pace = fresh();
	double share = run(&pace, 200, 100, 1000);

	(void)state;
	assert_true(share < 0.002 && share > 0.0008);
}

/* What an epoch costs that finds all functions new is no measure of the next ones, but is saved. */
static void test_dear_start(void **state)
{
	struct pace pace = fresh();
	double spent = 100000, used = 10000, share;

	(void)state;
	pace_next(&pace, 100000, 0, 10000);
	assert_int_equal(pace.length, pace.shortest);
	share = run(&pace, 200, 0, 100);
	assert_true(share < 0.01 / 3);
	for (unsigned i = 0; i < 10000; i++) {
		spent += 200;
		used += (double)pace.last;
		pace_next(&pace, 200, 0, pace.last);
	}
	assert_true(spent / used < 0.0101 && spent / used > 0.007);
}

/* Without the budget the same program costs far more: that is what the test can see. */
static void test_no_budget_is_caught(void **state)
{
	struct pace pace = fresh();

	(void)state;
	pace.budget = 1;
	assert_true(run(&pace, 2000, 0, 1000) > 0.1);
}

static void test_sleeper(void **state)
{
	struct pace pace = fresh();

	(void)state;
	for (int i = 0; i < 100; i++)
		pace_next(&pace, 0, 0, 0);
	assert_int_equal(pace.length, pace.shortest);
}

/* Of a program that ends at any time there were some epochs; they cost the budget of a second. */
static void test_opening(void **state)
{
	const uint64_t second = 1000000, cost = 80;

	(void)state;
	for (uint64_t end = second / 200; end <= second; end *= 2) {
		struct pace pace = fresh();
		uint64_t used = 0, last = 0, spent = 0;
		unsigned epochs = 0;

		pace_open(&pace, (double)second);
		for (uint64_t length = pace.length; used + length < end; epochs++) {
			used += length;
			last = length;
			/* Calls are counted for as much as is left for that. */
			spent += cost + (uint64_t)pace.afford;
			length = pace_next(&pace, cost + (uint64_t)pace.afford, 0, length);
		}
		assert_true(epochs >= 2 && epochs < 100);
		assert_true(last <= end / 2);
		assert_true((double)spent < pace.budget * (double)second + cost);
	}
}

/* Behind it nothing is left for more than the budget allows, and nothing in a program that sleeps.
 */
static void test_opening_ends(void **state)
{
	struct pace pace = fresh();

	(void)state;
	pace_open(&pace, 100000);
	assert_true(pace.afford > 0);
	for (int i = 0; i < 1000; i++)
		pace_next(&pace, 20, 0, pace.last);
	assert_int_equal(pace.length, pace.shortest);
	assert_true(!(pace.afford > 0));
	pace = fresh();
	pace_open(&pace, 1000000);
	for (int i = 0; i < 5; i++)
		pace_next(&pace, 20, 0, pace.last / 100);
	assert_true(pace.length >= pace.shortest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cheap),
		cmocka_unit_test(test_dear),
		cmocka_unit_test(test_toggling),
		cmocka_unit_test(test_dear_start),
		cmocka_unit_test(test_no_budget_is_caught),
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_opening_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
