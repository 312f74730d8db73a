/* SPDX-License-Identifier: MIT */
/*
 * bench_toggle(): every row is there, measured or with the reason why not; nothing that it
 * changes is left changed. How long things take is no matter here.
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

#include "bench/cases/toggle.c"
#include "bench/tests/bench_run.h"
#include "patchcore/machine/wait.h"

static volatile sig_atomic_t stop;
static struct bench_run run = { .seed = 1, .stop = &stop };

/* --- Running it ----------------------------------------------------------------------- */

/* Mappings of this process whose line in /proc/self/maps has these words. */
static unsigned mappings_with(const char *words)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, words) != NULL;
	fclose(maps);
	return count;
}

static struct bench_result toggle(unsigned rounds)
{
	struct bench_result result = { .distance = { NAN, NAN, NAN } };

	run.rounds = rounds;
	assert_int_equal(bench_toggle.run(&run, &result), 0);
	return result;
}

static const struct bench_row *find(const struct bench_result *result, const char *label,
				    const char *measure)
{
	const struct bench_row *row = bench_run_row(result, label, measure);

	if (!row)
		fail_msg("no row %s, %s", label, measure);
	return row;
}

/* --- What there shall be -------------------------------------------------------------- */

/* Blocks per round are two, samples per block those of the pairs; one measure has both. */
static const struct expected {
	const char *label;
	unsigned pairs;
	bool one; /* of one measure, this: */
	const char *measure;
} expected[] = {
	{ "pc_init", 5, true, "start" },
	{ "aligned executors=1", 100, false, NULL },
	{ "aligned executors=0", 100, false, NULL },
	{ "aligned mapping=protect executors=1", 100, false, NULL },
	{ "aligned mapping=alias executors=1", 100, false, NULL },
	{ "call split=0 executors=1", 100, false, NULL },
	{ "call split=1|4 executors=1", 100, false, NULL },
	{ "call split=2|3 executors=1", 100, false, NULL },
	{ "call split=3|2 executors=1", 100, false, NULL },
	{ "call split=4|1 executors=1", 100, false, NULL },
	{ "call split=0 executors=0", 100, false, NULL },
	{ "call split=1|4 executors=0", 100, false, NULL },
	{ "call split=2|3 executors=0", 100, false, NULL },
	{ "call split=3|2 executors=0", 100, false, NULL },
	{ "call split=4|1 executors=0", 100, false, NULL },
	{ "call split=0 executors=1", 200, true, "retarget" },
	{ "call split=1|4 executors=1", 200, true, "retarget" },
	{ "call split=2|3 executors=1", 200, true, "retarget" },
	{ "call split=3|2 executors=1", 200, true, "retarget" },
	{ "call split=4|1 executors=1", 200, true, "retarget" },
	{ "straddler split=1|4 policy=wait executors=1", 100, false, NULL },
	{ "straddler split=2|3 policy=wait executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=wait executors=1", 100, false, NULL },
	{ "straddler split=4|1 policy=wait executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=wait executors=0", 100, false, NULL },
	{ "straddler split=3|2 crossing=page policy=wait executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=wait mapping=protect executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=wait mapping=alias executors=1", 100, false, NULL },
	{ "straddler split=1|4 policy=membarrier executors=1", 100, false, NULL },
	{ "straddler split=2|3 policy=membarrier executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=membarrier executors=1", 100, false, NULL },
	{ "straddler split=4|1 policy=membarrier executors=1", 100, false, NULL },
	{ "straddler split=3|2 policy=membarrier executors=0", 100, false, NULL },
	{ "straddler split=3|2 crossing=page policy=membarrier executors=1", 100, false, NULL },
	{ "start split=3|2 policy=wait executors=1", 100, false, NULL },
	{ "start split=3|2 policy=wait executors=0", 100, false, NULL },
	{ "start split=3|2 policy=membarrier executors=1", 100, false, NULL },
	{ "start split=3|2 policy=membarrier executors=0", 100, false, NULL },
	{ "beside paper of=aligned policy=wait executors=1", 10, false, NULL },
	{ "beside paper of=aligned policy=wait executors=0", 10, false, NULL },
	{ "beside paper of=aligned policy=membarrier executors=1", 10, false, NULL },
	{ "beside paper of=aligned policy=membarrier executors=0", 10, false, NULL },
	{ "beside paper of=call split=0 policy=wait executors=1", 10, false, NULL },
	{ "beside paper of=call split=3|2 policy=wait executors=1", 10, false, NULL },
	{ "beside paper of=call split=0 policy=wait executors=0", 10, false, NULL },
	{ "beside paper of=call split=3|2 policy=wait executors=0", 10, false, NULL },
	{ "beside paper of=call split=0 policy=membarrier executors=1", 10, false, NULL },
	{ "beside paper of=call split=3|2 policy=membarrier executors=1", 10, false, NULL },
	{ "beside paper of=call split=0 policy=membarrier executors=0", 10, false, NULL },
	{ "beside paper of=call split=3|2 policy=membarrier executors=0", 10, false, NULL },
	{ "beside paper of=start split=3|2 policy=wait executors=1", 10, false, NULL },
	{ "beside paper of=start split=3|2 policy=wait executors=0", 10, false, NULL },
	{ "beside paper of=start split=3|2 policy=membarrier executors=1", 10, false, NULL },
	{ "beside paper of=start split=3|2 policy=membarrier executors=0", 10, false, NULL },
	{ "flag executors=1", 100, false, NULL },
	{ "flag executors=0", 100, false, NULL },
	{ "pointer executors=1", 200, true, "retarget" },
	{ "pointer executors=0", 200, true, "retarget" },
	{ "hand-membarrier split=3|2 executors=1", 50, false, NULL },
	{ "hand-membarrier split=3|2 executors=0", 50, false, NULL },
	{ "stop-the-world split=3|2 executors=1", 20, false, NULL },
	{ "ptrace split=3|2 executors=1", 10, false, NULL },
	{ "jvm-volatile executors=1", 25, false, NULL },
	{ "jvm-volatile executors=0", 25, false, NULL },
	{ "batch batch=1 split=3|2 policy=wait executors=1", 40, true, "change" },
	{ "batch batch=10 split=3|2 policy=wait executors=1", 40, true, "change" },
	{ "batch batch=100 split=3|2 policy=wait executors=1", 40, true, "change" },
	{ "batch batch=1000 split=3|2 policy=wait executors=1", 10, true, "change" },
	{ "batch batch=1024 split=3|2 policy=wait executors=1", 10, true, "change" },
	{ "batch batch=10000 split=3|2 policy=wait executors=1", 4, true, "change" },
	{ "batch batch=1 split=3|2 policy=membarrier executors=1", 40, true, "change" },
	{ "batch batch=10 split=3|2 policy=membarrier executors=1", 40, true, "change" },
	{ "batch batch=100 split=3|2 policy=membarrier executors=1", 40, true, "change" },
	{ "batch batch=1000 split=3|2 policy=membarrier executors=1", 10, true, "change" },
	{ "batch batch=1024 split=3|2 policy=membarrier executors=1", 10, true, "change" },
	{ "batch batch=10000 split=3|2 policy=membarrier executors=1", 4, true, "change" },
	{ "batch batch=1 split=3|2 policy=auto executors=1", 40, true, "change" },
	{ "batch batch=10 split=3|2 policy=auto executors=1", 40, true, "change" },
	{ "batch batch=100 split=3|2 policy=auto executors=1", 40, true, "change" },
	{ "batch batch=1000 split=3|2 policy=auto executors=1", 10, true, "change" },
	{ "batch batch=1024 split=3|2 policy=auto executors=1", 10, true, "change" },
	{ "batch batch=10000 split=3|2 policy=auto executors=1", 4, true, "change" },
	{ "batch batch=1 split=3|2 policy=auto risk=any executors=1", 40, true, "change" },
	{ "batch batch=1024 split=3|2 policy=auto risk=any executors=1", 10, true, "change" },
};

#define EXPECTED (sizeof(expected) / sizeof(expected[0]))

static void check_measured(const struct bench_row *row, unsigned samples)
{
	bool start = strcmp(row->measure, "start") == 0;

	assert_int_equal(row->samples, samples);
	assert_string_equal(row->unit, start ? "us" : "ticks");
	assert_true(row->value.median > 0 && row->least <= row->p5 && row->p99 <= row->most);
	assert_string_equal(row->against, start			       ? ""
					  : strstr(row->name, "paper") ? "paper"
								       : "floor");
	assert_true(start || (row->base.median > 0 && row->ratio.median > 0));
	if (bench_row_number(row, "executors") > 0)
		assert_true(bench_row_extra_of(row, "executed") > 0);
}

static void check_row(const struct bench_result *result, const struct expected *e,
		      const char *measure, unsigned rounds)
{
	const struct bench_row *row = find(result, e->label, measure);

	if (row->samples)
		check_measured(row, e->pairs * 2 * rounds);
	else
		assert_true(row->why[0]);
}

static void check_all(const struct bench_result *result, unsigned rounds)
{
	unsigned rows = 0;

	for (size_t i = 0; i < EXPECTED; i++) {
		const struct expected *e = &expected[i];

		check_row(result, e, e->one ? e->measure : "on", rounds);
		if (!e->one)
			check_row(result, e, "off", rounds);
		rows += e->one ? 1 : 2;
	}
	assert_int_equal(result->rows, rows);
}

static bool skipped(const struct bench_result *result, const char *label, const char *measure)
{
	const struct bench_row *row = find(result, label, measure);

	return row->samples == 0;
}

/* --- Without a config ----------------------------------------------------------------- */

static void without_a_config_wait_says_why(void **state)
{
	struct bench_result result = toggle(1);
	const struct bench_row *row;

	(void)state;
	check_all(&result, 1);
	row = find(&result, "straddler split=3|2 policy=wait executors=1", "on");
	assert_int_equal(row->samples, 0);
	assert_non_null(strstr(row->why, "machine.conf"));
	row = find(&result, "batch batch=1 split=3|2 policy=auto risk=any executors=1", "change");
	assert_int_equal(row->samples, 0);
	assert_non_null(strstr(row->why, "no bound"));
	assert_false(skipped(&result, "aligned executors=1", "on"));
	assert_false(skipped(&result, "call split=0 executors=1", "off"));
	assert_false(skipped(&result, "flag executors=1", "on"));
	bench_result_free(&result);
}

/* --- With waits ----------------------------------------------------------------------- */

/* Of two rounds; the tests below look at it. */
static struct bench_result full;

static int run_in_full(void **state)
{
	(void)state;
	policy_assume_waits(3000, 2000, 1);
	if (pc_fini() < 0 || pc_init() < 0)
		return -1;
	full = toggle(2);
	return 0;
}

static void every_row_is_there(void **state)
{
	(void)state;
	check_all(&full, 2);
}

static void nothing_is_left_behind(void **state)
{
	struct pc_status status;

	(void)state;
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
	assert_true(status.accept_p == PC_ACCEPT_P_DEFAULT);
	assert_int_equal(mappings_with(" rwxp "), 0);
	assert_int_equal(mappings_with("memfd:patchcore"), 0);
}

/* All that needs neither membarrier nor ptrace nor memfd_create is measured wherever we run. */
static void what_can_be_had_is_measured(void **state)
{
	static const char *const always[] = {
		"aligned executors=1",
		"aligned mapping=protect executors=1",
		"call split=4|1 executors=1",
		"straddler split=3|2 policy=wait executors=1",
		"straddler split=3|2 crossing=page policy=wait executors=1",
		"start split=3|2 policy=wait executors=1",
		"flag executors=0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		assert_false(skipped(&full, always[i], "on"));
		assert_false(skipped(&full, always[i], "off"));
	}
	assert_false(skipped(&full, "pc_init", "start"));
	assert_false(skipped(&full, "call split=3|2 executors=1", "retarget"));
	assert_false(skipped(&full, "pointer executors=1", "retarget"));
	assert_false(
		skipped(&full, "batch batch=1024 split=3|2 policy=wait executors=1", "change"));
}

static const struct bench_row *batch(const char *what)
{
	char label[128];

	snprintf(label, sizeof(label), "batch %s executors=1", what);
	return find(&full, label, "change");
}

/* A wait can be no shorter than it is: 5000 ticks here, shared by a batch, and not in a start. */
static void waits_are_waited(void **state)
{
	const struct bench_row *row =
		find(&full, "straddler split=1|4 policy=wait executors=1", "on");

	(void)state;
	assert_true(row->least >= 5000);
	assert_true(batch("batch=10 split=3|2 policy=wait")->least >= 500);
	row = find(&full, "start split=3|2 policy=wait executors=0", "on");
	assert_true(row->least < 5000);
}

static void auto_waits_only_where_the_risk_is_taken(void **state)
{
	(void)state;
	assert_true(bench_row_extra_of(batch("batch=1 split=3|2 policy=auto risk=any"),
				       "may_wait") == 1);
	assert_true(batch("batch=1 split=3|2 policy=auto")->samples == 0 ||
		    bench_row_extra_of(batch("batch=1 split=3|2 policy=auto"), "may_wait") == 0);
}

static void the_library_is_no_peer(void **state)
{
	static const char *const ours[] = { "pc_init", "aligned", "call",	 "straddler",
					    "start",   "batch",	  "beside paper" };

	(void)state;
	for (unsigned i = 0; i < full.rows; i++) {
		bool mine = false;

		for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]); k++)
			mine |= strcmp(full.row[i].name, ours[k]) == 0;
		assert_int_equal(full.row[i].peer, !mine);
	}
}

static void can_be_interrupted(void **state)
{
	struct bench_result result = { .distance = { NAN, NAN, NAN } };
	struct pc_status status;

	(void)state;
	stop = 1;
	assert_int_equal(bench_toggle.run(&run, &result), -EINTR);
	stop = 0;
	bench_result_free(&result);
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_config_wait_says_why),
		cmocka_unit_test_setup(every_row_is_there, run_in_full),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(what_can_be_had_is_measured),
		cmocka_unit_test(waits_are_waited),
		cmocka_unit_test(auto_waits_only_where_the_risk_is_taken),
		cmocka_unit_test(the_library_is_no_peer),
		cmocka_unit_test(can_be_interrupted),
	};
	int ret;

	/* There is one, and nothing can be made of it. */
	setenv("PATCHCORE_MACHINE_CONF", "/dev/null", 1);
	ret = bench_run_open_apart(&run);
	if (ret)
		return ret;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	bench_result_free(&full);
	return bench_run_close(&run, ret);
}
