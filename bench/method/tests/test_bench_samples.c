/* SPDX-License-Identifier: MIT */
/*
 * What is said of samples: intervals on trial against known medians, ratios against drift,
 * nothing thrown away. TMAX_STRESS_SCALE makes more trials. Every seed is fixed.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "bench/method/samples.c"
#include "patchcore/tests/scale.h"

#define MOST_VALUES 100

/* Between 0 and 1, neither of them. */
static double uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

/* Long of tail, as times are: its median is ln 2. */
static double exponential(uint64_t *state)
{
	return -log(uniform(state));
}

static double normal(uint64_t *state)
{
	return sqrt(2 * exponential(state)) * cos(2 * M_PI * uniform(state));
}

static void assert_is(const struct bench_value *v, double median, double low, double high)
{
	assert_float_equal(v->median, median, 1e-12);
	assert_float_equal(v->low, low, 1e-12);
	assert_float_equal(v->high, high, 1e-12);
}

static void assert_none(const struct bench_value *v)
{
	assert_true(isnan(v->median));
	assert_true(isnan(v->low));
	assert_true(isnan(v->high));
}

static struct bench_value bootstrap_median(const double *values, size_t count, uint64_t seed)
{
	struct bench_value v;

	assert_true(bootstrap_groups(values, count, 1, seed, &v));
	return v;
}

static void add_block(struct samples *s, double value)
{
	samples_add(s, value);
	samples_end_block(s);
}

/* --- The median ----------------------------------------------------------------------------- */

static void the_median_of_odd_and_even(void **state)
{
	const double values[] = { 5, 1, 4, 2, 3, 100 };
	struct bench_value v;

	(void)state;
	v = bootstrap_median(values, 1, 1);
	assert_is(&v, 5, 5, 5);
	v = bootstrap_median(values, 2, 1);
	assert_is(&v, 3, 1, 5);
	v = bootstrap_median(values, 5, 1);
	assert_is(&v, 3, 1, 5);
	v = bootstrap_median(values, 6, 1);
	assert_is(&v, 3.5, 1, 100);
}

static void ties_are_one_value(void **state)
{
	double values[40];
	struct bench_value v;

	(void)state;
	for (int i = 0; i < 40; i++)
		values[i] = 7;
	v = bootstrap_median(values, 40, 3);
	assert_is(&v, 7, 7, 7);
	/* Two stubborn values, of which one is ahead by far. */
	for (int i = 0; i < 8; i++)
		values[5 * i] = 9;
	v = bootstrap_median(values, 40, 3);
	assert_is(&v, 7, 7, 7);
}

static void nothing_and_no_number_have_no_median(void **state)
{
	double values[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, NAN };
	struct bench_value v;

	(void)state;
	v = bootstrap_median(NULL, 0, 1);
	assert_none(&v);
	v = bootstrap_median(values, 10, 1);
	assert_none(&v);
	values[9] = INFINITY;
	v = bootstrap_median(values, 10, 1);
	assert_none(&v);
	v = bootstrap_median(values, 9, 1);
	assert_float_equal(v.median, 5, 0);
}

static void same_seed_same_interval(void **state)
{
	struct bench_value first, again, other;
	double values[MOST_VALUES];
	uint64_t seed = 5;
	bool differs = false;

	(void)state;
	for (int i = 0; i < MOST_VALUES; i++)
		values[i] = exponential(&seed);
	first = bootstrap_median(values, MOST_VALUES, 1);
	again = bootstrap_median(values, MOST_VALUES, 1);
	assert_memory_equal(&first, &again, sizeof(first));
	for (uint64_t s = 2; s < 10; s++) {
		other = bootstrap_median(values, MOST_VALUES, s);
		assert_float_equal(other.median, first.median, 0);
		differs |= other.low != first.low || other.high != first.high;
	}
	assert_true(differs);
}

/* --- Does the interval hold the median as often as it says? --------------------------------- */

typedef double (*draw_fn)(uint64_t *state);

/*
 * Of so many trials, one whose true rate is p stays within six standard deviations but once
 * in 500 million. The rate itself may be off by what few values can do: an interval between
 * two of them is none for every rate.
 */
static void assert_rate(unsigned hits, unsigned trials, double least, double most)
{
	double rate = (double)hits / trials, spare = 6 * sqrt(0.05 * 0.95 / trials);

	if (rate < least - spare || rate > most + spare)
		fail_msg("%u of %u intervals hold the median: %.3f", hits, trials, rate);
}

static void assert_covers(draw_fn draw, double truth, size_t count, double least)
{
	unsigned trials = (unsigned)(250 * test_scale()), hits = 0;
	uint64_t seed = 1000 + count;
	double values[MOST_VALUES];

	for (unsigned t = 0; t < trials; t++) {
		struct bench_value v;

		for (size_t i = 0; i < count; i++)
			values[i] = draw(&seed);
		v = bootstrap_median(values, count, t);
		assert_true(v.low <= v.median && v.median <= v.high);
		hits += v.low <= truth && truth <= v.high;
	}
	assert_rate(hits, trials, least, 0.98);
}

static void intervals_hold_the_median(void **state)
{
	(void)state;
	assert_covers(exponential, M_LN2, 10, 0.92);
	assert_covers(exponential, M_LN2, 21, 0.92);
	assert_covers(exponential, M_LN2, 40, 0.93);
	assert_covers(normal, 0, 20, 0.92);
	assert_covers(normal, 0, 41, 0.93);
}

/* They must not get that by being wide: 100 values tell three times more than ten. */
static void more_values_tell_more(void **state)
{
	double few = 0, many = 0, values[MOST_VALUES];
	uint64_t seed = 9;

	(void)state;
	for (unsigned t = 0; t < 50; t++) {
		struct bench_value v;

		for (int i = 0; i < MOST_VALUES; i++)
			values[i] = normal(&seed);
		v = bootstrap_median(values, 10, t);
		few += (v.high - v.low) / 50;
		v = bootstrap_median(values, MOST_VALUES, t);
		many += (v.high - v.low) / 50;
	}
	/* 2 * 1.96 * 1.2533 / sqrt(n) */
	assert_true(many > 0.35 && many < 0.65);
	assert_true(few > 2.2 * many);
}

/*
 * Rounds differ, and the two blocks of a quadruple have that in common. Were they drawn each
 * by itself, 83 % of the intervals would hold the median.
 */
static void blocks_of_a_round_are_not_two_opinions(void **state)
{
	unsigned trials = (unsigned)(400 * test_scale()), hits = 0;
	uint64_t seed = 77;

	(void)state;
	for (unsigned t = 0; t < trials; t++) {
		struct samples s = { 0 };
		struct bench_row row = { 0 };

		for (int round = 0; round < 20; round++) {
			double value = 100 + normal(&seed);

			add_block(&s, value + 0.01 * normal(&seed));
			add_block(&s, value + 0.01 * normal(&seed));
		}
		assert_int_equal(samples_sum_up(&s, NULL, t, &row), 0);
		hits += row.value.low <= 100 && 100 <= row.value.high;
		samples_free(&s);
	}
	assert_rate(hits, trials, 0.93, 0.98);
}

/* Where they are, drawing them together must not make intervals wider. */
static void blocks_that_differ_are_two_opinions(void **state)
{
	double together = 0, apart = 0;
	uint64_t seed = 78;

	(void)state;
	for (unsigned t = 0; t < 100; t++) {
		struct samples s = { 0 };
		struct bench_row row = { 0 };
		struct bench_value v;

		for (int block = 0; block < 40; block++)
			add_block(&s, 100 + normal(&seed));
		assert_int_equal(samples_sum_up(&s, NULL, t, &row), 0);
		v = bootstrap_median(s.value, s.count, t);
		together += row.value.high - row.value.low;
		apart += v.high - v.low;
		samples_free(&s);
	}
	assert_true(together > 0.85 * apart && together < 1.15 * apart);
}

/* An even number has two values in the middle, and the one is as good as the other. */
static void intervals_lean_to_neither_side(void **state)
{
	double lean = 0, values[10];
	uint64_t seed = 79;

	(void)state;
	for (unsigned t = 0; t < 800; t++) {
		struct bench_value v;

		for (int i = 0; i < 10; i++)
			values[i] = normal(&seed);
		v = bootstrap_median(values, 10, t);
		lean += (v.low + v.high) / 2 / 800;
	}
	assert_true(fabs(lean) < 0.07);
}

/* --- Blocks and quadruples ------------------------------------------------------------------ */

static void blocks_have_their_own_median(void **state)
{
	struct samples s = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		samples_add(&s, i % 5);
	samples_end_block(&s);
	samples_end_block(&s);
	samples_add(&s, 10);
	samples_add(&s, 20);
	samples_end_block(&s);
	samples_add(&s, 99); /* not ended */
	assert_int_equal(s.blocks, 3);
	assert_int_equal(s.count, 1003);
	assert_float_equal(samples_block_median(&s, 0), 2, 0);
	assert_true(isnan(samples_block_median(&s, 1)));
	assert_float_equal(samples_block_median(&s, 2), 15, 0);
	samples_free(&s);
	assert_int_equal(s.count, 0);
	assert_null(s.value);
}

static void the_row_is_of_block_medians(void **state)
{
	struct samples s = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	/* Medians 1, 2, 30, although most samples are 1. */
	for (int i = 0; i < 9; i++)
		samples_add(&s, 1);
	samples_end_block(&s);
	add_block(&s, 2);
	add_block(&s, 30);
	assert_int_equal(samples_sum_up(&s, NULL, 1, &row), 0);
	assert_is(&row.value, 2, 1, 30);
	assert_int_equal(row.samples, 11);
	assert_int_equal(row.pairs, 3);
	assert_none(&row.base);
	assert_none(&row.ratio);
	samples_free(&s);
}

/* What block number n of all shows: the machine gets slower all the while, by a lot. */
static double drifting(double cost, unsigned n)
{
	return cost * (1 + 0.05 * n);
}

/* A B B A, or with @plain A A B B, A thrice as costly as B. */
static void drift_through(bool plain, struct bench_row *row)
{
	struct samples a = { 0 }, b = { 0 };

	for (unsigned n = 0; n < 40; n += 4) {
		add_block(&a, drifting(300, n));
		add_block(plain ? &a : &b, drifting(plain ? 300 : 100, n + 1));
		add_block(&b, drifting(100, n + 2));
		add_block(plain ? &b : &a, drifting(plain ? 100 : 300, n + 3));
	}
	assert_int_equal(samples_sum_up(&a, &b, 4, row), 0);
	samples_free(&a);
	samples_free(&b);
}

static void quadruples_cancel_a_drift(void **state)
{
	struct bench_row row = { 0 };

	(void)state;
	drift_through(false, &row);
	assert_int_equal(row.pairs, 10);
	assert_is(&row.ratio, 3, 3, 3);
	assert_float_equal(row.base.high / row.base.low, 2, 0.9);
	drift_through(true, &row);
	assert_true(row.ratio.high < 2.99);
}

/* It cannot have a ratio, and those behind it must keep theirs. */
static void an_empty_block_shifts_nothing(void **state)
{
	struct samples a = { 0 }, b = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		double much = exp2(i / 2); /* of the quadruple */

		add_block(&a, 5 * much);
		if (i == 6)
			samples_end_block(&b);
		else
			add_block(&b, much);
	}
	assert_int_equal(samples_sum_up(&a, &b, 4, &row), 0);
	assert_int_equal(row.pairs, 9);
	assert_is(&row.ratio, 5, 5, 5);
	samples_free(&a);
	samples_free(&b);
}

static void without_samples_there_are_no_figures(void **state)
{
	struct samples s = { 0 }, base = { 0 };
	struct bench_row row = { .most = 4, .outliers = 4 };

	(void)state;
	samples_end_block(&s);
	assert_int_equal(samples_sum_up(&s, &base, 1, &row), 0);
	assert_int_equal(row.samples, 0);
	assert_int_equal(row.pairs, 0);
	assert_int_equal(row.outliers, 0);
	assert_none(&row.value);
	assert_none(&row.ratio);
	assert_true(isnan(row.most));
	samples_free(&s);
}

static void no_number_is_no_sample(void **state)
{
	const double odd[] = { NAN, INFINITY, -INFINITY };
	struct bench_row row = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct samples s = { 0 }, good = { 0 };

		add_block(&good, 1);
		add_block(&s, 1);
		add_block(&s, odd[i]);
		assert_int_equal(samples_sum_up(&s, NULL, 1, &row), -EDOM);
		assert_int_equal(samples_sum_up(&good, &s, 1, &row), -EDOM);
		assert_int_equal(samples_sum_up(&good, NULL, 1, &row), 0);
		good.lost = true;
		assert_int_equal(samples_sum_up(&good, NULL, 1, &row), -ENOMEM);
		samples_free(&s);
		samples_free(&good);
	}
}

/* --- All samples ---------------------------------------------------------------------------- */

/* 1 to 101, shuffled a little, and three that are far off. */
static void with_outliers(struct samples *s)
{
	for (int i = 0; i <= 100; i++)
		samples_add(s, 1 + (i * 37) % 101);
	samples_add(s, 1e6);
	samples_add(s, 1000);
	samples_add(s, 500);
	samples_end_block(s);
}

static void outliers_are_kept(void **state)
{
	struct samples s = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	with_outliers(&s);
	assert_int_equal(samples_sum_up(&s, NULL, 1, &row), 0);
	assert_int_equal(row.samples, 104);
	assert_int_equal(row.outliers, 3);
	assert_float_equal(row.least, 1, 0);
	assert_float_equal(row.most, 1e6, 0);
	assert_float_equal(row.value.median, 52.5, 0);
	/* In proportion between two of the sorted ones, numbered from 0 to 103. */
	assert_float_equal(row.p5, 1 + 0.05 * 103, 1e-9);
	assert_float_equal(row.p25, 1 + 0.25 * 103, 1e-9);
	assert_float_equal(row.p75, 1 + 0.75 * 103, 1e-9);
	assert_float_equal(row.p95, 1 + 0.95 * 103, 1e-9);
	assert_float_equal(row.p99, 500 + (0.99 * 103 - 101) * 500, 1e-6);
	samples_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_of_odd_and_even),
		cmocka_unit_test(ties_are_one_value),
		cmocka_unit_test(nothing_and_no_number_have_no_median),
		cmocka_unit_test(same_seed_same_interval),
		cmocka_unit_test(intervals_hold_the_median),
		cmocka_unit_test(more_values_tell_more),
		cmocka_unit_test(blocks_of_a_round_are_not_two_opinions),
		cmocka_unit_test(blocks_that_differ_are_two_opinions),
		cmocka_unit_test(intervals_lean_to_neither_side),
		cmocka_unit_test(blocks_have_their_own_median),
		cmocka_unit_test(the_row_is_of_block_medians),
		cmocka_unit_test(quadruples_cancel_a_drift),
		cmocka_unit_test(an_empty_block_shifts_nothing),
		cmocka_unit_test(without_samples_there_are_no_figures),
		cmocka_unit_test(no_number_is_no_sample),
		cmocka_unit_test(outliers_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
