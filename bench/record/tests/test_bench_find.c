/* SPDX-License-Identifier: MIT */
/* Finding rows, and what one costs over another. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/record/bench_words.h"
#include "bench/tests/bench_sample.h"

static void rows_are_found_by_what_they_are(void **state)
{
	struct bench_row row = { .samples = 1 };

	(void)state;
	bench_row_name(&row, "call", "on", "ticks");
	bench_row_param_text(&row, "split", "1|4");
	bench_row_param(&row, "executors", 1);
	assert_true(bench_is(&row, NULL, NULL, NULL));
	assert_true(bench_is(&row, "call", "on", "split=1|4 executors=1"));
	assert_true(bench_is(&row, "aligned call", "off on", " executors=1  split=1|4"));
	assert_false(bench_is(&row, "cal", NULL, NULL));
	assert_false(bench_is(&row, "calls", NULL, NULL));
	assert_false(bench_is(&row, NULL, "off", NULL));
	assert_false(bench_is(&row, NULL, NULL, "split=4|1"));
	assert_false(bench_is(&row, NULL, NULL, "executors=10"));
	assert_false(bench_is(&row, NULL, NULL, "executors="));
}

static void what_a_row_does_not_say_may_be_asked(void **state)
{
	struct bench_row row = { .samples = 1 };

	(void)state;
	bench_row_param_text(&row, "cache", "cold");
	assert_false(bench_is(&row, NULL, NULL, "mapping=open"));
	assert_true(bench_is(&row, NULL, NULL, "?mapping=open"));
	assert_false(bench_is(&row, NULL, NULL, "?cache=hot"));
	assert_true(bench_is(&row, NULL, NULL, "?cache=cold"));
	assert_false(bench_is(&row, NULL, NULL, "nonsense"));
}

static void skipped_rows_are_not_found(void **state)
{
	struct bench_result r = sample_toggle();
	unsigned i = 0;

	(void)state;
	assert_null(bench_next(&r, "uprobe", NULL, NULL, &i));
	assert_int_equal(i, r.rows);
	i = 0;
	assert_null(bench_next(NULL, "call", NULL, NULL, &i));
	bench_result_free(&r);
}

static void the_last_of_a_benchmark_counts(void **state)
{
	struct bench_result r[3] = { sample_result("toggle"), sample_result("stall"),
				     sample_result("toggle") };

	(void)state;
	assert_ptr_equal(bench_of(r, 3, "toggle"), &r[2]);
	assert_ptr_equal(bench_of(r, 2, "toggle"), &r[0]);
	assert_null(bench_of(r, 3, "invoke"));
}

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-9 * fabs(b));
}

static struct bench_value over(struct bench_value a, struct bench_value b)
{
	const struct bench_row of_a = { .value = a }, of_b = { .value = b };

	return row_over(&of_a, &of_b);
}

static void intervals_are_made_of_their_ends(void **state)
{
	const struct bench_value a = { 10, 8, 12 }, b = { 2, 1, 4 }, bare = { 5, NAN, NAN };
	struct bench_value v = over(a, b);

	(void)state;
	assert_near(v.median, 5);
	assert_near(v.low, 2);
	assert_near(v.high, 12);
	v = over(bare, b);
	assert_near(v.low, 1.25);
	assert_near(v.high, 5);
}

/* A machine twice as slow while one was measured was as slow for its baseline. */
static void a_shared_baseline_takes_drift_out(void **state)
{
	struct bench_result r = sample_result("toggle");
	struct bench_row a, b;

	(void)state;
	a = *sample_against(sample_row(&r, "a", "on", "ticks", 600), "floor", 200);
	b = *sample_against(sample_row(&r, "b", "on", "ticks", 100), "floor", 100);
	assert_near(row_over(&a, &b).median, 3);
	strcpy(b.against, "empty");
	assert_near(row_over(&a, &b).median, 6);
	bench_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_by_what_they_are),
		cmocka_unit_test(what_a_row_does_not_say_may_be_asked),
		cmocka_unit_test(skipped_rows_are_not_found),
		cmocka_unit_test(the_last_of_a_benchmark_counts),
		cmocka_unit_test(intervals_are_made_of_their_ends),
		cmocka_unit_test(a_shared_baseline_takes_drift_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
