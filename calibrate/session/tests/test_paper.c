/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/tests/experiment_place.h"

#define GRID (25 * 4 * 5 * 5)

static struct experiment grid(void)
{
	return list_as_shipped("paper.cells", 5);
}

/* --- The grid ------------------------------------------------------------------ */

static void test_grid_is_the_papers(void **state)
{
	static bool seen[25][4][5][5];
	struct experiment e = grid();
	struct cell cell;
	char reason[160];

	(void)state;
	memset(seen, 0, sizeof(seen));
	assert_int_equal(e.cells.count * e.repetitions, GRID);
	for (size_t i = 0; i < GRID; i++) {
		unsigned run = experiment_cell(&e, i, &cell);
		bool *at;

		assert_int_equal(cell_check(&cell, reason, sizeof(reason)), 0);
		assert_int_equal(cell.toggles, 50000000);
		assert_int_equal(cell.oracle, ORACLE_CRASH);
		assert_int_equal(cell.protocol, PROTOCOL_WAIT);
		assert_int_equal(cell.crossing, CROSSING_LINE);
		assert_int_equal(cell.pair, PAIR_CALL_NOP);
		assert_int_equal(cell.waits.first, cell.waits.second);
		assert_int_equal(cell.rest, 2000);
		assert_true(cell.waits.stretch == 0 && cell.provokers == 0 && cell.loop == 0);
		assert_true(cell.seconds == 0 && cell.stop_tears == 0);
		/* Each of them once. */
		assert_int_equal(cell.waits.first % 100, 0);
		assert_true(cell.waits.first <= 2400 && cell.split >= 1 && cell.split <= 4);
		assert_true(cell.executors >= 2 && cell.executors <= 6);
		assert_true(run < 5);
		at = &seen[cell.waits.first / 100][cell.split - 1][cell.executors - 2][run];
		assert_false(*at);
		*at = true;
	}
	cells_free(&e.cells);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

static void test_seeds_differ(void **state)
{
	struct experiment e = grid();
	uint64_t *seed = calloc(GRID, sizeof(*seed));
	struct cell cell;

	(void)state;
	assert_non_null(seed);
	for (size_t i = 0; i < GRID; i++) {
		experiment_cell(&e, i, &cell);
		seed[i] = cell.seed;
	}
	qsort(seed, GRID, sizeof(*seed), compare);
	for (size_t i = 1; i < GRID; i++)
		assert_true(seed[i] != seed[i - 1]);
	free(seed);
	cells_free(&e.cells);
}

/* Else a resumed run would take short runs for long ones. */
static void test_other_grids_have_other_seeds(void **state)
{
	struct experiment e = grid();
	struct cell a, b, *line = &e.cells.at[7].cell;

	(void)state;
	experiment_cell(&e, 7, &a);
	line->toggles = 1000;
	experiment_cell(&e, 7, &b);
	assert_true(a.seed != b.seed);
	line->toggles = a.toggles;
	line->rest = 0;
	experiment_cell(&e, 7, &b);
	assert_true(a.seed != b.seed);
	line->rest = a.rest;
	e.seed = 2;
	experiment_cell(&e, 7, &b);
	assert_true(a.seed != b.seed);
	e.seed = 1;
	line->placement = PLACEMENT_OVERSUBSCRIBED;
	experiment_cell(&e, 7, &b);
	assert_true(a.seed != b.seed);
	line->placement = a.placement;
	experiment_cell(&e, 7, &b);
	assert_int_equal(a.seed, b.seed);
	cells_free(&e.cells);
}

/* One CPU each as far as they reach. */
static void test_seats(void **state)
{
	static const struct {
		const char *machine;
		unsigned spread; /* executors at most */
	} machines[] = { { "pack:2 core:8 pu:1", 6 }, { "pack:1 core:4 pu:1", 3 } };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct experiment e = { .list = "paper.cells", .repetitions = 1 };
		hwloc_topology_t topology;
		int foreign;

		setenv("HWLOC_SYNTHETIC", machines[k].machine, 1);
		assert_int_equal(topology_open(&topology, &foreign), 0);
		unsetenv("HWLOC_SYNTHETIC");
		assert_int_equal(experiment_prepare(&e, topology), EXIT_PASS);
		for (size_t i = 0; i < e.cells.count; i++)
			assert_int_equal(e.cells.at[i].cell.placement,
					 e.cells.at[i].cell.executors <= machines[k].spread
						 ? PLACEMENT_SPREAD
						 : PLACEMENT_OVERSUBSCRIBED);
		cells_free(&e.cells);
		hwloc_topology_destroy(topology);
	}
}

/* --- Shards --------------------------------------------------------------------- */

static void test_shard_names(void **state)
{
	static const char *const bad[] = { "",	    "3",      "3/",
					   "/3",    "0/3",    "4/3",
					   "1/0",   "1/1001", "-1/3",
					   "1/+3",  " 1/3",   "1/3 ",
					   "1/3/5", "1.5/3",  "4294967297/4294967298" };
	const struct option_row row = { .name = "shard" };
	char why[OPTION_WHY];
	struct shard shard;

	(void)state;
	assert_true(option_shard(&row, "3/16", &shard, why));
	assert_int_equal(shard.number, 3);
	assert_int_equal(shard.of, 16);
	assert_true(option_shard(&row, "1/1", &shard, why));
	assert_true(option_shard(&row, "1000/1000", &shard, why));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(option_shard(&row, bad[i], &shard, why));
}

/* A part of every shard has its share of what is slow, and the runs of a cell are spread. */
static void test_shards_are_alike(void **state)
{
	const unsigned cuts[] = { 2, 5, 16, 25, 100 };
	struct experiment e = grid();
	struct cell cell;

	(void)state;
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		unsigned of = cuts[c];

		for (unsigned shard = 0; shard < of; shard++) {
			double sum = 0, n = 0;

			for (size_t i = shard; i < GRID; i += of) {
				experiment_cell(&e, i, &cell);
				sum += (double)cell.waits.first;
				n++;
			}
			/* Five times the error of a mean of waits from 0 to 2400. */
			assert_true(fabs(sum / n - 1200) < 5 * 721 / sqrt(n));
		}
	}
	for (size_t i = 0; i < GRID / 5; i++) {
		struct cell next;

		experiment_cell(&e, i, &cell);
		experiment_cell(&e, GRID / 5 + (i ? i - 1 : GRID / 5 - 1), &next);
		assert_int_equal(next.waits.first, cell.waits.first);
		assert_int_equal(next.executors, cell.executors);
		assert_true(next.seed != cell.seed);
	}
	cells_free(&e.cells);
}

/* --- What is an answer --------------------------------------------------------------- */

static void test_no_answer_is_missing(void **state)
{
	static const enum outcome none[] = { OUTCOME_KILLED, OUTCOME_HANG, OUTCOME_INTERRUPTED,
					     OUTCOME_ERROR };
	struct cell_record r = { .cell = { .toggles = 1000 }, .result = { .toggles = 1000 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		r.result.outcome = none[i];
		assert_false(has_answer(&r));
	}
	r.result.outcome = OUTCOME_DONE;
	assert_true(has_answer(&r));
	/* Not the whole run. */
	r.result.toggles--;
	assert_false(has_answer(&r));
	r.result.outcome = OUTCOME_CRASH;
	assert_true(has_answer(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid_is_the_papers),
		cmocka_unit_test(test_seeds_differ),
		cmocka_unit_test(test_other_grids_have_other_seeds),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_shard_names),
		cmocka_unit_test(test_shards_are_alike),
		cmocka_unit_test(test_no_answer_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
