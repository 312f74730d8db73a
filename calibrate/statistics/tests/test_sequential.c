/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/sequential.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Solved with 40 digits. */
static const struct {
	uint64_t tears, toggles;
	double scale, lower, upper;
} known[] = {
	{ 0, 10, 0.1, 0.0, 0.2996440298893 },
	{ 0, 1000000, 1e-06, 0.0, 3.545032300913e-6 },
	{ 1, 1000000, 1e-06, 9.716461649868e-9, 6.518239860436e-6 },
	{ 3, 1000, 0.001, 0.0002768405822129, 0.01139831887487 },
	{ 10, 1000000, 1e-06, 2.223860933478e-6, 2.730025262988e-5 },
	{ 0, 4000000000, 1e-09, 0.0, 1.023586140087e-9 },
	{ 2, 1000000000, 1e-09, 1.032937424424e-10, 9.048947611802e-9 },
	{ 1000, 1000000000000, 1e-09, 8.86690578129e-10, 1.122574359821e-9 },
	{ 1000000, 1000000000000, 1e-06, 9.954454689181e-7, 1.004568402368e-6 },
	{ 1000000000, 1000000000000, 0.001, 0.0009998336150626, 0.001000166403377 },
	{ 5000000000, 1000000000000, 1e-09, 0.004843753369875, 0.005159554046117 },
	{ 500, 1000, 0.001, 0.1794740448932, 0.8205259551068 },
};

static const double scales[] = { 1e-9, 1e-6, 1e-3 };
static const uint64_t all_toggles[] = { 1,	 2,	     10,	  1000,
					1000000, 1000000000, 10000000000, 1000000000000 };
static const uint64_t all_tears[] = { 0, 1, 2, 10, 1000, 1000000, 1000000000 };

static void assert_close(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance * expected))
		fail_msg("%.17g is not %.17g within %g of it", value, expected, tolerance);
}

static void known_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		const double upper =
			sequential_upper(known[i].tears, known[i].toggles, known[i].scale, 0.05);
		const double lower =
			sequential_lower(known[i].tears, known[i].toggles, known[i].scale, 0.05);

		assert_close(upper, known[i].upper, 1e-8);
		assert_close(lower, known[i].lower, 1e-8);
	}
}

static void outside_a_single_look(void **state)
{
	(void)state;
	for (size_t s = 0; s < COUNT(scales); s++) {
		for (size_t n = 0; n < COUNT(all_toggles); n++) {
			for (size_t k = 0; k < COUNT(all_tears); k++) {
				const uint64_t tears = all_tears[k], toggles = all_toggles[n];
				const double rate = (double)tears / (double)toggles;
				double upper = sequential_upper(tears, toggles, scales[s], 0.05);
				double lower = sequential_lower(tears, toggles, scales[s], 0.05);

				if (tears > toggles)
					continue;
				assert_true(upper <= 1 && upper >= rate);
				assert_true(lower >= 0 && lower <= rate);
				assert_true(upper >= bound_upper(tears, toggles, 0.95) * 0.999);
				/* For rates that are not small that one is cautious. */
				if (rate <= 1e-3)
					assert_true(lower <=
						    bound_lower(tears, toggles, 0.95) * 1.001);
			}
		}
	}
}

static void less_error_costs(void **state)
{
	(void)state;
	assert_true(sequential_upper(3, 1000000, 1e-6, 0.01) >
		    sequential_upper(3, 1000000, 1e-6, 0.05));
	assert_true(sequential_lower(3, 1000000, 1e-6, 0.01) <
		    sequential_lower(3, 1000000, 1e-6, 0.05));
}

static void nothing_tried_is_nothing_known(void **state)
{
	(void)state;
	assert_true(sequential_upper(0, 0, 1e-6, 0.05) == 1);
	assert_true(sequential_lower(0, 0, 1e-6, 0.05) == 0);
	assert_true(sequential_upper(7, 7, 1e-6, 0.05) == 1);
	assert_true(sequential_lower(0, 100, 1e-6, 0.05) == 0);
	assert_int_equal(sequential_decide(0, 0, 1e-6, 0.05), DECISION_CONTINUE);
	assert_int_equal(sequential_decide(0, 1, 1e-6, 0.05), DECISION_CONTINUE);
	/* More tears than toggles is as many as can be. */
	assert_true(sequential_upper(8, 7, 1e-6, 0.05) == 1);
	assert_true(sequential_lower(8, 7, 1e-6, 0.05) == sequential_lower(7, 7, 1e-6, 0.05));
	assert_int_equal(sequential_decide(8, 7, 1e-6, 0.05), DECISION_REJECT);
	assert_int_equal(sequential_decide(5, 7, 1, 0.05), DECISION_ACCEPT);
}

/* As the header says: 4.2 / promise. */
static void a_clean_run_is_accepted_in_time(void **state)
{
	static const double promises[] = { 1e-3, 1e-6, 1e-9, 1e-11 };

	(void)state;
	for (size_t i = 0; i < COUNT(promises); i++) {
		const double p = promises[i];

		assert_int_equal(sequential_decide(0, (uint64_t)(4.1 / p), p, 0.05),
				 DECISION_CONTINUE);
		assert_int_equal(sequential_decide(0, (uint64_t)(4.3 / p), p, 0.05),
				 DECISION_ACCEPT);
	}
}

static void a_bad_run_is_rejected(void **state)
{
	(void)state;
	assert_int_equal(sequential_decide(1, 1000000, 1e-6, 0.05), DECISION_CONTINUE);
	/* However early: the mixture has hardly any rates so far above the promise. */
	assert_int_equal(sequential_decide(3, 1000, 1e-6, 0.05), DECISION_CONTINUE);
	assert_int_equal(sequential_decide(4, 1000, 1e-6, 0.05), DECISION_REJECT);
	assert_int_equal(sequential_decide(20, 1000000, 1e-6, 0.05), DECISION_REJECT);
	assert_int_equal(sequential_decide(1000500, 1000000000000, 1e-6, 0.05), DECISION_CONTINUE);
	assert_int_equal(sequential_decide(1010000, 1000000000000, 1e-6, 0.05), DECISION_REJECT);
	assert_int_equal(sequential_decide(990000, 1000000000000, 1e-6, 0.05), DECISION_ACCEPT);
}

/* The decision is what the bounds say. */
static void decisions_follow_the_bounds(void **state)
{
	(void)state;
	for (size_t s = 0; s < COUNT(scales); s++) {
		for (size_t n = 0; n < COUNT(all_toggles); n++) {
			for (size_t k = 0; k < COUNT(all_tears); k++) {
				const uint64_t tears = all_tears[k], toggles = all_toggles[n];
				const double p = scales[s];
				enum decision d = sequential_decide(tears, toggles, p, 0.05);

				if (tears > toggles)
					continue;
				assert_int_equal(d == DECISION_ACCEPT,
						 sequential_upper(tears, toggles, p, 0.05) <= p);
				assert_int_equal(d == DECISION_REJECT,
						 sequential_lower(tears, toggles, p, 0.05) > p);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(outside_a_single_look),
		cmocka_unit_test(less_error_costs),
		cmocka_unit_test(nothing_tried_is_nothing_known),
		cmocka_unit_test(a_clean_run_is_accepted_in_time),
		cmocka_unit_test(a_bad_run_is_rejected),
		cmocka_unit_test(decisions_follow_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
