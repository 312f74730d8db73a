/* SPDX-License-Identifier: MIT */
/*
 * The passes over a program: every row that belongs to it, every change a sample, and the
 * program afterwards as it was.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bench/cases/latency.c"
#include "bench/tests/bench_run.h"

#define SITES	  400
#define OPS	  5
#define MEASURES  2
#define EXECUTORS 2

static struct bench_run run;
static struct looped_sites sites;
static struct bench_result result;

static const char *const ops[OPS] = {
	"patch policy=wait",
	"patch policy=membarrier",
	"start policy=wait",
	"start policy=membarrier",
	"call",
};

static int measure_once(void **state)
{
	struct bench_watch watch;

	(void)state;
	assert_int_equal(sites_build(&sites, SITES, 9), 0);
	assert_int_equal(bench_result_begin(&run, "latency", &result, &watch), 0);
	assert_int_equal(latency_measure(&run, &sites, &result), 0);
	bench_result_end(&run, &result, &watch);
	return 0;
}

static int tidy(void **state)
{
	(void)state;
	bench_result_free(&result);
	sites_free(&sites);
	return 0;
}

static const struct bench_row *row_of(unsigned op, unsigned executors, const char *measured)
{
	char label[128];

	snprintf(label, sizeof(label), "%s executors=%u sites=%u", ops[op], executors, SITES);
	return bench_run_row(&result, label, measured);
}

static uint64_t binned(const struct bench_row *row)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < row->bins; i++)
		sum += row->bin[i].count;
	return sum;
}

static void expect_row(unsigned op, unsigned executors, const char *measured)
{
	const struct bench_row *row = row_of(op, executors, measured);

	assert_non_null(row);
	if (bench_run_skipped(row))
		return;
	/* Of each quadruple, two blocks of a pass each. */
	assert_int_equal(row->samples, (uint64_t)run.rounds * 2 * SITES);
	assert_int_equal(binned(row), row->samples);
	assert_int_equal(row->pairs, run.rounds);
	assert_string_equal(row->unit, "ticks");
	assert_string_equal(row->against, "floor");
	assert_true(row->value.median > 0 && row->ratio.median > 0 && row->base.median > 0);
}

static void every_row_is_there(void **state)
{
	(void)state;
	assert_int_equal(result.rows, OPS * EXECUTORS * MEASURES);
	for (unsigned op = 0; op < OPS; op++)
		for (unsigned executors = 0; executors < EXECUTORS; executors++) {
			expect_row(op, executors, "on");
			expect_row(op, executors, "off");
		}
}

/* Not a matter of time: no patch of a straddler can be done before its two waits are over. */
static void straddlers_stand_out_where_they_wait(void **state)
{
	const struct bench_row *row = row_of(0, 1, "off");

	(void)state;
	assert_true(bench_row_extra_of(row, "p50_straddlers") >= 2 * BENCH_RUN_WAIT);
	assert_true(row->most >= 2 * BENCH_RUN_WAIT);
	assert_true(bench_row_extra_of(row, "p50_others") <
		    bench_row_extra_of(row, "p50_straddlers"));
}

static void shares_are_those_of_the_program(void **state)
{
	(void)state;
	for (unsigned i = 0; i < result.rows; i++) {
		const struct bench_row *row = &result.row[i];

		if (!row->samples)
			continue;
		assert_true(bench_row_extra_of(row, "straddlers") == sites_straddlers(&sites, 8));
		assert_true(bench_row_extra_of(row, "straddlers_line") ==
			    sites_straddlers(&sites, 64));
		if (strcmp(row->name, "call") == 0)
			assert_true(bench_row_extra_of(row, "window") == 8);
	}
}

static void the_program_is_as_it_was(void **state)
{
	uint64_t calls = 0;

	(void)state;
	for (unsigned long i = 0; i < sites.count; i++) {
		uint8_t code[SITES_LENGTH];

		sites_code(&sites, i, true, code);
		assert_memory_equal(sites.site[i], code, sizeof(code));
		assert_int_equal(sites.run[i](&calls), 1);
	}
	assert_int_equal(calls, sites.count);
}

static void the_policy_is_as_it_was(void **state)
{
	struct pc_status status;

	(void)state;
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
}

/* What makes the counts of an executor disagree ends the benchmark. */
static void a_miscount_is_an_error(void **state)
{
	struct bench_result other = { 0 };
	struct bench_run once = run;
	struct looped_sites broken;

	(void)state;
	once.rounds = 1;
	assert_int_equal(sites_build(&broken, 64, 9), 0);
	memset(broken.map, 0x90, 3); /* inc qword [rdi] */
	assert_int_equal(latency_measure(&once, &broken, &other), -EILSEQ);
	bench_result_free(&other);
	sites_free(&broken);
}

static void it_can_be_interrupted(void **state)
{
	struct bench_result other = { 0 };

	(void)state;
	bench_run_stop = 1;
	assert_int_equal(latency_measure(&run, &sites, &other), -EINTR);
	bench_run_stop = 0;
	bench_result_free(&other);
	the_program_is_as_it_was(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(straddlers_stand_out_where_they_wait),
		cmocka_unit_test(shares_are_those_of_the_program),
		cmocka_unit_test(the_program_is_as_it_was),
		cmocka_unit_test(the_policy_is_as_it_was),
		cmocka_unit_test(a_miscount_is_an_error),
		cmocka_unit_test(it_can_be_interrupted),
	};

	return BENCH_RUN_TESTS(&run, tests, measure_once, tidy);
}
