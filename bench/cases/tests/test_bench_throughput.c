/* SPDX-License-Identifier: MIT */
/*
 * What is told of calls through a site that is toggled: the figures are computed right, and
 * every row is there. TMAX_STRESS_SCALE lengthens it.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cases/throughput.c"
#include "bench/tests/bench_run.h"

static struct bench_run run_here = { .seed = 1, .stop = &bench_run_stop };
static bool alone; /* one CPU: nothing ever runs at the same time */

/* --- Figures ------------------------------------------------------------------------------ */

static void the_balance_is_more_to_less(void **state)
{
	(void)state;
	assert_true(flow_balance(10, 5) == 2);
	assert_true(flow_balance(5, 10) == 2);
	assert_true(flow_balance(7, 7) == 1);
	assert_true(isinf(flow_balance(1, 0)) && isinf(flow_balance(0, 1)));
	assert_true(isnan(flow_balance(0, 0)));
}

static void what_is_missing_is_seen(void **state)
{
	struct flow_sum sum = { .executed = 300, .calls = { 200, 100 } };

	(void)state;
	assert_int_equal(flow_check(&sum, false), 0);
	assert_int_equal(flow_check(&sum, true), -EILSEQ);
	sum.calls[1] = 99;
	assert_int_equal(flow_check(&sum, false), -EILSEQ);
	sum.calls[1] = 101;
	assert_int_equal(flow_check(&sum, false), -EILSEQ);
	sum.calls[1] = 0;
	assert_int_equal(flow_check(&sum, true), 0);
	sum.calls[0] = 301;
	assert_int_equal(flow_check(&sum, true), -EILSEQ);
}

static struct flow_sum made_up(uint64_t toggles, uint64_t first, uint64_t second)
{
	return (struct flow_sum){
		.seconds = 0.5,
		.toggles = toggles,
		.executed = first + second,
		.ran = { first, second },
		.per_second = { 2.0 * (double)first, 2.0 * (double)second },
	};
}

static void tally(struct flow_tally *t, uint64_t toggles, uint64_t first, uint64_t second)
{
	struct flow_sum sum = made_up(toggles, first, second);

	flow_tally_add(t, &sum);
}

static void figures_are_medians_without_the_warm_up(void **state)
{
	struct flow_tally t = { 0 }, none = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	tally(&t, 9999, 1, 1000);
	tally(&t, 100, 300, 100);
	tally(&t, 200, 100, 200);
	tally(&t, 300, 100, 500);
	flow_tally_extras(&t, &row);
	assert_true(bench_row_extra_of(&row, "toggles_per_s") == 400);
	assert_true(fabs(bench_row_extra_of(&row, "balance") - 3) < 1e-12);
	assert_int_equal(row.extras, 2);
	/* One block in which only one was seen does not change the median much. */
	tally(&t, 200, 0, 500);
	row.extras = 0;
	flow_tally_extras(&t, &row);
	assert_true(bench_row_extra_of(&row, "balance") > 3);
	assert_true(bench_row_extra_of(&row, "balance") <= 5);
	flow_tally_free(&t);
	row.extras = 0;
	flow_tally_extras(&none, &row);
	assert_true(isnan(bench_row_extra_of(&row, "toggles_per_s")));
}

static void a_site_that_is_left_alone_has_no_balance(void **state)
{
	struct flow_tally t = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	tally(&t, 0, 10, 10);
	tally(&t, 0, 10, 20);
	flow_tally_extras(&t, &row);
	assert_int_equal(row.extras, 1);
	assert_true(bench_row_extra_of(&row, "toggles_per_s") == 0);
	flow_tally_free(&t);
}

/* --- The benchmark ------------------------------------------------------------------------ */

static bool is_text(const struct bench_row *row, const char *key, const char *text)
{
	const char *is = bench_row_text(row, key);

	return text ? is && strcmp(is, text) == 0 : !is;
}

static const struct bench_row *find(const struct bench_result *r, const char *name,
				    const char *split, const char *policy, const char *mode,
				    double rate)
{
	for (unsigned i = 0; i < r->rows; i++) {
		const struct bench_row *row = &r->row[i];

		if (strcmp(row->name, name) == 0 && is_text(row, "split", split) &&
		    is_text(row, "policy", policy) && is_text(row, "mode", mode) &&
		    (isnan(rate) || bench_row_number(row, "rate") == rate))
			return row;
	}
	return NULL;
}

static void check_row(const struct bench_row *row, double rate)
{
	double toggles;

	assert_non_null(row);
	assert_string_equal(row->measure, "calls");
	assert_string_equal(row->unit, "calls/s");
	assert_true(bench_row_number(row, "executors") == 1);
	if (!row->samples) {
		assert_true(row->why[0] != '\0');
		/* At this rate no executor sleeps so long that it sees only one state. */
		assert_true(alone || rate != 1e5 || is_text(row, "split", "3|2"));
		return;
	}
	assert_string_equal(row->against, "untouched");
	assert_true(row->samples == 2 * run_here.rounds && row->pairs == run_here.rounds);
	/* A patcher that is not given a CPU in these short blocks makes no change. */
	toggles = bench_row_extra_of(row, "toggles_per_s");
	assert_true(isnan(bench_row_extra_of(row, "balance")) == (toggles == 0));
	assert_true(toggles >= 0 && toggles <= (rate == 1e7 ? 1e9 : rate > 0 ? rate + 1e-6 : 0));
}

static void check_ways(const struct bench_result *r)
{
	static const struct {
		const char *name, *split, *policy, *mode;
	} all[] = {
		{ "call", "0", NULL, "call-call" },
		{ "call", "0", NULL, "call-nop" },
		{ "call", "3|2", NULL, "call-call" },
		{ "call", "3|2", NULL, "call-nop" },
		{ "aligned", "0", NULL, "call-call" },
		{ "aligned", "0", NULL, "call-nop" },
		{ "straddler", "3|2", "wait", "call-call" },
		{ "straddler", "3|2", "wait", "call-nop" },
		{ "straddler", "3|2", "membarrier", "call-call" },
		{ "straddler", "3|2", "membarrier", "call-nop" },
		{ "floor", NULL, NULL, "call-call" },
		{ "floor", NULL, NULL, "call-nop" },
		{ "pointer", NULL, NULL, "call-call" },
		{ "flag", NULL, NULL, "call-nop" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (size_t k = 0; k < RATES; k++)
			check_row(find(r, all[i].name, all[i].split, all[i].policy, all[i].mode,
				       toggle_rates[k]),
				  toggle_rates[k]);
}

static void every_row_is_there(void **state)
{
	struct bench_result result = { 0 };

	(void)state;
	assert_int_equal(measure_throughput(&run_here, &result), 0);
	assert_int_equal(result.rows, 14 * RATES);
	check_ways(&result);
	bench_result_free(&result);
}

static void more_executors_have_more_rows(void **state)
{
	struct bench_run run = run_here;
	struct bench_result result = { 0 };
	unsigned seen[8] = { 0 };

	(void)state;
	run.seating.executors = 5;
	for (unsigned i = 1; i < 5; i++)
		run.seating.executor[i] = run.seating.executor[0];
	run.rounds = 0;
	assert_int_equal(measure_throughput(&run, &result), 0);
	for (unsigned i = 0; i < result.rows; i++) {
		double executors = bench_row_number(&result.row[i], "executors");

		if (executors >= 1 && executors < 8)
			seen[(unsigned)executors]++;
	}
	/* 1, 2, 4 and all 5; in between only calls at split 0, in either mode. */
	assert_int_equal(seen[1], 14 * RATES);
	assert_int_equal(seen[2], 2 * RATES);
	assert_int_equal(seen[3], 0);
	assert_int_equal(seen[4], 2 * RATES);
	assert_int_equal(seen[5], 14 * RATES);
	bench_result_free(&result);
}

/* --- Around all of it --------------------------------------------------------------------- */

static int set_up(void **state)
{
	int foreign;

	(void)state;
	slice = 0.002;
	run_here.rounds = (unsigned)ceil(test_scale());
	assert_int_equal(topology_open(&run_here.topology, &foreign), 0);
	alone = bench_run_seat(run_here.topology, &run_here.seating) != 0;
	assert_int_equal(pin_this_thread(run_here.topology, run_here.seating.patcher), 0);
	return pc_init();
}

static int tear_down(void **state)
{
	(void)state;
	hwloc_topology_destroy(run_here.topology);
	return pc_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_balance_is_more_to_less),
		cmocka_unit_test(what_is_missing_is_seen),
		cmocka_unit_test(figures_are_medians_without_the_warm_up),
		cmocka_unit_test(a_site_that_is_left_alone_has_no_balance),
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(more_executors_have_more_rows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
