/* SPDX-License-Identifier: MIT */
/* Figure 9 as the real gnuplot draws it. Skipped where there is none. */
#define _GNU_SOURCE /* asprintf() */
#include "results/tests/figure_place.h"

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

static void test_pictures(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	add_curves(place);
	assert_int_equal(write_it(place), 0);
	expect_pictures("out.svg", "out.png");
	assert_true(file_has("out.svg", "line crossing (64 bytes)"));
	assert_true(file_has("out.svg", "page crossing (4096 bytes)"));
	assert_true(file_has("out.svg", "tears per million toggles"));
	assert_true(file_has("out.svg", "first wait = second wait (us)"));
	assert_true(file_has("out.svg", "no tear: 95 % bound"));
	assert_true(file_has("out.svg", "split 2|3"));
	/* Where the pointer rests. */
	assert_true(file_has("out.svg", "split 2|3, waits of 0.0385 us: "));
	assert_true(file_has("out.svg", " toggles tore"));
	assert_true(file_has("out.svg", "hypervisor KVMKVMKVM"));
	assert_true(file_has("out.svg", "1.92e9 toggles in 96 cells, 1 executor"));
}

/* What the last estimate says of the constant waits is in the figure. */
static void test_the_papers_wait_is_marked(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	add_curves(place);
	assert_int_equal(write_it(place), 0);
	assert_false(file_has("out.svg", "T_max here</text>"));
	place->data.others = json_pack("[{s:s, s:{s:b, s:i}}]", "type", "estimate", "paper",
				       "found", 1, "wait", 1600);
	assert_int_equal(write_it(place), 0);
	json_decref(place->data.others);
	assert_true(file_has("out.svg", "T_max here</text>"));
}

static void test_pictures_of_crashes(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	for (unsigned i = 0; i < 50; i++) {
		struct cell_record *r = add_record(place, 100 * (i % 10), 0, 1000000);

		r->cell.oracle = ORACLE_CRASH;
		r->result.outcome = i % 10 < 5 ? OUTCOME_CRASH : OUTCOME_DONE;
	}
	assert_int_equal(write_crashes(place), 0);
	expect_pictures("out.svg", "out.png");
	assert_true(file_has("out.svg", "failed runs in 100"));
	assert_true(file_has("out.svg", "no failure: 95 % bound"));
	assert_false(file_has("out.svg", "page crossing"));
}

static void test_pictures_of_all_splits(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	add_crashes_of_two_splits(place);
	assert_int_equal(write_crashes(place), 0);
	expect_pictures("out.svg", "out.png");
	assert_true(file_has("out.svg", "all splits"));
	assert_true(file_has("out.svg", "split 2|3"));
	assert_true(file_has("out.svg", "The paper: 25 waits from 0 to 2400"));
	assert_true(file_has("out.svg", "Here: 2 CPUs; "));
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

	use_gnuplot();
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

	use_gnuplot();
	strcpy(place->data.identity.brand, "`touch run`\"; system('touch run') #<b>{/:Bold_x}@A");
	add_curves(place);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		char svg[64], png[64];

		snprintf(svg, sizeof(svg), "./%s.svg", prefixes[i]);
		snprintf(png, sizeof(png), "./%s.png", prefixes[i]);
		assert_int_equal(figure9_write(&place->data, ORACLE_COUNT, prefixes[i],
					       place->error, sizeof(place->error)),
				 0);
		expect_pictures(svg, png);
		assert_true(file_has(svg, "`touch run`"));
		assert_true(file_has(svg, "#&lt;b>{/:Bold_x}@A"));
	}
	assert_false(exists("run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_pictures),
		IN_PLACE(test_the_papers_wait_is_marked),
		IN_PLACE(test_pictures_of_crashes),
		IN_PLACE(test_pictures_of_all_splits),
		IN_PLACE(test_bounds_where_no_tear_was_seen),
		IN_PLACE(test_names_are_no_commands),
	};

	return cmocka_run_group_tests(tests, find_things, NULL);
}
