/* SPDX-License-Identifier: MIT */
/*
 * What a result tells beside its figures: on what it was measured, among whom, and what a
 * row is called.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bench/method/method.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"

#define FIRST_WAIT  3100
#define SECOND_WAIT 3200
#define STRETCH	    3

static hwloc_topology_t topology;
static struct bench_run run;

static int one_sample(struct bench_case *c, struct samples *s, char *why)
{
	(void)c;
	(void)why;
	samples_add(s, 1);
	return 0;
}

/* --- Around it ------------------------------------------------------------------------------ */

static void assert_date(const char *date)
{
	struct tm tm = { 0 };
	const char *end = strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm);

	assert_non_null(end);
	assert_int_equal(*end, '\0');
	assert_true(llabs((long long)(timegm(&tm) - time(NULL))) < 100);
}

static void assert_witness(const struct witness *w)
{
	assert_true(w->voluntary >= 3); /* the pauses below */
	assert_true(w->voluntary != WITNESS_UNKNOWN);
	assert_true(w->involuntary != WITNESS_UNKNOWN);
	assert_true(w->clock[0] > 0 && w->clock[1] > 0);
	assert_true(w->load != 0);
	assert_true(w->steal == -1 || (w->steal >= 0 && w->steal <= 1.5));
	if (run.seating.executors)
		assert_true(w->offset_error < 1000000000);
	else
		assert_true(w->offset_error == WITNESS_UNKNOWN);
}

static void a_result_tells_on_what_and_among_whom(void **state)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct bench_result result;
	struct bench_watch watch;
	struct bench_case c;

	(void)state;
	run.rounds = 2;
	run.seed = 99;
	assert_int_equal(bench_result_begin(&run, "toggle", &result, &watch), 0);
	for (int i = 0; i < 3; i++)
		nanosleep(&pause, NULL);
	c = (struct bench_case){ .block = one_sample };
	assert_int_equal(bench_measure(&run, &c, 1, &result), 0);
	bench_result_end(&run, &result, &watch);
	assert_string_equal(result.benchmark, "toggle");
	assert_date(result.date);
	assert_int_equal(result.seed, 99);
	assert_int_equal(result.rounds, 2);
	assert_int_equal(result.rows, 1);
	assert_true(result.seconds >= 0.006 && result.seconds < 100);
	assert_memory_equal(&result.seating, &run.seating, sizeof(run.seating));
	assert_witness(&result.witness);
	bench_result_free(&result);
	assert_int_equal(result.rows, 0);
	run.seed = 1;
}

static void waits_in_use_are_told(void **state)
{
	struct bench_result result;
	struct bench_watch watch;
	struct pc_status status;

	(void)state;
	assert_int_equal(bench_result_begin(&run, "toggle", &result, &watch), 0);
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
	assert_int_equal(result.waits.first, FIRST_WAIT);
	assert_int_equal(result.waits.second, SECOND_WAIT);
	assert_int_equal(result.waits.stretch, STRETCH);
	bench_result_end(&run, &result, &watch);
	bench_result_free(&result);
}

/* Of all bench_measure() of a benchmark. */
static void the_distance_is_told(void **state)
{
	struct bench_result result = { .distance = { NAN, NAN, NAN } };
	struct bench_value first;
	struct bench_case c;

	(void)state;
	run.rounds = 3;
	c = (struct bench_case){ .block = one_sample };
	assert_int_equal(bench_measure(&run, &c, 1, &result), 0);
	first = result.distance;
	if (!run.seating.executors) {
		assert_true(isnan(first.median));
		skip();
	}
	assert_true(first.low > 0 && first.low <= first.median && first.median <= first.high);
	c = (struct bench_case){ .block = one_sample };
	assert_int_equal(bench_measure(&run, &c, 1, &result), 0);
	assert_true(result.distance.low <= first.low && result.distance.high >= first.high);
	bench_result_free(&result);
}

/* --- Rows ----------------------------------------------------------------------------------- */

static void rows_are_found_by_what_they_say(void **state)
{
	struct bench_row row = { 0 };

	(void)state;
	bench_row_name(&row, "call", "on", "ticks");
	bench_row_param_text(&row, "split", "1|4");
	bench_row_param(&row, "rate", 1e7);
	bench_row_extra(&row, "balance", 1.5);
	assert_string_equal(bench_row_text(&row, "split"), "1|4");
	assert_null(bench_row_text(&row, "rate"));
	assert_null(bench_row_text(&row, "none"));
	assert_float_equal(bench_row_number(&row, "rate"), 1e7, 0);
	assert_true(isnan(bench_row_number(&row, "split")));
	assert_true(isnan(bench_row_number(&row, "none")));
	assert_float_equal(bench_row_extra_of(&row, "balance"), 1.5, 0);
	assert_true(isnan(bench_row_extra_of(&row, "none")));
}

static void a_difference_is_one_beyond_the_noise(void **state)
{
	struct bench_row row = { 0 };

	(void)state;
	row.ratio = (struct bench_value){ 1.1, 0.9, 1.3 };
	assert_true(bench_row_same(&row));
	row.ratio = (struct bench_value){ 1.1, 1.01, 1.3 };
	assert_false(bench_row_same(&row));
	row.ratio = (struct bench_value){ 0.9, 0.8, 0.99 };
	assert_false(bench_row_same(&row));
	row.ratio = (struct bench_value){ 1.1, 1, 1.3 };
	assert_true(bench_row_same(&row));
	row.ratio = (struct bench_value){ NAN, NAN, NAN };
	assert_true(bench_row_same(&row));
}

static int set_up(void **state)
{
	char why[BENCH_WHY];
	unsigned seats;
	int foreign;

	(void)state;
	policy_assume_waits(FIRST_WAIT, SECOND_WAIT, STRETCH);
	if (topology_open(&topology, &foreign) < 0 || pc_init() < 0)
		return -1;
	run = (struct bench_run){ .topology = topology, .seed = 1 };
	seats = placement_max(topology, PLACEMENT_SPREAD, why, sizeof(why));
	run.seating.patcher =
		(unsigned)hwloc_bitmap_first(hwloc_topology_get_topology_cpuset(topology));
	if (seats)
		return placement_seat(topology, PLACEMENT_SPREAD, 1, 0, &run.seating, why,
				      sizeof(why));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hwloc_topology_destroy(topology);
	return pc_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_tells_on_what_and_among_whom),
		cmocka_unit_test(waits_in_use_are_told),
		cmocka_unit_test(the_distance_is_told),
		cmocka_unit_test(rows_are_found_by_what_they_say),
		cmocka_unit_test(a_difference_is_one_beyond_the_noise),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
