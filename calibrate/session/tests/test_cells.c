/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/session/experiment.h"
#include "stress/run/gap.h"

static int read_text(const char *text, struct cells *cells, char *why)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret;

	assert_non_null(stream);
	*cells = (struct cells){ 0 };
	why[0] = '\0';
	ret = cells_read(stream, cells, why);
	fclose(stream);
	return ret;
}

static void test_lines(void **state)
{
	struct cells cells;
	struct cell plain;
	char why[CELLS_WHY], want[512], got[512];

	(void)state;
	assert_int_equal(read_text("# a comment\n"
				   "\n"
				   "  \t# another\n"
				   "tmax stress\n"
				   "  far-4: tmax stress --crossing page --split 4 --seed 7 # yes\n"
				   "b:tmax gaps --seconds 2 --placement same-l3\r\n"
				   "tmax stress --placement oversubscribed --executors 9",
				   &cells, why),
			 0);
	assert_int_equal(cells.count, 4);
	cell_defaults(&plain);
	cell_command(&plain, want, sizeof(want));
	cell_command(&cells.at[0].cell, got, sizeof(got));
	assert_string_equal(got, want);
	assert_string_equal(cells.at[0].name, "");
	assert_false(cells.at[0].gaps || cells.at[0].placed || cells.at[0].seeded);
	assert_string_equal(cells.at[1].name, "far-4");
	assert_int_equal(cells.at[1].cell.crossing, CROSSING_PAGE);
	assert_int_equal(cells.at[1].cell.split, 4);
	assert_int_equal(cells.at[1].cell.seed, 7);
	assert_true(cells.at[1].seeded && !cells.at[1].placed);
	assert_string_equal(cells.at[2].name, "b");
	assert_true(cells.at[2].gaps && cells.at[2].placed);
	assert_int_equal(cells.at[2].cell.pair, PAIR_WORD);
	assert_int_equal(cells.at[2].cell.rest, 500);
	assert_int_equal(cells.at[3].cell.executors, 9);
	cells_free(&cells);
}

/* The line that a record has runs the same cell again. */
static void test_commands_are_lines(void **state)
{
	struct cells cells;
	struct cell cell;
	char command[512], again[512], why[CELLS_WHY];

	(void)state;
	cell_defaults(&cell);
	cell.place = 5;
	cell.swap = true;
	cell.seconds = 0.25;
	cell.provokers = 3;
	cell_command(&cell, command, sizeof(command));
	assert_int_equal(read_text(command, &cells, why), 0);
	cell_command(&cells.at[0].cell, again, sizeof(again));
	assert_string_equal(again, command);
	assert_true(cells.at[0].placed && cells.at[0].seeded);
	cells_free(&cells);
	gap_defaults(&cell);
	gap_command(&cell, command, sizeof(command));
	assert_int_equal(read_text(command, &cells, why), 0);
	gap_command(&cells.at[0].cell, again, sizeof(again));
	assert_string_equal(again, command);
	assert_true(cells.at[0].gaps);
	cells_free(&cells);
}

static void test_what_is_no_cell(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "stress --split 4", "line 1: it is no command line of tmax stress" },
		{ "\n# so far so good\ntmax info\n", "line 3: it is no command line" },
		{ "tmax stress --split 5", "line 1: the split must be 1 to 4" },
		{ "tmax stress --split", "no cell: --split" },
		{ "tmax stress --json", "describes no cell: --json" },
		{ "tmax stress extra", "unexpected argument 'extra'" },
		{ "tmax stress --crossing none", "crossing none has no split" },
		{ "tmax gaps --split 1", "the split must be 2 to 4" },
		{ "tmax gaps --protocol naive", "the protocol must be" },
		{ "A: tmax stress", "line 1: it is no command line" },
		{ "-a: tmax stress", "its name is not" },
		{ "abcdefghijklmnopqr: tmax stress", "its name is not one of 17 letters" },
	};
	struct cells cells;
	char why[CELLS_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_text(bad[i].text, &cells, why), -EINVAL);
		if (!strstr(why, bad[i].why))
			fail_msg("'%s' is refused with \"%s\"", bad[i].text, why);
		cells_free(&cells);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_commands_are_lines),
		cmocka_unit_test(test_what_is_no_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
