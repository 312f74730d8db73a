/* SPDX-License-Identifier: MIT */
/*
 * The method with made-up cases on a made-up machine: what was run is written down, and
 * what it cost follows a law that is known.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/method/method.h"

#define LOG_MAX 4000
#define CASES	6

static hwloc_topology_t topology;
static struct bench_run run;
static volatile sig_atomic_t stop;

/* --- The machine: a letter for all that was asked of it ------------------------------------- */

static char log_text[LOG_MAX];
static size_t log_length;
static double drift; /* per block */

struct thing {
	char name;
	double cost;
	unsigned begun, ended, blocks;
	unsigned fail_at; /* this block fails, counted from 1 with the warm-up; 0: none */
	int error;	  /* with this */
	unsigned stop_at; /* the user presses Ctrl-C meanwhile */
	unsigned empty_at;
	bool refuses; /* to begin */
	bool silent;  /* fails without a word */
	bool twice;   /* two measures, the second costs half */
	double odd;   /* 0: no; else a sample of that */
};

static void note(char letter)
{
	assert_true(log_length < LOG_MAX - 1);
	log_text[log_length++] = letter;
	log_text[log_length] = '\0';
}

static int begin_thing(struct bench_case *c, char *why)
{
	struct thing *t = c->arg;

	if (t->refuses) {
		snprintf(why, BENCH_WHY, "%c is not\tto be had", t->name);
		return -ENOTSUP;
	}
	t->begun++;
	return 0;
}

static int fail_block(struct thing *t, char *why)
{
	if (!t->silent)
		snprintf(why, BENCH_WHY, "%c broke", t->name);
	return t->error;
}

static int thing_block(struct bench_case *c, struct samples *s, char *why)
{
	struct thing *t = c->arg;
	double now = 1 + drift * (double)log_length;
	bool warm_up = t->blocks == 0;

	note(t->name);
	t->blocks++;
	assert_int_equal(t->begun, t->ended + 1);
	if (t->blocks == t->stop_at)
		stop = 1;
	if (t->blocks == t->fail_at)
		return fail_block(t, why);
	if (t->blocks == t->empty_at)
		return 0;
	/* Cold: this may be in no result. */
	samples_add(&s[0], warm_up ? 1e9 : t->cost * now);
	if (t->twice)
		samples_add(&s[1], warm_up ? 1e9 : t->cost * now / 2);
	if (t->odd != 0 && t->blocks == 3)
		samples_add(&s[0], t->odd);
	return 0;
}

static void end_thing(struct bench_case *c)
{
	struct thing *t = c->arg;

	t->ended++;
	assert_int_equal(t->begun, t->ended);
}

static void make_case(struct bench_case *c, struct thing *t, struct bench_case *base)
{
	const char name[] = { t->name, '\0' };

	*c = (struct bench_case){
		.begin = begin_thing, .block = thing_block, .end = end_thing, .arg = t, .base = base
	};
	bench_row_name(&c->row, name, "change", "ticks");
	bench_row_param(&c->row, "executors", 1);
}

static int measure_cases(struct bench_case *cases, size_t count, struct bench_result *result)
{
	*result = (struct bench_result){ .distance = { NAN, NAN, NAN } };
	log_length = 0;
	log_text[0] = '\0';
	return bench_measure(&run, cases, count, result);
}

/* One case with a baseline, and its row. */
static struct bench_row measure_one(struct thing *a, struct thing *b, int expected)
{
	struct bench_case c, base;
	struct bench_result result;
	struct bench_row row = { 0 };

	make_case(&base, b, NULL);
	make_case(&c, a, &base);
	if (a->twice)
		c.second_measure = "off";
	assert_int_equal(measure_cases(&c, 1, &result), expected);
	assert_int_equal(result.rows, expected < 0 ? 0 : a->twice ? 2 : 1);
	if (result.rows)
		row = result.row[0];
	assert_int_equal(a->begun, a->ended);
	bench_result_free(&result);
	return row;
}

/* --- Order ---------------------------------------------------------------------------------- */

/* The first A and the first B are warmed up: one block more, in front. */
static void a_b_b_a(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 }, b = { .name = 'B', .cost = 100 };

	(void)state;
	run.rounds = 3;
	measure_one(&a, &b, 0);
	assert_string_equal(log_text, "AABBBAABBAABBA");
	assert_int_equal(a.begun, 6);
}

static void without_a_baseline_a_a(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 };
	struct bench_result result;
	struct bench_case c;

	(void)state;
	run.rounds = 3;
	make_case(&c, &a, NULL);
	c.begin = NULL;
	c.end = NULL;
	a.begun = 1;
	assert_int_equal(measure_cases(&c, 1, &result), 0);
	assert_string_equal(log_text, "AAAAAAA");
	assert_int_equal(result.row[0].samples, 6);
	assert_int_equal(result.row[0].pairs, 6);
	assert_string_equal(result.row[0].against, "");
	assert_true(isnan(result.row[0].ratio.median));
	assert_true(bench_row_same(&result.row[0]));
	bench_result_free(&result);
}

/* Names in the order of the first of each round, for so many cases without a baseline. */
static void order_of(uint64_t seed, char *order)
{
	struct thing thing[CASES] = { { 0 } };
	struct bench_case cases[CASES];
	struct bench_result result;

	run.seed = seed;
	for (unsigned i = 0; i < CASES; i++) {
		thing[i].name = (char)('a' + i);
		thing[i].cost = 1;
		make_case(&cases[i], &thing[i], NULL);
	}
	assert_int_equal(measure_cases(cases, CASES, &result), 0);
	/* The rows come in the order of the array, not in that of the draw. */
	for (unsigned i = 0; i < CASES; i++)
		assert_int_equal(result.row[i].name[0], 'a' + (int)i);
	snprintf(order, LOG_MAX, "%s", log_text);
	bench_result_free(&result);
	run.seed = 1;
}

/* Once per round each, all of them, and not always the same first. */
static void check_rounds(const char *order)
{
	unsigned first[CASES] = { 0 }, different = 0;

	order += 3 * CASES; /* the round with the warm-ups */
	for (unsigned round = 1; round < run.rounds; round++, order += 2 * CASES) {
		unsigned seen = 0;

		for (unsigned i = 0; i < CASES; i++) {
			assert_int_equal(order[2 * i], order[2 * i + 1]);
			seen |= 1u << (order[2 * i] - 'a');
		}
		assert_int_equal(seen, (1u << CASES) - 1);
		first[order[0] - 'a']++;
	}
	assert_int_equal(*order, '\0');
	/* 49 rounds: one that is never the first has a chance of 6 (5/6)^49, about 1 in 1000;
	 * but the seed is what it is. */
	for (unsigned i = 0; i < CASES; i++)
		different += first[i] > 0;
	assert_int_equal(different, CASES);
}

static void the_order_is_drawn_anew_and_known_by_its_seed(void **state)
{
	static char first[LOG_MAX], again[LOG_MAX], other[LOG_MAX];

	(void)state;
	run.rounds = 50;
	order_of(11, first);
	order_of(11, again);
	order_of(12, other);
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	check_rounds(first);
	check_rounds(other);
}

/* --- Figures -------------------------------------------------------------------------------- */

static void the_warm_up_is_forgotten(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 }, b = { .name = 'B', .cost = 100 };
	struct bench_row row;

	(void)state;
	run.rounds = 4;
	row = measure_one(&a, &b, 0);
	assert_int_equal(row.samples, 8);
	assert_int_equal(row.pairs, 4);
	assert_float_equal(row.most, 300, 0);
	assert_float_equal(row.value.high, 300, 0);
	assert_float_equal(row.base.high, 100, 0);
	assert_string_equal(row.against, "B");
	assert_string_equal(row.name, "A");
	assert_float_equal(bench_row_number(&row, "executors"), 1, 0);
}

/*
 * Measured as A A B B, the machine's drift would be in the ratio: that the law brings it in
 * is known by the two orders of the same blocks.
 */
static void a_drift_is_cancelled(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 }, b = { .name = 'B', .cost = 100 };
	double first = 0, second = 0;
	struct bench_row row;

	(void)state;
	run.rounds = 20;
	drift = 0.05;
	row = measure_one(&a, &b, 0);
	/* All but the first, which the warm-ups pull out of shape. */
	assert_int_equal(row.pairs, 20);
	assert_float_equal(row.ratio.median, 3, 1e-9);
	assert_float_equal(row.ratio.low, 3, 1e-9);
	assert_float_equal(row.ratio.high, 3, 1e-9);
	assert_true(row.value.high > 1.5 * row.value.low);
	for (int n = 0; n < 4; n++) {
		first += (n < 2 ? 300 : 0) * (1 + drift * n);
		second += (n < 2 ? 0 : 100) * (1 + drift * n);
	}
	assert_true(first / second < 2.9);
	drift = 0;
}

static void a_second_measure_has_a_row_of_its_own(void **state)
{
	struct thing a = { .name = 'A', .cost = 300, .twice = true };
	struct thing b = { .name = 'B', .cost = 100, .twice = true };
	struct bench_case c, base;
	struct bench_result result;

	(void)state;
	run.rounds = 2;
	for (int both = 0; both < 2; both++) {
		a.blocks = b.blocks = 0;
		b.twice = both;
		make_case(&base, &b, NULL);
		make_case(&c, &a, &base);
		bench_row_name(&c.row, "A", "on", "ticks");
		c.second_measure = "off";
		assert_int_equal(measure_cases(&c, 1, &result), 0);
		assert_int_equal(result.rows, 2);
		assert_string_equal(result.row[0].measure, "on");
		assert_string_equal(result.row[1].measure, "off");
		assert_float_equal(result.row[0].value.median, 300, 0);
		assert_float_equal(result.row[1].value.median, 150, 0);
		assert_float_equal(result.row[0].ratio.median, 3, 0);
		/* A baseline with one measure serves both. */
		assert_float_equal(result.row[1].ratio.median, both ? 3 : 1.5, 0);
		assert_int_equal(result.row[1].pairs, 2);
		bench_result_free(&result);
	}
}

static void add_extra(struct bench_case *c, struct bench_row *row)
{
	bench_row_extra(row, "cost", ((struct thing *)c->arg)->cost);
	bench_row_extra(row, "samples", (double)c->samples[0].count);
}

static void a_case_adds_what_it_knows(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 }, b = { .name = 'B', .refuses = true };
	struct bench_case cases[2];
	struct bench_result result;

	(void)state;
	run.rounds = 2;
	make_case(&cases[0], &a, NULL);
	make_case(&cases[1], &b, NULL);
	cases[0].sum_up = cases[1].sum_up = add_extra;
	assert_int_equal(measure_cases(cases, 2, &result), 0);
	assert_float_equal(bench_row_extra_of(&result.row[0], "cost"), 300, 0);
	assert_float_equal(bench_row_extra_of(&result.row[0], "samples"), 4, 0);
	assert_int_equal(result.row[1].extras, 0);
	assert_null(cases[0].samples[0].value);
	bench_result_free(&result);
}

static void an_empty_block_costs_its_quadruple_only(void **state)
{
	struct thing a = { .name = 'A', .cost = 300 };
	struct thing b = { .name = 'B', .cost = 100, .empty_at = 3 };
	struct bench_row row;

	(void)state;
	run.rounds = 5;
	drift = 0.05;
	row = measure_one(&a, &b, 0);
	assert_int_equal(row.pairs, 4);
	assert_int_equal(row.samples, 10);
	assert_float_equal(row.ratio.low, 3, 1e-9);
	assert_float_equal(row.ratio.high, 3, 1e-9);
	drift = 0;
}

/* --- What goes wrong ------------------------------------------------------------------------ */

static void assert_skipped(const struct bench_row *row, const char *why)
{
	assert_int_equal(row->samples, 0);
	assert_string_equal(row->why, why);
	assert_true(isnan(row->value.median));
	assert_true(isnan(row->ratio.low));
	assert_true(isnan(row->most));
}

static void who_fails_is_skipped_with_a_reason(void **state)
{
	struct thing a = { .name = 'A', .cost = 1, .fail_at = 4, .error = -EPERM };
	struct thing b = { .name = 'B', .cost = 1 };
	struct bench_row row;

	(void)state;
	run.rounds = 10;
	row = measure_one(&a, &b, 0);
	assert_skipped(&row, "A broke");
	assert_string_equal(log_text, "AABBBAA");
	/* Not the command's memory either: only this case wanted too much. */
	a = (struct thing){ .name = 'A', .fail_at = 1, .error = -ENOMEM, .silent = true };
	row = measure_one(&a, &b, 0);
	assert_skipped(&row, strerror(ENOMEM));
	assert_string_equal(log_text, "A");
}

static void who_refuses_to_begin_is_not_ended(void **state)
{
	struct thing a = { .name = 'A', .refuses = true }, b = { .name = 'B', .cost = 1 };
	struct bench_row row;

	(void)state;
	run.rounds = 3;
	row = measure_one(&a, &b, 0);
	/* One line of printable ASCII. */
	assert_skipped(&row, "A is not?to be had");
	assert_string_equal(log_text, "");
	assert_int_equal(a.ended, 0);
}

static void without_its_baseline_a_case_is_nothing(void **state)
{
	struct thing a = { .name = 'A', .cost = 1 };
	struct thing b = { .name = 'B', .fail_at = 3, .error = -EIO };
	struct bench_row row;

	(void)state;
	run.rounds = 3;
	row = measure_one(&a, &b, 0);
	assert_skipped(&row, "B broke");
	assert_int_equal(b.begun, b.ended);
}

/* Also the other rows of a case that was skipped, and the others are measured. */
static void one_that_fails_does_not_take_others_along(void **state)
{
	struct thing a = { .name = 'A', .cost = 1, .twice = true, .fail_at = 3, .error = -EIO };
	struct thing b = { .name = 'B', .cost = 7 };
	struct bench_case cases[2];
	struct bench_result result;

	(void)state;
	run.rounds = 4;
	make_case(&cases[0], &a, NULL);
	make_case(&cases[1], &b, NULL);
	cases[0].second_measure = "off";
	assert_int_equal(measure_cases(cases, 2, &result), 0);
	assert_int_equal(result.rows, 3);
	assert_skipped(&result.row[0], "A broke");
	assert_skipped(&result.row[1], "A broke");
	assert_string_equal(result.row[1].measure, "off");
	assert_int_equal(result.row[2].samples, 8);
	assert_string_equal(result.row[2].why, "");
	bench_result_free(&result);
}

static void what_is_no_number_is_skipped(void **state)
{
	struct thing a = { .name = 'A', .cost = 1, .odd = NAN }, b = { .name = 'B', .cost = 1 };
	struct thing none = { .name = 'A', .cost = 1, .empty_at = 2 };
	struct bench_result result;
	struct bench_row row;
	struct bench_case c;

	(void)state;
	run.rounds = 3;
	row = measure_one(&a, &b, 0);
	assert_skipped(&row, "a sample was not a finite number");
	run.rounds = 0;
	make_case(&c, &none, NULL);
	assert_int_equal(measure_cases(&c, 1, &result), 0);
	assert_skipped(&result.row[0], "nothing was measured");
	bench_result_free(&result);
}

static void rounds_of_its_own(void **state)
{
	struct thing a = { .name = 'A', .cost = 1 }, b = { .name = 'B', .cost = 1 };
	struct bench_case cases[2];
	struct bench_result result;

	(void)state;
	run.rounds = 7;
	make_case(&cases[0], &a, NULL);
	make_case(&cases[1], &b, NULL);
	cases[0].rounds = 2;
	assert_int_equal(measure_cases(cases, 2, &result), 0);
	assert_int_equal(result.row[0].samples, 4);
	assert_int_equal(result.row[1].samples, 14);
	bench_result_free(&result);
}

static void an_interrupt_ends_it_at_once(void **state)
{
	struct thing a = { .name = 'A', .cost = 1, .fail_at = 3, .error = -EINTR };
	struct thing b = { .name = 'B', .cost = 1 };

	(void)state;
	run.rounds = 5;
	measure_one(&a, &b, -EINTR);
	assert_string_equal(log_text, "AABBBA");
	/* No block is begun any more, not even of the same quadruple. */
	a = (struct thing){ .name = 'A', .cost = 1, .stop_at = 2 };
	b.blocks = 0;
	measure_one(&a, &b, -EINTR);
	assert_string_equal(log_text, "AA");
	stop = 0;
	/* A caller need not give a flag that stops it. */
	run.stop = NULL;
	a = (struct thing){ .name = 'A', .cost = 1 };
	measure_one(&a, &b, 0);
	run.stop = &stop;
}

static unsigned told, told_all;
static char told_names[LOG_MAX];

static void on_progress(unsigned done, unsigned all, const char *what)
{
	assert_int_equal(done, told);
	told_names[told++] = what[0];
	told_all = all;
}

static void progress_is_told(void **state)
{
	struct thing a = { .name = 'A', .cost = 1 }, b = { .name = 'B', .cost = 1 };
	struct bench_case cases[2];
	struct bench_result result;

	(void)state;
	run.rounds = 3;
	run.progress = on_progress;
	make_case(&cases[0], &a, NULL);
	make_case(&cases[1], &b, NULL);
	assert_int_equal(measure_cases(cases, 2, &result), 0);
	run.progress = NULL;
	assert_int_equal(told, 6);
	assert_int_equal(told_all, 6);
	assert_non_null(strchr(told_names, 'A'));
	assert_non_null(strchr(told_names, 'B'));
	bench_result_free(&result);
}

static int set_up(void **state)
{
	int foreign;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	run = (struct bench_run){ .topology = topology, .seed = 1, .stop = &stop };
	run.seating.patcher =
		(unsigned)hwloc_bitmap_first(hwloc_topology_get_topology_cpuset(topology));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hwloc_topology_destroy(topology);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_b_b_a),
		cmocka_unit_test(without_a_baseline_a_a),
		cmocka_unit_test(the_order_is_drawn_anew_and_known_by_its_seed),
		cmocka_unit_test(the_warm_up_is_forgotten),
		cmocka_unit_test(a_drift_is_cancelled),
		cmocka_unit_test(a_second_measure_has_a_row_of_its_own),
		cmocka_unit_test(a_case_adds_what_it_knows),
		cmocka_unit_test(an_empty_block_costs_its_quadruple_only),
		cmocka_unit_test(who_fails_is_skipped_with_a_reason),
		cmocka_unit_test(who_refuses_to_begin_is_not_ended),
		cmocka_unit_test(without_its_baseline_a_case_is_nothing),
		cmocka_unit_test(one_that_fails_does_not_take_others_along),
		cmocka_unit_test(what_is_no_number_is_skipped),
		cmocka_unit_test(rounds_of_its_own),
		cmocka_unit_test(an_interrupt_ends_it_at_once),
		cmocka_unit_test(progress_is_told),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
