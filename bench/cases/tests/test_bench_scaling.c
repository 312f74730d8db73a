/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bench/cases/scaling.c"
#include "bench/tests/bench_run.h"

#define SLICE 0.001

static struct bench_run run;
static struct bench_result patchers;

/* --- Mixes ------------------------------------------------------------------------------------ */

static void every_mix_fits_the_cpus_or_says_that_it_does_not(void **state)
{
	(void)state;
	for (unsigned cpus = 2; cpus <= 1000; cpus++) {
		struct scaling_mix mixes[SCALING_MIXES];
		unsigned count = scaling_mixes(cpus, mixes);

		assert_in_range(count, 1, SCALING_MIXES);
		/* None was left out for want of room: those of one site come last. */
		assert_true(mixes[count - 1].one_site);
		for (unsigned i = 0; i < count; i++) {
			assert_true(mixes[i].patchers >= 1);
			assert_true(mixes[i].patchers + mixes[i].executors <= cpus);
		}
	}
}

static void expect_base(struct scaling_mix mix, const char *name, struct scaling_mix expected)
{
	struct scaling_mix base;
	const char *found = scaling_base(mix, &base);

	if (!name) {
		assert_null(found);
		return;
	}
	assert_string_equal(found, name);
	assert_int_equal(base.patchers, expected.patchers);
	assert_int_equal(base.executors, expected.executors);
	assert_int_equal(base.one_site, expected.one_site);
}

static void each_is_compared_with_one_that_differs_in_one_thing(void **state)
{
	const struct scaling_mix none = { 0 };

	(void)state;
	expect_base((struct scaling_mix){ 1, 0, false }, NULL, none);
	expect_base((struct scaling_mix){ 1, 2, false }, "no-executor",
		    (struct scaling_mix){ 1, 0, false });
	expect_base((struct scaling_mix){ 4, 2, false }, "one-patcher",
		    (struct scaling_mix){ 1, 2, false });
	expect_base((struct scaling_mix){ 2, 1, true }, "own-sites",
		    (struct scaling_mix){ 2, 1, false });
}

/* --- Patchers --------------------------------------------------------------------------------- */

#define NAMES 4

static const char *const names[NAMES] = { "call", "aligned", "straddler policy=wait",
					  "straddler policy=membarrier" };

static const struct bench_row *mix_row(unsigned op, const char *mix)
{
	char label[256];

	snprintf(label, sizeof(label), "%s %s", names[op], mix);
	return bench_run_row(&patchers, label, "changes");
}

static void expect_mix(unsigned op, const char *mix, const char *against, unsigned samples)
{
	const struct bench_row *row = mix_row(op, mix);

	assert_non_null(row);
	if (bench_run_skipped(row))
		return;
	assert_int_equal(row->samples, samples * 2 * run.rounds);
	assert_string_equal(row->unit, "changes/s");
	assert_string_equal(row->against, against);
	assert_true(row->value.median > 0);
	assert_true(isnan(row->ratio.median) == !*against);
	assert_true(bench_row_extra_of(row, "per_patcher") * bench_row_number(row, "patchers") ==
		    row->value.median);
}

static int measure_once(void **state)
{
	(void)state;
	run.rounds = 1;
	slice = SLICE;
	return measure_scaling(&run, &patchers);
}

static int tidy(void **state)
{
	(void)state;
	bench_result_free(&patchers);
	return 0;
}

static void two_cpus_have_all_their_mixes(void **state)
{
	(void)state;
	assert_int_equal(patchers.rows, 4 * NAMES);
	for (unsigned op = 0; op < NAMES; op++) {
		expect_mix(op, "patchers=1 executors=0", "", 2);
		expect_mix(op, "patchers=1 executors=1", "no-executor", 2);
		expect_mix(op, "patchers=2 executors=0", "one-patcher", 2);
		expect_mix(op, "patchers=2 executors=0 one-site=1", "own-sites", 2);
	}
}

/* A change by policy wait takes two waits; a tick is a tenth of a nanosecond at least. */
static void nobody_is_quicker_than_his_waits(void **state)
{
	const struct bench_row *row = mix_row(2, "patchers=1 executors=0");

	(void)state;
	assert_true(row->value.median > 0);
	assert_true(row->most < 1e10 / (2 * BENCH_RUN_WAIT));
}

/* Two at one site are in each other's way; two with sites of their own never. */
static void one_site_refuses_the_second(void **state)
{
	const struct bench_row *row = mix_row(2, "patchers=2 executors=0 one-site=1");

	(void)state;
	/* On one CPU they hardly ever meet. */
	if (run.seating.executor[0] != run.seating.patcher)
		assert_true(bench_row_extra_of(row, "refused") > 0);
	row = mix_row(2, "patchers=2 executors=0");
	assert_true(isnan(bench_row_extra_of(row, "refused")));
	assert_true(bench_row_extra_of(row, "efficiency") == row->ratio.median / 2);
}

/* Four CPUs, as far as the benchmark is told: patchers and executors fill them. */
static void more_cpus_have_more_mixes(void **state)
{
	struct bench_result result = { 0 };
	struct bench_run larger = run;

	(void)state;
	larger.seating.executors = 3;
	larger.seating.executor[1] = run.seating.patcher;
	larger.seating.executor[2] = run.seating.executor[0];
	slice = SLICE / 10;
	assert_int_equal(measure_scaling(&larger, &result), 0);
	slice = SLICE;
	assert_int_equal(result.rows, 9 * NAMES);
	for (unsigned i = 0; i < result.rows; i++) {
		const struct bench_row *row = &result.row[i];

		if (bench_run_skipped(row))
			continue;
		assert_in_range(bench_row_number(row, "patchers") +
					bench_row_number(row, "executors"),
				1, 4);
	}
	assert_non_null(bench_run_row(&result, "call patchers=4 executors=0", "changes"));
	assert_non_null(bench_run_row(&result, "call patchers=1 executors=2", "changes"));
	bench_result_free(&result);
}

static void the_policy_is_as_it_was(void **state)
{
	struct pc_status status;

	(void)state;
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
}

static void it_can_be_interrupted(void **state)
{
	struct bench_result result = { 0 };

	(void)state;
	bench_run_stop = 1;
	assert_int_equal(measure_scaling(&run, &result), -EINTR);
	bench_run_stop = 0;
	bench_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mix_fits_the_cpus_or_says_that_it_does_not),
		cmocka_unit_test(each_is_compared_with_one_that_differs_in_one_thing),
		cmocka_unit_test(two_cpus_have_all_their_mixes),
		cmocka_unit_test(nobody_is_quicker_than_his_waits),
		cmocka_unit_test(one_site_refuses_the_second),
		cmocka_unit_test(more_cpus_have_more_mixes),
		cmocka_unit_test(the_policy_is_as_it_was),
		cmocka_unit_test(it_can_be_interrupted),
	};

	return BENCH_RUN_TESTS(&run, tests, measure_once, tidy);
}
