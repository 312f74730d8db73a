/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/bound.h"
#include "calibrate/drift.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SEED	 11

static void assert_within(double value, double low, double high)
{
	if (!(value >= low && value <= high))
		fail_msg("%.17g is not from %g to %g", value, low, high);
}

/* 10, 20, 30 over equal exposures: chi-square is 10, and exp(-5) is left beyond. */
static void chi_square_by_hand(void **state)
{
	const struct drift_block even[] = { { 10, 1000 }, { 20, 1000 }, { 30, 1000 } };
	const struct drift_block fair[] = { { 10, 1000 }, { 20, 2000 }, { 30, 3000 } };
	/* Nothing was done in the second one: two remain, chi-square is 5, one degree. */
	const struct drift_block gap[] = { { 5, 1000 }, { 0, 0 }, { 15, 1000 } };

	(void)state;
	assert_within(drift_p(even, COUNT(even), SEED), exp(-5) * (1 - 1e-9), exp(-5) * (1 + 1e-9));
	assert_within(drift_p(fair, COUNT(fair), SEED), 1 - 1e-12, 1);
	assert_within(drift_p(gap, COUNT(gap), SEED), 0.02534731, 0.02534733);
}

/* 3 events in one of two equal blocks: one in four draws; in one of nine: one in 81. */
static void few_events_are_drawn(void **state)
{
	const struct drift_block two[] = { { 3, 1000 }, { 0, 1000 } };
	const struct drift_block nine[] = { { 3, 100 }, { 0, 800 } };
	const struct drift_block rare[] = { { 3, 1 }, { 0, 999999 } };

	(void)state;
	assert_within(drift_p(two, 2, SEED), 0.10, 0.50);
	assert_within(drift_p(nine, 2, SEED), 1e-4, 1e-2);
	/* No draw is ever as uneven: as little as so many draws can show. */
	assert_within(drift_p(rare, 2, SEED), 0.99e-4, 1.01e-4);
	assert_true(drift_p(two, 2, SEED) == drift_p(two, 2, SEED));
}

static void nothing_to_compare(void **state)
{
	const struct drift_block none[] = { { 0, 1000 }, { 0, 1000 } };
	const struct drift_block one[] = { { 7, 1000 } };
	const struct drift_block idle[] = { { 0, 0 }, { 0, 0 } };
	const struct drift_block from_nothing[] = { { 2, 1000 }, { 1, 0 } };

	(void)state;
	assert_true(drift_p(NULL, 0, SEED) == 1);
	assert_true(drift_p(none, 2, SEED) == 1);
	assert_true(drift_p(one, 1, SEED) == 1);
	assert_true(drift_p(idle, 2, SEED) == 1);
	assert_true(drift_p(from_nothing, 2, SEED) == 0);
}

/* GSL's own tails abort the program for these. */
static void as_uneven_as_can_be(void **state)
{
	const struct drift_block huge[] = { { 1000000000, 1000 }, { 0, 1000 } };
	const struct drift_block more[] = { { UINT64_C(10000000000), 1 }, { 5, 1000000000 } };

	(void)state;
	assert_true(drift_p(huge, 2, SEED) == 0);
	assert_true(drift_p(more, 2, SEED) == 0);
}

static void fill(struct drift_block *blocks, size_t count, double rate, gsl_rng *rng)
{
	for (size_t i = 0; i < count; i++) {
		blocks[i].exposure = 1000000 + 500000 * (i % 3);
		blocks[i].events = gsl_ran_poisson(rng, rate * (double)blocks[i].exposure);
	}
}

/* Both ways of coming to a p keep what it says; each check fails one time in 1e7. */
static void equal_rates_are_found_equal(void **state)
{
	static const double rates[] = { 1e-4, 2e-6, 2e-7 };
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus2);
	struct drift_block blocks[10];

	(void)state;
	for (size_t r = 0; r < COUNT(rates); r++) {
		unsigned small = 0;

		for (unsigned i = 0; i < 400; i++) {
			fill(blocks, COUNT(blocks), rates[r], rng);
			small += drift_p(blocks, COUNT(blocks), i) < 0.05;
		}
		assert_true(gsl_cdf_binomial_Q(small, 0.05, 400) > 1e-7);
	}
	gsl_rng_free(rng);
}

static void another_rate_is_found(void **state)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus2);
	struct drift_block blocks[10];

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		fill(blocks, COUNT(blocks), 2e-6, rng);
		blocks[3].events += 40;
		assert_true(drift_p(blocks, COUNT(blocks), i) < DRIFT_P);
	}
	gsl_rng_free(rng);
}

static void steady_blocks_are_one(void **state)
{
	const struct drift_block blocks[] = { { 10, 1000000 }, { 12, 1000000 }, { 9, 1000000 } };
	struct drift_bound b;

	(void)state;
	assert_int_equal(drift_bound(blocks, 3, 0, 0.95, SEED, &b), 0);
	assert_true(b.steady && b.p == drift_p(blocks, 3, SEED));
	assert_int_equal(b.blocks, 1);
	assert_true(b.upper == bound_upper(31, 3000000, 0.95));
}

static void the_worst_block_is_published(void **state)
{
	const struct drift_block blocks[] = {
		{ 5, 1000000 }, { 6, 1000000 }, { 60, 1000000 }, { 4, 1000000 }
	};
	struct drift_bound b;

	(void)state;
	assert_int_equal(drift_bound(blocks, 4, 1000000, 0.95, SEED, &b), 0);
	assert_false(b.steady);
	assert_int_equal(b.blocks, 4);
	assert_int_equal(b.worst, 2);
	assert_int_equal(b.block.events, 60);
	assert_true(b.upper == bound_upper(60, 1000000, bound_confidence_each(0.95, 4)));
	assert_true(b.upper > bound_upper(60, 1000000, 0.95));
}

static void short_blocks_are_merged(void **state)
{
	const struct drift_block blocks[] = { { 5, 600 },  { 6, 600 }, { 60, 600 },
					      { 50, 600 }, { 4, 600 }, { 0, 0 } };
	struct drift_bound b;

	(void)state;
	assert_int_equal(drift_bound(blocks, 6, 1000, 0.95, SEED, &b), 0);
	/* The fifth is too short alone: it goes to the third and fourth. */
	assert_int_equal(b.blocks, 2);
	assert_int_equal(b.worst, 2);
	assert_int_equal(b.block.events, 114);
	assert_int_equal(b.block.exposure, 1800);
	/* All together are not enough: one block, however they differ. */
	assert_int_equal(drift_bound(blocks, 6, 1000000, 0.95, SEED, &b), 0);
	assert_false(b.steady);
	assert_int_equal(b.blocks, 1);
	assert_true(b.upper == bound_upper(125, 3000, 0.95));
}

static void no_exposure_no_bound(void **state)
{
	const struct drift_block idle[] = { { 0, 0 } };
	struct drift_bound b;

	(void)state;
	assert_int_equal(drift_bound(idle, 1, 1, 0.95, SEED, &b), -EINVAL);
	assert_true(b.upper == 1);
	assert_int_equal(drift_bound(NULL, 0, 1, 0.95, SEED, &b), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chi_square_by_hand),
		cmocka_unit_test(few_events_are_drawn),
		cmocka_unit_test(nothing_to_compare),
		cmocka_unit_test(as_uneven_as_can_be),
		cmocka_unit_test(equal_rates_are_found_equal),
		cmocka_unit_test(another_rate_is_found),
		cmocka_unit_test(steady_blocks_are_one),
		cmocka_unit_test(the_worst_block_is_published),
		cmocka_unit_test(short_blocks_are_merged),
		cmocka_unit_test(no_exposure_no_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
