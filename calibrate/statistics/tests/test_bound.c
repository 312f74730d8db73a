/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/statistics/bound.h"

/* Clopper-Pearson, one-sided, computed with 40 digits; the first ones are in textbooks. */
static const struct {
	uint64_t tears, toggles;
	double confidence, upper;
} known[] = {
	{ 0, 10, .95, 0.258865550893 },
	{ 1, 10, .95, 0.394163302437 },
	{ 2, 10, .95, 0.506901301063 },
	{ 9, 10, .95, 0.994883803108 },
	{ 1, 30, .95, 0.148596068659 },
	{ 0, 100, .95, 0.029513049607 },
	{ 5, 100, .95, 0.102253377643 },
	{ 0, 10, .99, 0.36904265552 },
	{ 3, 50, .99, 0.187209256165 },
	{ 2, 10000, .95, 0.000629444148687 },
	{ 12, 10000, .95, 0.00194353340146 },
	{ 2, 100000, .95, 6.29565839609e-5 },
	{ 50, 100000, .95, 0.000632828692825 },
	{ 0, 1000000, .95, 2.99572778635e-6 },
	{ 0, 1000000000000, .95, 2.99573227355e-12 },
	{ 0, INT64_MAX, .95, 3.24797943917e-19 },
};

/* The same where the bound may be above the exact one, by less than p itself. */
static const struct {
	uint64_t tears, toggles;
	double upper;
} rare[] = {
	{ 2, 100001, 6.29559544149e-5 },	 { 1, 1000000, 4.74385563821e-6 },
	{ 2, 1000000, 6.29578009917e-6 },	 { 100, 1000000, 0.000118078205369 },
	{ 3000, 10000000, 0.000309165810816 },	 { 3, 1000000000, 7.7536565095e-9 },
	{ 1, 1000000000000, 4.74386451838e-12 }, { 7, 1000000000000000000, 1.31481138024e-17 },
};

/* The other side, likewise. */
static const struct {
	uint64_t tears, toggles;
	double confidence, lower;
} known_lower[] = {
	{ 1, 10, .95, 0.00511619689182 },      { 2, 10, .95, 0.0367714378875 },
	{ 9, 10, .95, 0.605836697563 },	       { 10, 10, .95, 0.741134449107 },
	{ 5, 100, .95, 0.0199055636622 },      { 3, 50, .99, 0.00886076144587 },
	{ 2, 10000, .95, 3.55372965513e-5 },   { 12, 10000, .95, 0.000692562423815 },
	{ 50, 100000, .95, 0.00038966688011 }, { 1, 10, .9999, 1.00004500285e-5 },
};

static const struct {
	uint64_t tears, toggles;
	double lower;
} rare_lower[] = {
	{ 2, 100001, 3.55359102503e-6 },
	{ 1, 1000000, 5.1293293072e-8 },
	{ 2, 1000000, 3.55361625239e-7 },
	{ 100, 1000000, 8.41399024228e-5 },
	{ 3, 1000000000, 8.17691447164e-10 },
	{ 1, 1000000000000, 5.12932943876e-14 },
	{ 7, 1000000000000000000, 3.28531569189e-18 },
};

static const uint64_t tears[] = {
	0, 1, 2, 3, 10, 100, 9999, 100000, 1000000, 100000000, 4000000000
};
static const uint64_t toggles[] = { 1,	       2,      3,	10,	   1000,	  99999,
				    100000,    100001, 1000000, 123456789, 1000000000000, INT64_MAX,
				    UINT64_MAX };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void assert_close(double value, double expected, double tolerance)
{
	if (!(fabs(value / expected - 1) <= tolerance))
		fail_msg("%.17g is not %.17g within %g of it", value, expected, tolerance);
}

static void known_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(known); i++)
		assert_close(bound_upper(known[i].tears, known[i].toggles, known[i].confidence),
			     known[i].upper, 1e-10);
}

static void rare_tears_are_bounded_from_the_safe_side(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rare); i++) {
		double p = bound_upper(rare[i].tears, rare[i].toggles, 0.95);

		assert_true(p >= rare[i].upper * (1 - 1e-11));
		assert_close(p, rare[i].upper, rare[i].upper + 1e-11);
	}
}

static void no_tears_is_the_rule_of_three(void **state)
{
	(void)state;
	for (uint64_t n = 100; n < UINT64_MAX / 10; n *= 10)
		assert_close(bound_upper(0, n, 0.95), 3.0 / (double)n, 0.02);
	/* One toggle more is still told apart. */
	assert_true(bound_upper(0, 1000000000001, 0.95) < bound_upper(0, 1000000000000, 0.95));
}

static void nothing_tried_is_nothing_known(void **state)
{
	(void)state;
	assert_true(bound_upper(0, 0, 0.95) == 1);
	assert_true(bound_upper(5, 0, 0.95) == 1);
	assert_true(bound_upper(10, 10, 0.95) == 1);
	assert_true(bound_upper(11, 10, 0.95) == 1);
	assert_true(bound_upper(UINT64_MAX, UINT64_MAX, 0.95) == 1);
}

static void a_probability_above_the_rate(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(toggles); n++) {
		for (size_t k = 0; k < COUNT(tears) && tears[k] <= toggles[n]; k++) {
			double p = bound_upper(tears[k], toggles[n], 0.95);

			assert_true(p > (double)tears[k] / (double)toggles[n] || p == 1);
			assert_true(p <= 1);
		}
	}
}

static void more_tears_are_worse(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(toggles); n++) {
		for (size_t k = 1; k < COUNT(tears); k++) {
			double less = bound_upper(tears[k - 1], toggles[n], 0.95);
			double more = bound_upper(tears[k], toggles[n], 0.95);

			assert_true(more > less || less == 1);
		}
	}
}

static void more_toggles_are_better(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(tears); k++) {
		for (size_t n = 1; n < COUNT(toggles); n++) {
			double fewer = bound_upper(tears[k], toggles[n - 1], 0.95);
			double more = bound_upper(tears[k], toggles[n], 0.95);

			assert_true(more <= fewer);
		}
	}
}

static void more_confidence_costs(void **state)
{
	(void)state;
	for (size_t n = 3; n < COUNT(toggles); n++) {
		for (size_t k = 0; k < COUNT(tears) && tears[k] < toggles[n]; k++) {
			double some = bound_upper(tears[k], toggles[n], 0.9);
			double most = bound_upper(tears[k], toggles[n], 0.999);

			assert_true(most > some || some == 1);
		}
	}
}

static void known_lower_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(known_lower); i++)
		assert_close(bound_lower(known_lower[i].tears, known_lower[i].toggles,
					 known_lower[i].confidence),
			     known_lower[i].lower, 1e-10);
}

static void rare_tears_are_bounded_from_below_too(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rare_lower); i++) {
		double p = bound_lower(rare_lower[i].tears, rare_lower[i].toggles, 0.95);

		assert_true(p <= rare_lower[i].lower * (1 + 1e-11));
		assert_close(p, rare_lower[i].lower,
			     (double)rare_lower[i].tears / (double)rare_lower[i].toggles + 1e-11);
	}
}

static void no_tears_bound_nothing_from_below(void **state)
{
	(void)state;
	assert_true(bound_lower(0, 0, 0.95) == 0);
	assert_true(bound_lower(5, 0, 0.95) == 0);
	assert_true(bound_lower(0, 1000000, 0.95) == 0);
	assert_close(bound_lower(UINT64_MAX, 10, 0.95), bound_lower(10, 10, 0.95), 1e-15);
}

static void lower_is_below_the_rate_and_orderly(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(toggles); n++) {
		for (size_t k = 1; k < COUNT(tears) && tears[k] <= toggles[n]; k++) {
			double p = bound_lower(tears[k], toggles[n], 0.95);

			assert_true(p > 0 && p < (double)tears[k] / (double)toggles[n]);
			assert_true(p > bound_lower(tears[k - 1], toggles[n], 0.95));
			assert_true(p > bound_lower(tears[k], toggles[n], 0.999));
			assert_true(n + 1 == COUNT(toggles) ||
				    p >= bound_lower(tears[k], toggles[n + 1], 0.95));
		}
	}
}

/* Far out, as a correction for many cells asks for: GSL must not give up. */
static void any_confidence_can_be_asked_for(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(toggles); n++) {
		for (size_t k = 0; k < COUNT(tears) && tears[k] <= toggles[n]; k++) {
			double each = bound_confidence_each(0.9999, 1000000);

			assert_true(bound_upper(tears[k], toggles[n], each) >=
				    bound_upper(tears[k], toggles[n], 0.9999));
			assert_true(bound_lower(tears[k], toggles[n], each) <=
				    bound_lower(tears[k], toggles[n], 0.9999));
		}
	}
}

static void many_cells_share_the_error(void **state)
{
	(void)state;
	assert_true(bound_confidence_each(0.95, 0) == 0.95);
	assert_true(bound_confidence_each(0.95, 1) == 0.95);
	assert_close(1 - bound_confidence_each(0.95, 20), 0.0025, 1e-12);
	assert_close(1 - bound_confidence_each(0.99, 1000), 1e-5, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(rare_tears_are_bounded_from_the_safe_side),
		cmocka_unit_test(no_tears_is_the_rule_of_three),
		cmocka_unit_test(nothing_tried_is_nothing_known),
		cmocka_unit_test(a_probability_above_the_rate),
		cmocka_unit_test(more_tears_are_worse),
		cmocka_unit_test(more_toggles_are_better),
		cmocka_unit_test(more_confidence_costs),
		cmocka_unit_test(known_lower_values),
		cmocka_unit_test(rare_tears_are_bounded_from_below_too),
		cmocka_unit_test(no_tears_bound_nothing_from_below),
		cmocka_unit_test(lower_is_below_the_rate_and_orderly),
		cmocka_unit_test(any_confidence_can_be_asked_for),
		cmocka_unit_test(many_cells_share_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
