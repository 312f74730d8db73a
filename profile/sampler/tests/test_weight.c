/* SPDX-License-Identifier: MIT */
/*
 * A program of which half of the time is in short blocks, and half in long ones: counted alike its
 * phases count short blocks too low, and weighed less so.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/sampler/edges.h"

#define PRICE  5e-9
#define LENGTH 2e-3
#define PHASES 200

static const double native[2] = { 1e-9, 4e-9 };

static uint64_t runs_in_phase(int kind)
{
	return (uint64_t)(LENGTH / (PRICE + native[kind]));
}

static void test_short_blocks_are_not_told_low(void **state)
{
	struct weights weights = { 0 };
	double counted[2] = { 0 }, weighed[2] = { 0 };
	/* Four times as many are run in as much time. */
	const double truth = 0.8;

	(void)state;
	for (int i = 0; i < PHASES; i++) {
		uint64_t runs = runs_in_phase(i % 2);

		counted[i % 2] += (double)runs;
		weighed[i % 2] += (double)runs * weight_of_phase(&weights, LENGTH, LENGTH, runs);
	}
	counted[0] /= counted[0] + counted[1];
	weighed[0] /= weighed[0] + weighed[1];
	assert_true(counted[0] < 0.65);
	assert_true(weighed[0] > 0.70 && weighed[0] < truth + 0.01);
}

/* Each thread is as much slower as one is. */
static void test_threads_that_run_at_once(void **state)
{
	struct weights one = { 0 }, two = { 0 };

	(void)state;
	for (int i = 0; i < PHASES; i++) {
		uint64_t runs = runs_in_phase(i % 2);
		double alone = weight_of_phase(&one, LENGTH, LENGTH, runs);
		double both = weight_of_phase(&two, LENGTH, 2 * LENGTH, 2 * runs);

		assert_true(fabs(alone / both - 1) < 1e-3);
	}
}

/* A program that hardly has a CPU is not slowed down: such a phase counts as it is. */
static void test_idle_program(void **state)
{
	struct weights weights = { 0 };

	(void)state;
	for (int i = 0; i < PHASES; i++)
		weight_of_phase(&weights, LENGTH, LENGTH, runs_in_phase(0));
	assert_true(fabs(weight_of_phase(&weights, LENGTH, LENGTH / 100, 100) * LENGTH - 1) < 1e-2);
	assert_true(weight_of_phase(&weights, LENGTH, 0, 0) <= 0);
}

/* One of 64 that was measured as too quick by half changes nothing, and no weight is without bound.
 */
static void test_what_is_quickest_by_mistake(void **state)
{
	struct weights weights = { 0 };
	double before = 0, after, most;

	(void)state;
	for (int i = 0; i < PHASES; i++)
		before = weight_of_phase(&weights, LENGTH, LENGTH, runs_in_phase(1));
	most = weight_of_phase(&weights, LENGTH, LENGTH, 2 * runs_in_phase(1));
	after = weight_of_phase(&weights, LENGTH, LENGTH, runs_in_phase(1));
	assert_true(most * LENGTH < 20);
	assert_true(fabs(after / before - 1) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_blocks_are_not_told_low),
		cmocka_unit_test(test_threads_that_run_at_once),
		cmocka_unit_test(test_idle_program),
		cmocka_unit_test(test_what_is_quickest_by_mistake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
