/* SPDX-License-Identifier: MIT */
/*
 * Finding rows, and what the targets make of them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/method/samples.h"
#include "bench/record/bench_find.h"
#include "bench/record/targets.h"
#include "bench/tests/bench_sample.h"

/* --- Finding ------------------------------------------------------------------------ */

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
	assert_true(bench_is(&row, NULL, NULL, "cache!=hot"));
	assert_false(bench_is(&row, NULL, NULL, "cache!=cold"));
	assert_false(bench_is(&row, NULL, NULL, "nonsense"));
}

static void skipped_rows_are_found_apart(void **state)
{
	struct bench_result r = sample_toggle();
	unsigned i = 0;

	(void)state;
	assert_null(bench_next(&r, "uprobe", NULL, NULL, &i));
	assert_int_equal(i, r.rows);
	assert_string_equal(bench_skipped(&r, "uprobe", NULL, NULL)->why,
			    "perf_event_open: Permission denied");
	assert_null(bench_skipped(&r, "call", NULL, NULL));
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

static void intervals_are_made_of_their_ends(void **state)
{
	const struct bench_value a = { 10, 8, 12 }, b = { 2, 1, 4 }, bare = { 5, NAN, NAN };
	struct bench_value v = value_over(a, b);

	(void)state;
	assert_near(v.median, 5);
	assert_near(v.low, 2);
	assert_near(v.high, 12);
	v = value_less(a, b);
	assert_near(v.median, 8);
	assert_near(v.low, 4);
	assert_near(v.high, 11);
	v = value_over(bare, b);
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

/* --- Targets ---------------------------------------------------------------------------- */

static struct target targets[TARGETS_MAX];

static const struct target *target_in(const struct bench_result *r, size_t count, const char *what)
{
	size_t all = targets_of(r, count, targets, TARGETS_MAX);

	for (size_t i = 0; i < all; i++)
		if (strstr(targets[i].what, what))
			return &targets[i];
	fail_msg("no target %s", what);
	return NULL;
}

static struct bench_row *floor_row(struct bench_result *r, const char *name, double ratio,
				   double spread)
{
	struct bench_row *row = sample_row(r, name, "on", "ticks", ratio * SAMPLE_FLOOR);

	sample_against(row, "floor", SAMPLE_FLOOR);
	row->ratio = (struct bench_value){ ratio, ratio - spread, ratio + spread };
	return row;
}

static void only_whole_intervals_answer(void **state)
{
	static const struct {
		double ratio, spread;
		enum target_state state;
	} cases[] = {
		{ 1.2, 0.04, TARGET_REACHED }, { 1.2, 0.1, TARGET_NOISE },
		{ 1.3, 0.1, TARGET_NOISE },    { 1.3, 0.04, TARGET_MISSED },
		{ 1.25, 0, TARGET_REACHED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench_result r = sample_result("toggle");

		floor_row(&r, "aligned", cases[i].ratio, cases[i].spread);
		assert_int_equal(target_in(&r, 1, "atomic window")->state, cases[i].state);
		bench_result_free(&r);
	}
}

static void the_worst_row_speaks_for_all(void **state)
{
	struct bench_result r = sample_result("toggle");
	const struct target *t;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		bench_row_param_text(floor_row(&r, "call", i == 2 ? 1.5 : 1.1, 0.01), "split",
				     sample_splits[i]);
	t = target_in(&r, 1, "call switched");
	assert_int_equal(t->state, TARGET_MISSED);
	assert_near(t->value.median, 1.5);
	assert_string_equal(t->note, "call: split 2|3, on");
	bench_result_free(&r);
}

/* Noise in the worst row does not hide that another one missed. */
static void one_miss_is_a_miss(void **state)
{
	struct bench_result r = sample_result("toggle");

	(void)state;
	floor_row(&r, "call", 1.3, 0.01);
	floor_row(&r, "call", 1.4, 0.5);
	assert_int_equal(target_in(&r, 1, "call switched")->state, TARGET_MISSED);
	bench_result_free(&r);
}

static void other_conditions_do_not_count(void **state)
{
	static const struct {
		const char *key, *text;
	} others[] = { { "mapping", "protect" }, { "cache", "cold" } };
	struct bench_result r = sample_result("toggle");

	(void)state;
	for (size_t i = 0; i < 2; i++)
		bench_row_param_text(floor_row(&r, "aligned", 40, 1), others[i].key,
				     others[i].text);
	bench_row_param(floor_row(&r, "aligned", 40, 1), "executors", 0);
	bench_row_param(floor_row(&r, "aligned", 40, 1), "executors", 4);
	assert_int_equal(target_in(&r, 1, "atomic window")->state, TARGET_UNKNOWN);
	bench_row_param(floor_row(&r, "aligned", 1.1, 0.01), "executors", 1);
	assert_int_equal(target_in(&r, 1, "atomic window")->state, TARGET_REACHED);
	bench_result_free(&r);
}

static void a_few_rounds_answer_nothing(void **state)
{
	struct bench_result r = sample_result("toggle");
	struct bench_row *row = floor_row(&r, "aligned", 1.1, 0.001);
	const struct target *t;

	(void)state;
	row->pairs = BOOTSTRAP_LEAST - 1;
	t = target_in(&r, 1, "atomic window");
	assert_int_equal(t->state, TARGET_NOISE);
	assert_string_equal(t->note, "aligned, on (too few rounds)");
	row->pairs = BOOTSTRAP_LEAST;
	assert_int_equal(target_in(&r, 1, "atomic window")->state, TARGET_REACHED);
	bench_result_free(&r);
}

/* The waits come off before floors are counted. */
static void straddlers_pay_their_waits(void **state)
{
	struct bench_result r = sample_result("toggle");
	struct bench_row *row;
	const struct target *t;

	(void)state;
	row = sample_row(&r, "straddler", "on", "ticks", 6000 + 3 * SAMPLE_FLOOR);
	bench_row_param_text(row, "policy", "wait");
	sample_against(row, "floor", SAMPLE_FLOOR);
	row->value.low = row->value.high = row->value.median;
	row->base.low = row->base.high = row->base.median;
	t = target_in(&r, 1, "beyond its waits");
	assert_int_equal(t->state, TARGET_REACHED);
	assert_near(t->value.median, 3);
	row->value.low = row->value.high = row->value.median = 6000 + 5 * SAMPLE_FLOOR;
	assert_int_equal(target_in(&r, 1, "beyond its waits")->state, TARGET_MISSED);
	r.first_wait = 0;
	t = target_in(&r, 1, "beyond its waits");
	assert_int_equal(t->state, TARGET_UNKNOWN);
	assert_string_equal(t->note, "no waits are in use");
	bench_result_free(&r);
}

static void others_are_compared_split_by_split(void **state)
{
	static const char *const policies[] = { "wait", "membarrier" };
	struct bench_result r = sample_result("toggle");
	const struct target *t;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct bench_row *row =
			floor_row(&r, "straddler", (i % 2 ? 20 : 1) * (i / 2 ? 100 : 1), 0.01);

		bench_row_param_text(row, "split", i / 2 ? "4|1" : "1|4");
		bench_row_param_text(row, "policy", policies[i % 2]);
	}
	/* 20 times in either split; across them it would be a fifth. */
	t = target_in(&r, 1, "membarrier against");
	assert_near(t->value.median, 20);
	assert_int_equal(t->state, TARGET_REACHED);
	bench_result_free(&r);
}

static void no_difference_is_no_worse(void **state)
{
	static const char *const policies[] = { "auto", "wait", "membarrier" };
	static const double costs[] = { 3.02, 3, 30 };
	struct bench_result r = sample_result("toggle");

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct bench_row *row = floor_row(&r, "batch", costs[i], 0.1);

		bench_row_param(row, "batch", 1024);
		bench_row_param_text(row, "policy", policies[i]);
		if (i == 0)
			bench_row_param_text(row, "risk", "any");
	}
	assert_int_equal(target_in(&r, 1, "by auto")->state, TARGET_REACHED);
	r.row[0].ratio = (struct bench_value){ 4, 3.9, 4.1 };
	assert_int_equal(target_in(&r, 1, "by auto")->state, TARGET_MISSED);
	bench_result_free(&r);
}

static struct bench_row *flow_row(struct bench_result *r, double rate, double got, double share)
{
	struct bench_row *row = sample_row(r, "call", "calls", "calls/s", 1e8 * share);

	sample_against(row, "untouched", 1e8);
	row->ratio = (struct bench_value){ share, share - 0.01, share + 0.01 };
	bench_row_param(row, "rate", rate);
	bench_row_extra(row, "toggles_per_s", got);
	return row;
}

static void who_toggles_less_than_asked_proves_nothing(void **state)
{
	struct bench_result r = sample_result("throughput");
	const struct target *t;

	(void)state;
	flow_row(&r, 1e6, 3e5, 0.99);
	t = target_in(&r, 1, "toggled call, 1,000,000");
	assert_int_equal(t->state, TARGET_UNKNOWN);
	assert_string_equal(t->note, "no more than 3e+05 toggles/s were got");
	flow_row(&r, 1e6, 1e6, 0.9);
	assert_int_equal(target_in(&r, 1, "toggled call, 1,000,000")->state, TARGET_REACHED);
	assert_int_equal(target_in(&r, 1, "toggled call, 100,000")->state, TARGET_UNKNOWN);
	/* But it can fail. */
	flow_row(&r, 1e6, 3e5, 0.5);
	assert_int_equal(target_in(&r, 1, "toggled call, 1,000,000")->state, TARGET_MISSED);
	bench_result_free(&r);
}

static void balance_is_a_geometric_mean(void **state)
{
	static const double balances[] = { 1, 4, NAN, 2 };
	struct bench_result r = sample_result("throughput");
	const struct target *t;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		bench_row_extra(flow_row(&r, 1000 * (i + 1), 1000 * (i + 1), 1), "balance",
				balances[i]);
	t = target_in(&r, 1, "balance of a call");
	assert_near(t->value.median, 2);
	assert_near(t->value.low, 1);
	assert_near(t->value.high, 4);
	assert_int_equal(t->state, TARGET_MISSED);
	assert_string_equal(t->note, "call: 2000 toggles/s, calls");
	r.row[3].pairs = BOOTSTRAP_LEAST - 1;
	assert_int_equal(target_in(&r, 1, "balance of a call")->state, TARGET_NOISE);
	bench_result_free(&r);
}

static void a_state_never_executed_is_a_miss(void **state)
{
	struct bench_result r = sample_result("throughput");

	(void)state;
	bench_row_extra(flow_row(&r, 1000, 1000, 1), "balance", INFINITY);
	assert_int_equal(target_in(&r, 1, "balance of a call")->state, TARGET_MISSED);
	bench_result_free(&r);
}

static void time_in_a_state_counts_where_it_is_told(void **state)
{
	struct bench_result r = sample_result("throughput");
	struct bench_row *row = flow_row(&r, 1000, 1000, 1);

	(void)state;
	bench_row_extra(row, "balance", 3);
	bench_row_extra(row, "balance_time", 1.25);
	assert_near(target_in(&r, 1, "balance of a call toggled 50:50, time")->value.median, 1.25);
	assert_near(target_in(&r, 1, "a call toggled 50:50, executions")->value.median, 3);
	bench_result_free(&r);
}

static void latent_costs_have_their_own_interval(void **state)
{
	struct bench_result r = sample_result("latent");
	struct bench_row *row =
		sample_against(sample_row(&r, "nop", "pass", "ticks", 3), "empty", 1);

	(void)state;
	bench_row_param_text(row, "split", "2|3");
	assert_near(target_in(&r, 1, "site in a loop")->value.median, 2);
	bench_row_extra(row, "over_empty", 1.5);
	bench_row_extra(row, "over_low", 1.4);
	bench_row_extra(row, "over_high", 1.6);
	assert_near(target_in(&r, 1, "site in a loop")->value.median, 1.5);
	assert_near(targets[0].limit, 1.25);
	/* 1|4 has a limit of its own. */
	assert_int_equal(target_in(&r, 1, "loop, split 1|4")->state, TARGET_UNKNOWN);
	bench_result_free(&r);
}

static void missing_ones_say_why(void **state)
{
	struct bench_result r = sample_result("toggle");
	const struct target *t;

	(void)state;
	t = target_in(&r, 0, "atomic window");
	assert_string_equal(t->note, "no benchmark toggle");
	floor_row(&r, "call", 1.1, 0.01);
	sample_skip(&r, "jvm-volatile", "no javac");
	t = target_in(&r, 1, "VolatileCallSite");
	assert_int_equal(t->state, TARGET_UNKNOWN);
	assert_string_equal(t->note, "jvm-volatile: no javac");
	assert_string_equal(target_in(&r, 1, "atomic window")->note, "no such row");
	bench_result_free(&r);
}

static void no_more_are_written_than_fit(void **state)
{
	struct target two[3] = { [2] = { .what = "kept" } };

	(void)state;
	assert_true(targets_of(NULL, 0, two, 2) > 2);
	assert_string_equal(two[2].what, "kept");
}

/* What a whole run, made up, gives: nothing is left without an answer but what is too slow. */
static void a_whole_run_answers_all(void **state)
{
	struct bench_result r[SAMPLE_BENCHMARKS];
	size_t count, unknown = 0;

	(void)state;
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++)
		r[i] = sample_bench(i);
	count = targets_of(r, SAMPLE_BENCHMARKS, targets, TARGETS_MAX);
	for (size_t i = 0; i < count; i++)
		unknown += targets[i].state == TARGET_UNKNOWN;
	assert_int_equal(unknown, 1);
	assert_int_equal(target_in(r, SAMPLE_BENCHMARKS, "straddler by wait, 1,000,000")->state,
			 TARGET_UNKNOWN);
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++)
		bench_result_free(&r[i]);
}

static void the_text_has_what_ran(void **state)
{
	struct bench_result r = sample_latent();
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	targets_print(&r, 1, out);
	fclose(out);
	assert_non_null(strstr(text, "split 1|4                  3.6 [3.43, 3.77] ticks over none, "
				     "at most 4: reached\n"));
	assert_null(strstr(text, "atomic window"));
	free(text);
	bench_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_by_what_they_are),
		cmocka_unit_test(what_a_row_does_not_say_may_be_asked),
		cmocka_unit_test(skipped_rows_are_found_apart),
		cmocka_unit_test(the_last_of_a_benchmark_counts),
		cmocka_unit_test(intervals_are_made_of_their_ends),
		cmocka_unit_test(a_shared_baseline_takes_drift_out),
		cmocka_unit_test(only_whole_intervals_answer),
		cmocka_unit_test(the_worst_row_speaks_for_all),
		cmocka_unit_test(one_miss_is_a_miss),
		cmocka_unit_test(other_conditions_do_not_count),
		cmocka_unit_test(a_few_rounds_answer_nothing),
		cmocka_unit_test(straddlers_pay_their_waits),
		cmocka_unit_test(others_are_compared_split_by_split),
		cmocka_unit_test(no_difference_is_no_worse),
		cmocka_unit_test(who_toggles_less_than_asked_proves_nothing),
		cmocka_unit_test(balance_is_a_geometric_mean),
		cmocka_unit_test(time_in_a_state_counts_where_it_is_told),
		cmocka_unit_test(a_state_never_executed_is_a_miss),
		cmocka_unit_test(latent_costs_have_their_own_interval),
		cmocka_unit_test(missing_ones_say_why),
		cmocka_unit_test(no_more_are_written_than_fit),
		cmocka_unit_test(a_whole_run_answers_all),
		cmocka_unit_test(the_text_has_what_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
