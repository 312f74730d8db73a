/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* asprintf() */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "results/figure.h"
#include "results/tests/sample.h"

#define RECORDS_MAX 512

/* Draws nothing, but tells what it was asked to draw. */
static const char fake_gnuplot[] = "#!/bin/sh\n"
				   "printf '%s\\n' \"$@\" >arguments\n"
				   "echo picture >\"$5\"\n";

static char gnuplot[256]; /* the real one, empty if there is none */
static char home[4096];

struct place {
	char path[64];
	struct cell_record records[RECORDS_MAX];
	struct journal_data data;
	char error[256];
};

/* --- Places and records ------------------------------------------------------- */

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
	assert_int_equal(chmod(path, mode), 0);
}

/* A folder of its own, entered, with a gnuplot that only tells its arguments. */
static int enter_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_figure.XXXXXX");
	if (!mkdtemp(place->path) || chdir(place->path))
		return -1;
	place->data.records = place->records;
	place->data.have_identity = 1;
	place->data.identity = sample_identity();
	write_file("gnuplot", fake_gnuplot, 0755);
	setenv("TMAX_GNUPLOT", "./gnuplot", 1);
	*state = place;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int leave_place(void **state)
{
	struct place *place = *state;
	int rc = chdir(home);

	rc |= nftw(place->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(place);
	return rc;
}

static struct cell_record *add_record(struct place *place, uint64_t wait, uint64_t tears,
				      uint64_t toggles)
{
	struct cell_record *r = &place->records[place->data.count++];

	assert_true(place->data.count <= RECORDS_MAX);
	*r = sample_record(0);
	r->cell.split = 2;
	r->cell.first_wait = r->cell.second_wait = wait;
	r->result.toggles = toggles;
	r->result.tears[TEAR_OLD_FRONT] = tears;
	r->result.tears[TEAR_NEW_FRONT] = r->result.tears[TEAR_OTHER] = 0;
	return r;
}

static int write_it(struct place *place)
{
	return figure9_write(&place->data, "out", place->error, sizeof(place->error));
}

static int write_crashes(struct place *place)
{
	return figure9_write_oracle(&place->data, ORACLE_CRASH, "out", place->error,
				    sizeof(place->error));
}

static char *read_file(const char *path)
{
	FILE *stream = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(stream);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, stream) > 0);
	fclose(stream);
	return text;
}

static bool file_has(const char *path, const char *words)
{
	char *text = read_file(path);
	bool has = strstr(text, words);

	free(text);
	return has;
}

/* The rows of the data file, without what explains them. */
static void expect_rows(const char *rows)
{
	char *text = read_file("out.dat"), *at = text;

	while (*at == '#')
		at = strchr(at, '\n') + 1;
	assert_string_equal(at, rows);
	free(text);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
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
	add_record(place, 100, 1, 10)->cell.second_wait = 101;
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

	add_record(place, 100, 1, 10)->cell.stretch = 4;
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
	add_record(place, 100, 2, 20)->result.outcome = OUTCOME_CRASH;
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

	for (unsigned i = 0; i < 4; i++) {
		struct cell_record *r = add_record(place, 100 * (i / 2), 0, 1000);

		r->cell.oracle = ORACLE_CRASH;
		r->cell.split = 1 + i % 2;
		r->result.outcome = i ? OUTCOME_DONE : OUTCOME_CRASH;
	}
	assert_int_equal(write_crashes(place), 0);
	expect_rows("64 0 0 1 2\n64 0 100 0 2\n"
		    "64 1 0 1 1\n64 1 100 0 1\n64 2 0 0 1\n64 2 100 0 1\n");
	assert_true(file_has("arguments", "\ncrash\n64\n0 1 2\nThe paper: "));
	assert_true(file_has("out.dat", "\n# The paper: 25 waits"));
	assert_true(file_has("out.dat", "\n# Here: N = 1 ("));
	if (!gnuplot[0])
		return;
	setenv("TMAX_GNUPLOT", gnuplot, 1);
	assert_int_equal(write_crashes(place), 0);
	assert_true(file_has("out.svg", "all splits"));
	assert_true(file_has("out.svg", "split 2|3"));
	assert_true(file_has("out.svg", "The paper: 25 waits from 0 to 2400"));
	assert_true(file_has("out.svg", "Here: N = 1 ("));
}

static void test_counted_tears_need_no_caption(void **state)
{
	struct place *place = *state;

	add_record(place, 100, 1, 10);
	add_record(place, 100, 1, 10)->cell.split = 3;
	assert_int_equal(write_it(place), 0);
	assert_true(file_has("arguments", "\ncount\n64\n2 3\n\n"));
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
	rc = figure9_write(&place->data, "none/out", place->error, sizeof(place->error));
	assert_int_equal(rc, -ENOTDIR);
	/* Shortened, it would be another file's. */
	for (size_t i = 0; i < sizeof(name); i += 2)
		memcpy(name + i, "./", 2);
	strcpy(name + sizeof(name) - 4, "out");
	rc = figure9_write(&place->data, name, place->error, sizeof(place->error));
	assert_int_equal(rc, -ENAMETOOLONG);
}

/* --- The real gnuplot ------------------------------------------------------------- */

/* Rates as a real machine has them: from 1e-3 down to nothing at 3000 ticks. */
static void add_curves(struct place *place)
{
	static const uint64_t waits[] = { 0,	100,  200,  500,  1000, 1500,
					  2000, 2500, 3000, 4000, 6000, 10000 };

	for (unsigned split = 1; split <= 4; split++) {
		uint64_t tears = 20000 * split;

		for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++, tears /= 5)
			for (unsigned page = 0; page < 2; page++) {
				struct cell_record *r =
					add_record(place, waits[i], tears * (1 + page), 20000000);

				r->cell.split = split;
				r->cell.crossing = page ? CROSSING_PAGE : CROSSING_LINE;
			}
	}
}

static void expect_pictures(const char *svg, const char *png)
{
	char *text = read_file(png);

	assert_memory_equal(text, "\x89PNG\r\n\x1a\n", 8);
	free(text);
	text = read_file(svg);
	assert_non_null(strstr(text, "<svg"));
	assert_non_null(strstr(text, "</svg>"));
	free(text);
}

static void test_pictures(void **state)
{
	struct place *place = *state;

	if (!gnuplot[0])
		skip();
	setenv("TMAX_GNUPLOT", gnuplot, 1);
	add_curves(place);
	assert_int_equal(write_it(place), 0);
	expect_pictures("out.svg", "out.png");
	assert_true(file_has("out.svg", "line crossing (64 bytes)"));
	assert_true(file_has("out.svg", "page crossing (4096 bytes)"));
	assert_true(file_has("out.svg", "tears per million toggles"));
	assert_true(file_has("out.svg", "first wait = second wait (ticks)"));
	assert_true(file_has("out.svg", "no tear seen: 95 % upper bound, 3/N"));
	assert_true(file_has("out.svg", "split 2|3"));
	assert_true(file_has("out.svg", "hypervisor KVMKVMKVM"));
	assert_true(file_has("out.svg", "1920 million toggles in 96 cells, 1 executor"));
}

static void test_pictures_of_crashes(void **state)
{
	struct place *place = *state;

	if (!gnuplot[0])
		skip();
	setenv("TMAX_GNUPLOT", gnuplot, 1);
	for (unsigned i = 0; i < 50; i++) {
		struct cell_record *r = add_record(place, 100 * (i % 10), 0, 1000000);

		r->cell.oracle = ORACLE_CRASH;
		r->result.outcome = i % 10 < 5 ? OUTCOME_CRASH : OUTCOME_DONE;
	}
	assert_int_equal(write_crashes(place), 0);
	expect_pictures("out.svg", "out.png");
	assert_true(file_has("out.svg", "failed runs in 100"));
	assert_true(file_has("out.svg", "no failure seen: 95 % upper bound"));
	assert_false(file_has("out.svg", "page crossing"));
}

/* Open downward triangles in the SVG; the legend has some too. */
static size_t count_bounds(struct place *place)
{
	size_t count = 0;
	char *text;

	assert_int_equal(write_it(place), 0);
	expect_pictures("out.svg", "out.png");
	text = read_file("out.svg");
	for (char *at = text; (at = strstr(at, "xlink:href='#gpPt9'")); at++)
		count++;
	free(text);
	return count;
}

static void test_bounds_where_no_tear_was_seen(void **state)
{
	struct place *place = *state;
	size_t bounds;

	if (!gnuplot[0])
		skip();
	setenv("TMAX_GNUPLOT", gnuplot, 1);
	add_record(place, 0, 0, 1000000);
	bounds = count_bounds(place);
	add_record(place, 100, 0, 1000000);
	assert_int_equal(count_bounds(place), bounds + 1);
	add_record(place, 200, 1, 1000000);
	assert_int_equal(count_bounds(place), bounds + 1);
	add_record(place, 100, 1, 1000000);
	assert_int_equal(count_bounds(place), bounds);
}

/* gnuplot runs commands from backquotes, from "<cmd" as data and "|cmd" as output. */
static void test_names_are_no_commands(void **state)
{
	static const char *const prefixes[] = { "<touch run;", "|touch run;", "-" };
	struct place *place = *state;

	if (!gnuplot[0])
		skip();
	setenv("TMAX_GNUPLOT", gnuplot, 1);
	strcpy(place->data.identity.brand, "`touch run`\"; system('touch run') #<b>{/:Bold_x}@A");
	add_curves(place);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		char svg[64], png[64];

		snprintf(svg, sizeof(svg), "./%s.svg", prefixes[i]);
		snprintf(png, sizeof(png), "./%s.png", prefixes[i]);
		assert_int_equal(figure9_write(&place->data, prefixes[i], place->error,
					       sizeof(place->error)),
				 0);
		expect_pictures(svg, png);
		assert_true(file_has(svg, "`touch run`"));
		assert_true(file_has(svg, "#&lt;b>{/:Bold_x}@A, microcode"));
	}
	assert_false(exists("run"));
}

/* --- Finding things ---------------------------------------------------------------- */

/* The gnuplot that the figures will use outside of these tests. */
static void find_gnuplot(void)
{
	const char *named = getenv("TMAX_GNUPLOT");
	char *path = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = path, *folder;

	if (named)
		snprintf(gnuplot, sizeof(gnuplot), "%s", named);
	while (!gnuplot[0] && (folder = strsep(&rest, ":"))) {
		snprintf(gnuplot, sizeof(gnuplot), "%s/gnuplot", folder);
		if (access(gnuplot, X_OK))
			gnuplot[0] = '\0';
	}
	free(path);
}

static int find_things(void **state)
{
	const char *top = getenv("srcdir");
	char *scripts, *absolute;

	(void)state;
	find_gnuplot();
	if (!getcwd(home, sizeof(home)) || asprintf(&scripts, "%s/scripts", top ? top : ".") < 0)
		return -1;
	absolute = realpath(scripts, NULL);
	free(scripts);
	if (!absolute)
		return -1;
	setenv("TMAX_DATADIR", absolute, 1);
	free(absolute);
	return 0;
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter_place, leave_place)

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
		IN_PLACE(test_pictures),
		IN_PLACE(test_pictures_of_crashes),
		IN_PLACE(test_bounds_where_no_tear_was_seen),
		IN_PLACE(test_names_are_no_commands),
	};

	return cmocka_run_group_tests(tests, find_things, NULL);
}
