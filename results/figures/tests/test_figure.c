/* SPDX-License-Identifier: MIT */
/* Figure 9: its data, what gnuplot is told of them, and what happens without it. */
#define _GNU_SOURCE /* asprintf() */
#include <errno.h>
#include <inttypes.h>

#include "results/tests/figure_place.h"

/* The rows of the data file, without what explains them. */
static void expect_rows(const char *rows)
{
	char *text = read_file("out.dat"), *at = text;

	while (*at == '#')
		at = strchr(at, '\n') + 1;
	assert_string_equal(at, rows);
	free(text);
}

static void expect_nothing_written(void)
{
	assert_false(exists("out.dat"));
	assert_false(exists("out.svg"));
	assert_false(exists("out.png"));
	assert_false(exists("arguments"));
}

/* --- Which records, and how they add up ------------------------------------------ */

static void test_same_points_add_up(void **state)
{
	struct place *place = *state;
	struct cell_record *r;

	r = add_record(place, 100, 3, 1000);
	r->result.tears[TEAR_NEW_FRONT] = 2;
	r->result.tears[TEAR_OTHER] = 1;
	r = add_record(place, 100, 10, 4000);
	r->cell.executors = 4;
	r->cell.placement = PLACEMENT_SAME_CORE;
	r->cell.pair = PAIR_CALL_NOP;
	add_record(place, 0, 5, 100);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 0 5 100\n64 2 100 16 5000\n");
	assert_true(file_has("arguments", "\n5100 toggles in 3 cells, 1 to 4 executors\n"));
}

static void test_curves_and_panels_stay_apart(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10)->cell.crossing = CROSSING_PAGE;
	add_record(place, 100, 2, 20)->cell.split = 4;
	add_record(place, 200, 3, 30);
	add_record(place, 100, 4, 40);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 4 40\n64 2 200 3 30\n64 4 100 2 20\n4096 2 100 1 10\n");
	assert_true(file_has("arguments", "\ncount\n64 4096\n2 4\n"));
}

static void test_only_existing_panels_are_drawn(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10)->cell.crossing = CROSSING_PAGE;
	assert_int_equal(write_it(place), 0);
	assert_true(file_has("arguments", "\ncount\n4096\n2\n"));
}

static void test_other_records_do_not_count(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10)->cell.protocol = PROTOCOL_MEMBARRIER;
	add_record(place, 100, 1, 10)->cell.protocol = PROTOCOL_NAIVE;
	add_record(place, 100, 1, 10)->cell.oracle = ORACLE_CRASH;
	add_record(place, 100, 1, 10)->cell.crossing = CROSSING_32;
	add_record(place, 100, 1, 10)->cell.crossing = CROSSING_8;
	add_record(place, 100, 1, 10)->cell.waits.second = 101;
	add_record(place, 100, 1, 10)->cell.provokers = 1u << PROVOKER_CHAIN;
	add_record(place, 100, 1, 10)->cell.loop = 64;
	add_record(place, 100, 0, 0);
	assert_int_equal(write_it(place), -ENODATA);
	assert_string_equal(place->error, "no cell fits the figure");
	expect_nothing_written();
	add_record(place, 100, 7, 70);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 7 70\n");
}

/* The paper's waits stand still; those that stretch are drawn where there are no others. */
static void test_waits_that_stretch_stay_apart(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10)->cell.waits.stretch = 4;
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 1 10\n");
	add_record(place, 100, 2, 30);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 2 30\n");
}

static void test_outcomes(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10)->result.outcome = OUTCOME_INTERRUPTED;
	add_record(place, 100, 3, 20)->result.outcome = OUTCOME_CRASH;
	add_record(place, 100, 100, 30)->result.outcome = OUTCOME_KILLED;
	add_record(place, 100, 100, 30)->result.outcome = OUTCOME_HANG;
	add_record(place, 100, 100, 30)->result.outcome = OUTCOME_ERROR;
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 4 30\n");
	assert_true(file_has("arguments", "; 1 crashed, each counted as a tear;"
					  " 3 without an answer left out\n"));
}

static void test_crash_oracle_counts_runs(void **state)
{
	struct place *place = *state;

	for (int i = 0; i < 5; i++) {
		struct cell_record *r = add_record(place, 100, 0, 1000);

		r->cell.oracle = ORACLE_CRASH;
		r->result.outcome = i < 2 ? OUTCOME_CRASH : OUTCOME_DONE;
	}
	add_record(place, 100, 0, 1000)->cell.oracle = ORACLE_COUNT;
	add_record(place, 100, 0, 1000)->cell.oracle = ORACLE_CRASH;
	/* Stopped early, it has not survived. */
	place->records[6].result.outcome = OUTCOME_INTERRUPTED;
	assert_int_equal(write_crashes(place), 0);
	expect_rows("64 2 100 2 5\n");
	assert_true(file_has("out.dat", "# crossing split wait failed runs\n"));
	assert_true(file_has("arguments", "\n5000 toggles in 5 runs, 1 executor;"
					  " 1 without an answer left out\ncrash\n64\n2\n"));
}

/* The paper's curve is that of all splits; each split has one of its own besides. */
static void test_crashes_of_all_splits_add_up(void **state)
{
	struct place *place = *state;

	add_crashes_of_two_splits(place);
	assert_int_equal(write_crashes(place), 0);
	expect_rows("64 0 0 1 2\n64 0 100 0 2\n"
		    "64 1 0 1 1\n64 1 100 0 1\n64 2 0 0 1\n64 2 100 0 1\n");
	assert_true(file_has("arguments", "\ncrash\n64\n0 1 2\nThe paper: "));
	assert_true(file_has("out.dat", "\n# The paper: 25 waits"));
	assert_true(file_has("out.dat", "\n# Here: 2 CPUs; "));
}

static void test_counted_tears_need_no_caption(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	add_record(place, 100, 1, 10)->cell.split = 3;
	assert_int_equal(write_it(place), 0);
	assert_true(file_has("arguments", "\ncount\n64\n2 3\n\n2600\n"));
	assert_false(file_has("out.dat", "The paper"));
}

static void test_sums_do_not_wrap(void **state)
{
	struct place *place = *state;
	struct cell_record *r = add_record(place, 100, INT64_MAX, INT64_MAX);

	r->result.tears[TEAR_NEW_FRONT] = r->result.tears[TEAR_OTHER] = INT64_MAX;
	for (int i = 0; i < 2; i++)
		add_record(place, 100, 1, INT64_MAX);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 18446744073709551615 18446744073709551615\n");
}

/* --- Machines ------------------------------------------------------------------ */

static void test_machine_must_be_known(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	place->data.have_identity = 0;
	assert_int_equal(write_it(place), -EINVAL);
	assert_string_equal(place->error, "the journal names no machine");
	place->data.have_identity = 1;
	place->data.mixed = 1;
	assert_int_equal(write_it(place), -EINVAL);
	assert_string_equal(place->error, "the journal holds different machines");
	expect_nothing_written();
}

static void test_title_names_the_machine(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	assert_int_equal(write_it(place), 0);
	assert_true(file_has("arguments", "\nIntel(R) Xeon(R) Processor @ 2.60GHz, microcode "
					  "0x2b000603, hypervisor KVMKVMKVM\n"));
	strcpy(place->data.identity.hypervisor, "none");
	assert_int_equal(write_it(place), 0);
	assert_true(file_has("arguments", "microcode 0x2b000603, bare metal\n"));
}

/* A line break would turn a name into a row of data. */
static void test_names_stay_on_their_line(void **state)
{
	struct place *place = *state;

	strcpy(place->data.identity.brand, "Brand\n64 1 0 9 9\x1b");
	add_record(place, 100, 1, 10);
	assert_int_equal(write_it(place), 0);
	expect_rows("64 2 100 1 10\n");
	assert_true(file_has("out.dat", "# Brand?64 1 0 9 9?, microcode"));
}

/* --- When it does not work ------------------------------------------------------- */

static void test_without_gnuplot(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	write_file("out.svg", "old", 0644);
	write_file("out.png", "old", 0644);
	setenv("TMAX_GNUPLOT", "/nonexistent/gnuplot", 1);
	assert_int_equal(write_it(place), -ENOENT);
	assert_string_equal(place->error,
			    "cannot run /nonexistent/gnuplot: No such file or directory");
	expect_rows("64 2 100 1 10\n");
	/* A picture of older data would pass for one of these. */
	assert_false(exists("out.svg"));
	assert_false(exists("out.png"));
}

static void test_without_script(void **state)
{
	struct place *place = *state;
	char *folder = strdup(getenv("TMAX_DATADIR"));
	int rc;

	add_record(place, 100, 1, 10);
	setenv("TMAX_DATADIR", "/nonexistent", 1);
	rc = write_it(place);
	setenv("TMAX_DATADIR", folder, 1);
	free(folder);
	assert_int_equal(rc, -ENOENT);
	assert_non_null(strstr(place->error, "/nonexistent/figure9.gp"));
	expect_rows("64 2 100 1 10\n");
	assert_false(exists("arguments"));
}

static void expect_failed(struct place *place, const char *script)
{
	write_file("gnuplot", script, 0755);
	assert_int_equal(write_it(place), -EIO);
	assert_non_null(strstr(place->error, "failed to draw ./out."));
	assert_true(exists("out.dat"));
	assert_false(exists("out.svg"));
	assert_false(exists("out.png"));
}

static void test_gnuplot_that_fails(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	expect_failed(place, "#!/bin/sh\necho half >\"$5\"\nexit 1\n");
	expect_failed(place, "#!/bin/sh\necho half >\"$5\"\nkill -9 $$\n");
	expect_failed(place, "#!/bin/sh\nexit 0\n");
	expect_failed(place, "#!/bin/sh\n: >\"$5\"\n");
	expect_failed(place, "#!/bin/sh\n[ $4 = svg ] && echo picture >\"$5\"\n");
}

static void test_full_disk(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	assert_int_equal(symlink("/dev/full", "out.dat"), 0);
	write_file("out.svg", "old", 0644);
	assert_int_equal(write_it(place), -ENOSPC);
	assert_string_equal(place->error, "cannot write ./out.dat: No space left on device");
	expect_nothing_written();
}

static void test_no_folder(void **state)
{
	struct place *place = *state;
	char name[5000];
	int rc;

	add_record(place, 100, 1, 10);
	rc = figure9_write(&place->data, ORACLE_COUNT, "none/out", place->error,
			   sizeof(place->error));
	assert_int_equal(rc, -ENOTDIR);
	/* Shortened, it would be another file's. */
	for (size_t i = 0; i < sizeof(name); i += 2)
		memcpy(name + i, "./", 2);
	strcpy(name + sizeof(name) - 4, "out");
	rc = figure9_write(&place->data, ORACLE_COUNT, name, place->error, sizeof(place->error));
	assert_int_equal(rc, -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_same_points_add_up),
		IN_PLACE(test_curves_and_panels_stay_apart),
		IN_PLACE(test_only_existing_panels_are_drawn),
		IN_PLACE(test_other_records_do_not_count),
		IN_PLACE(test_waits_that_stretch_stay_apart),
		IN_PLACE(test_outcomes),
		IN_PLACE(test_crash_oracle_counts_runs),
		IN_PLACE(test_crashes_of_all_splits_add_up),
		IN_PLACE(test_counted_tears_need_no_caption),
		IN_PLACE(test_sums_do_not_wrap),
		IN_PLACE(test_machine_must_be_known),
		IN_PLACE(test_title_names_the_machine),
		IN_PLACE(test_names_stay_on_their_line),
		IN_PLACE(test_without_gnuplot),
		IN_PLACE(test_without_script),
		IN_PLACE(test_gnuplot_that_fails),
		IN_PLACE(test_full_disk),
		IN_PLACE(test_no_folder),
	};

	return cmocka_run_group_tests(tests, find_things, NULL);
}
