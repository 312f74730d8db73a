/* SPDX-License-Identifier: MIT */
/*
 * Looks in a file: which ones count, and what they say of the ladder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The sample has a macro P, which is a name in headers of GSL. */
#include "fleet/tests/world.h"

#include "calibrate/statistics/evidence.h"
#include "calibrate/tests/verify_sample.h"
#include "calibrate/verify/verify.h"
#include "stress/base/exit_status.h"

#define TOGGLES 100000u
#define LOW	20u /* looks at a machine that is as it was */

static char path[64];
static struct cpus cpus = { .word = { 3 } };

static int begin_file(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/test_verify_baseline.XXXXXX");
	fd = mkstemp(path);
	begin();
	v.here = world_identity(0, false);
	strcpy(v.baseline.file, path);
	v.baseline.level = VERIFY_LEVEL;
	v.baseline.fleet = 1;
	return fd < 0 ? -1 : close(fd);
}

static int end_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* Only what is added last is judged; the looks before it are appended as they are. */
static void append(const struct identity *id, const char *source, uint64_t tears, unsigned day)
{
	struct evidence_run run = { 0 };
	struct sum sum = {
		.kind = SUM_WAIT,
		.crossing = CROSSING_LINE,
		.placement = PLACEMENT_SPREAD,
		.executors = 1,
		.count = { .slices = 1,
			   .toggles = TOGGLES,
			   .tears = tears,
			   .squares = (double)TOGGLES * TOGGLES,
			   .worst_tears = tears,
			   .worst_toggles = TOGGLES },
	};

	assert_int_equal(sums_add(&run.sums, &sum), 0);
	evidence_stamp(&run, source, id, &cpus);
	run.time = WORLD_START + (int64_t)day * WORLD_DAY;
	assert_int_equal(evidence_append(path, &run), 0);
	sums_free(&run.sums);
}

static int look(uint64_t tears)
{
	struct cell_record r = record_of(TOGGLES, tears, OUTCOME_DONE);

	cell_defaults(&r.cell);
	r.cell.waits = (struct waits){ 0 };
	r.cell.crossing = CROSSING_LINE;
	r.cell.placement = PLACEMENT_SPREAD;
	r.cell.executors = 1;
	r.result.exposed = r.result.toggles;
	r.result.torn = tears;
	v.baseline.toggles = v.baseline.tears = v.baseline.crowded = 0;
	return verify_baseline_add(&v, path, &cpus, &r, 1);
}

/* Storms, and looks between them. Then some that are high. */
static void append_looks(unsigned high)
{
	assert_int_equal(truncate(path, 0), 0);
	for (unsigned i = 0; i < LOW + high; i++)
		append(&v.here, VERIFY_LOOK,
		       i >= LOW	    ? 300 + i
		       : i % 7 == 3 ? 100
				    : 5 + i * 5 % 9,
		       i);
}

static void test_a_ladder_that_stays(void **state)
{
	(void)state;
	append_looks(0);
	assert_int_equal(look(9), 0);
	assert_int_equal(v.baseline.looks, LOW + 1);
	assert_int_equal(v.baseline.tears, 9);
	assert_int_equal(v.baseline.toggles, TOGGLES);
	assert_int_equal(v.baseline.others, 0);
	assert_false(v.baseline.rise.rose);
	verify_judge(&v);
	assert_int_not_equal(v.verdict, VERIFY_ROSE);
}

/* How many high looks it takes. */
static unsigned looks_until_alarm(unsigned fleet)
{
	v.baseline.fleet = fleet;
	for (unsigned high = 1; high < 20; high++) {
		append_looks(high - 1);
		assert_int_equal(look(400), 0);
		if (v.baseline.rise.rose)
			return high;
	}
	return 20;
}

static void test_a_ladder_that_rose(void **state)
{
	unsigned looks;

	(void)state;
	/* New microcode: the same machine. */
	append_looks(0);
	strcpy(v.here.microcode, "0x2");
	looks = looks_until_alarm(1);
	assert_in_range(looks, 2, 6);
	assert_true(v.baseline.rise.times > 5);
	assert_true(v.baseline.since[0]);
	put(CHECK_WAIT, ENOUGH, 0);
	verify_judge(&v);
	assert_int_equal(v.verdict, VERIFY_ROSE);
	assert_int_equal(v.status, EXIT_TEARS);
}

/* A level that a thousand machines share takes more looks. */
static void test_a_fleet_takes_more(void **state)
{
	(void)state;
	assert_in_range(looks_until_alarm(1000), looks_until_alarm(1) + 1, 12);
}

/* A storm that many looks are taken in is one look. */
static void test_looks_of_one_day(void **state)
{
	(void)state;
	append_looks(0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(look(400), 0);
	assert_int_equal(v.baseline.looks, LOW + 1);
	assert_false(v.baseline.rise.rose);
	assert_int_equal(look(5), 0);
	assert_int_equal(v.baseline.crowded, 8);
	assert_int_equal(v.baseline.others, 0);
	assert_int_equal(v.baseline.tears, 5);
}

static void test_what_does_not_count(void **state)
{
	struct identity other = v.here;
	FILE *f;

	(void)state;
	append(&v.here, VERIFY_LOOK, 5, 0);
	append(&v.here, "default", 5000, 1);
	other.stepping = 9;
	append(&other, VERIFY_LOOK, 5000, 2);
	other = v.here;
	strcpy(other.hypervisor, "KVMKVMKVM");
	append(&other, VERIFY_LOOK, 5000, 3);
	cpus.word[0] = 1;
	append(&v.here, VERIFY_LOOK, 5000, 4);
	cpus.word[0] = 3;
	f = fopen(path, "a");
	assert_non_null(f);
	fputs("no line of evidence\n", f);
	fclose(f);
	assert_int_equal(look(5), 0);
	assert_int_equal(v.baseline.looks, 2);
	assert_int_equal(v.baseline.others, 5);
}

static void test_no_file_can_be_written(void **state)
{
	struct cell_record r = record_of(TOGGLES, 1, OUTCOME_DONE);

	(void)state;
	assert_true(verify_baseline_add(&v, "/nowhere/looks", &cpus, &r, 1) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_ladder_that_stays, begin_file, end_file),
		cmocka_unit_test_setup_teardown(test_a_ladder_that_rose, begin_file, end_file),
		cmocka_unit_test_setup_teardown(test_a_fleet_takes_more, begin_file, end_file),
		cmocka_unit_test_setup_teardown(test_looks_of_one_day, begin_file, end_file),
		cmocka_unit_test_setup_teardown(test_what_does_not_count, begin_file, end_file),
		cmocka_unit_test_setup_teardown(test_no_file_can_be_written, begin_file, end_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
