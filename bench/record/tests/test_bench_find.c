/* SPDX-License-Identifier: MIT */
/* Finding rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/record/bench_record.h"
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
	assert_null(bench_next(&r, "ptrace", NULL, NULL, &i));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_by_what_they_are),
		cmocka_unit_test(what_a_row_does_not_say_may_be_asked),
		cmocka_unit_test(skipped_rows_are_not_found),
		cmocka_unit_test(the_last_of_a_benchmark_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
