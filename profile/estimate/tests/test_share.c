/* SPDX-License-Identifier: MIT */
/*
 * Programs whose parts are known are sampled as by bursts, and the intervals hold the truth as
 * often as they say. Intervals of what takes each tick for a look of its own do not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "profile/estimate/estimate.h"

#define TRIALS 2000
#define TRUTH  0.3

static uint64_t dice = 1;

static double draw(void)
{
	return (double)(random_next(&dice) >> 11) / 9007199254740992.0;
}

/* A look finds the program in a part of it where the function has nearly all of the time, or hardly
 * any. */
static struct interval look(unsigned samples, double part[SHARE_GROUPS], double all[SHARE_GROUPS])
{
	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		part[i] = all[i] = 0;
	for (unsigned i = 0; i < samples; i++) {
		double length = 0.5 + draw();

		all[i % SHARE_GROUPS] += length;
		part[i % SHARE_GROUPS] += length * (draw() < TRUTH - 0.1 ? 0.9 : 0.15);
	}
	return share_of(part, all, samples);
}

/* 0.2 * 0.9 + 0.8 * 0.15 */
static double covered(unsigned samples, double narrower)
{
	double part[SHARE_GROUPS], all[SHARE_GROUPS], held = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		struct interval share = look(samples, part, all);
		double low = share.value - (share.value - share.low) / narrower;
		double high = share.value + (share.high - share.value) / narrower;

		assert_true(share.low <= share.value && share.value <= share.high);
		held += low <= TRUTH && TRUTH <= high;
	}
	return held / TRIALS;
}

static void test_intervals_hold(void **state)
{
	(void)state;
	assert_true(covered(20, 1) > 0.9);
	assert_true(covered(100, 1) > 0.93);
	assert_true(covered(1000, 1) > 0.93);
	/* They are no wider than they need to be: half of it is not enough. */
	assert_true(covered(100, 2) < 0.85);
	assert_true(covered(1000, 2) < 0.85);
}

static void test_never_seen(void **state)
{
	double part[SHARE_GROUPS] = { 0 }, all[SHARE_GROUPS];
	struct interval share;

	(void)state;
	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		all[i] = 1;
	share = share_of(part, all, 30);
	assert_true(share.value == 0 && share.low == 0);
	assert_float_equal(share.high, 0.1, 1e-9);
}

static void test_too_few(void **state)
{
	double part[SHARE_GROUPS] = { 0.5 }, all[SHARE_GROUPS] = { 1 };
	struct interval share = share_of(part, all, 1);

	(void)state;
	assert_true(share.value == 0.5 && share.low == 0 && share.high == 1);
	all[0] = part[0] = 0;
	share = share_of(part, all, 0);
	assert_true(share.value == 0 && share.low == 0 && share.high == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intervals_hold),
		cmocka_unit_test(test_never_seen),
		cmocka_unit_test(test_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
