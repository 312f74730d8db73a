/* SPDX-License-Identifier: MIT */
/*
 * The table of a benchmark: every row is there once, with its figures or its reason, a
 * difference within the noise is told as none, and its columns stand below each other.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/tests/sample_bench.h"
#include "commands/tmax/commands.h"

static struct bench_result result;
static uint64_t tsc_khz; /* 0: not known, so ticks stay ticks */
static char *text;

static int start(void **state)
{
	(void)state;
	result = sample_bench();
	/* Only what a test adds. */
	result.rows = 0;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	tsc_khz = 0;
	bench_result_free(&result);
	return 0;
}

static struct bench_row *add_row(const char *name, const char *measure)
{
	struct bench_row *row = bench_result_add(&result);

	bench_row_name(row, name, measure, "ticks");
	sample_bench_figures(row);
	row->most = 58812;
	return row;
}

static void print(void)
{
	size_t size;
	FILE *f;

	free(text);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	bench_print(&result, tsc_khz, f);
	fclose(f);
}

static unsigned times(const char *what)
{
	unsigned count = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		count++;
	return count;
}

static void says(const char *what)
{
	if (times(what) != 1)
		print_error("not once '%s' in:\n%s", what, text);
	assert_int_equal(times(what), 1);
}

static void a_row_has_its_figures(void **state)
{
	(void)state;
	add_row("aligned", "on");
	print();
	says(" ratio to floor [95 %]        ticks\n");
	says("\n     442         [416,468]        390..546    58812    17 1.13 [1.13,1.2]      "
	     "        on aligned\n");
	assert_int_equal(times("no difference"), 0);
	assert_int_equal(times("skipped"), 0);
}

/* 442 ticks of 2 GHz are 221 ns, and of 0.2 GHz 2.21 us. A ratio stays a ratio. */
static void ticks_are_told_as_times(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		tsc_khz = slow ? 200000 : 2000000;
		result.rows = 0;
		bench_row_extra(add_row("aligned", "on"), "over_empty", 100);
		bench_row_extra(&result.row[0], "traps", 3);
		print();
		says(slow ? "; over_empty 0.5, traps 3\n" : "; over_empty 50, traps 3\n");
		says(slow ? "        us\n" : "        ns\n");
		says(slow ? "\n    2.21       [2.08,2.34]      1.95..2.73      294    17 1.13 "
			  : "\n     221         [208,234]        195..273    29406    17 1.13 ");
		assert_int_equal(times(" ticks"), 0);
	}
}

static void a_difference_within_the_noise_is_none(void **state)
{
	struct bench_row *row;

	(void)state;
	row = add_row("aligned", "on");
	row->ratio = (struct bench_value){ 1.04, 0.98, 1.1 };
	row = add_row("call", "on");
	row->ratio = (struct bench_value){ NAN, NAN, NAN };
	row = add_row("ptrace", "on");
	row->ratio = (struct bench_value){ 0.97, 0.95, 0.99 };
	print();
	says(" 17 no difference [0.98,1.1]     on aligned\n");
	says(" 17 no difference                on call\n");
	says(" 17 0.97 [0.95,0.99]             on ptrace\n");
	assert_int_equal(times("1.04"), 0);
}

static void without_a_baseline_there_is_no_ratio(void **state)
{
	struct bench_row *row = add_row("pc_init", "start");

	(void)state;
	row->against[0] = '\0';
	row->value.low = row->value.high = NAN;
	strcpy(row->unit, "us");
	print();
	says("outl.  us\n");
	says("\n     442                          390..546    58812    17  start pc_init\n");
}

static void each_row_says_what_it_is(void **state)
{
	struct bench_row *row;

	(void)state;
	row = add_row("straddler", "on");
	bench_row_param_text(row, "split", "1|4");
	bench_row_param_text(row, "policy", "wait");
	bench_row_param(row, "sites", 10000);
	bench_row_param(row, "executors", 1);
	row = add_row("aligned", "off");
	row->peer = true;
	print();
	says("  on straddler: split 1|4, wait, 10000 sites, 1 executor\n");
	says("  off aligned (peer)\n");
	says("  ticks\n");
}

static void other_baselines_have_a_head_of_their_own(void **state)
{
	(void)state;
	add_row("one", "on");
	strcpy(add_row("two", "on")->against, "idle");
	strcpy(add_row("two", "on")->unit, "calls/s");
	print();
	says("ratio to idle [95 %]");
	assert_int_equal(times("ratio to floor [95 %]"), 2);
	says("  calls/s\n");
	assert_int_equal(times("  ticks\n"), 2);
}

static void extras_stand_behind_their_row(void **state)
{
	struct bench_row *row = add_row("call", "calls");

	(void)state;
	bench_row_extra(row, "balance", INFINITY);
	bench_row_extra(row, "toggles_per_s", 99812);
	print();
	says("  calls call; balance inf, toggles_per_s 99812\n");
}

static void skipped_rows_come_last_with_reasons(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct bench_row *row = add_row("straddler", i ? "on" : "off");

		bench_row_param_text(row, "policy", "wait");
		bench_row_param(row, "executors", i);
		bench_row_skip(row, "microcode differs");
	}
	bench_row_skip(add_row("ptrace", "on"), "not permitted");
	bench_row_skip(add_row("ptrace", "off"), "no child");
	add_row("aligned", "on");
	print();
	says("\nskipped\n  off straddler: wait, no executor and 2 more: microcode differs\n"
	     "  on ptrace: not permitted\n  off ptrace: no child\n");
	assert_true(strstr(text, "  on aligned\n") < strstr(text, "\nskipped\n"));
}

static void nothing_measured_is_told(void **state)
{
	(void)state;
	print();
	says("\nnothing was measured\n");
	bench_row_skip(add_row("ptrace", "on"), "not permitted");
	print();
	says("\nnothing was measured\n");
	says("  on ptrace: not permitted\n");
}

static void the_top_tells_on_what(void **state)
{
	(void)state;
	print();
	says("toggle: 20 rounds in 83 s, ended 2026-01-31T23:59:59Z, seed 9223372036854775807\n"
	     "patcher on CPU 0, executors on 1-2, 700\n"
	     "a line takes 310 ticks from one to the other (249 ticks to 572 ticks)\n"
	     "policy wait: 9300 ticks and 10800 ticks, or 4 times what the stores take, "
	     "from machine.conf\n");
	strcpy(result.waits_from, "assumed");
	result.waits.stretch = 0;
	result.seating.executors = 1;
	result.distance.median = NAN;
	print();
	says("patcher on CPU 0, executor on 1\n"
	     "policy wait: 9300 ticks and 10800 ticks\n"
	     "These waits are assumed, to tell costs. Nothing is claimed about tears at them.\n");
	assert_int_equal(times("machine.conf"), 0);
	result.waits.first = 0;
	print();
	says("\npolicy wait: not to be had here\n");
	assert_int_equal(times("assumed"), 0);
}

static void it_tells_what_else_went_on(void **state)
{
	(void)state;
	print();
	says("\nmeanwhile: involuntary switches 20, interrupts 400, steal 1.56 %, runnable at the "
	     "end 1.25\n");
	result.witness.involuntary = WITNESS_UNKNOWN;
	result.witness.steal = result.witness.load = -1;
	print();
	says("\nmeanwhile: involuntary switches unknown, interrupts 400, steal unknown, runnable "
	     "at the end unknown\n");
}

static void the_widest_figures_have_room(void **state)
{
	struct bench_row *row;

	(void)state;
	add_row("straddler", "on");
	row = add_row("straddler", "off");
	row->value = (struct bench_value){ 123456, 111111, 133333 };
	row->p5 = 101234;
	row->p99 = 199999;
	row->most = 123456789;
	row->outliers = 9999;
	row->ratio = (struct bench_value){ 0.9912, 0.9812, 1.0149 };
	print();
	assert_int_equal(strstr(text, "  on straddler") - strstr(text, "     442 "),
			 strstr(text, "  off straddler") - strstr(text, "  1.23e5 "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_row_has_its_figures, start, stop),
		cmocka_unit_test_setup_teardown(ticks_are_told_as_times, start, stop),
		cmocka_unit_test_setup_teardown(a_difference_within_the_noise_is_none, start, stop),
		cmocka_unit_test_setup_teardown(without_a_baseline_there_is_no_ratio, start, stop),
		cmocka_unit_test_setup_teardown(each_row_says_what_it_is, start, stop),
		cmocka_unit_test_setup_teardown(other_baselines_have_a_head_of_their_own, start,
						stop),
		cmocka_unit_test_setup_teardown(extras_stand_behind_their_row, start, stop),
		cmocka_unit_test_setup_teardown(skipped_rows_come_last_with_reasons, start, stop),
		cmocka_unit_test_setup_teardown(nothing_measured_is_told, start, stop),
		cmocka_unit_test_setup_teardown(the_top_tells_on_what, start, stop),
		cmocka_unit_test_setup_teardown(it_tells_what_else_went_on, start, stop),
		cmocka_unit_test_setup_teardown(the_widest_figures_have_room, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
