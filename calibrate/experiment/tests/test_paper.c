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
	struct experiment e = paper_as_shipped();

	experiment_make(&e, NULL, 0);
	return e;
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
	assert_int_equal(experiment_count(&e), GRID);
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

static void test_executor_lists(void **state)
{
	static const char *const bad[] = { "",	   "0", "2-", "-2", "6-2", "2,",   ",2",
					   "2-65", "a", "2 ", " 2", "+2",  "2--3", "2-3-4" };
	const struct option_row row = { .name = "executors" };
	char why[OPTION_WHY];
	struct cpus executors;
	struct experiment e = paper_as_shipped();
	unsigned count[65] = { 0 };

	(void)state;
	assert_true(option_executors(&row, "1-64", &executors, why));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(option_executors(&row, bad[i], &executors, why));
	/* Each as often as the others, and next to each other. */
	experiment_make(&e, "1,3-5", 0);
	assert_int_equal(e.cells.count, 400);
	for (size_t i = 0; i < 400; i++)
		count[e.cells.at[i].cell.executors]++;
	assert_true(count[1] == 100 && count[3] == 100 && count[4] == 100 && count[5] == 100);
	for (size_t i = 1; i < 100; i++)
		assert_true(e.cells.at[i].cell.executors != e.cells.at[i - 1].cell.executors);
	cells_free(&e.cells);
}

static enum placement seat_on(const char *machine, const char *executors)
{
	struct experiment e = paper_as_shipped();
	hwloc_topology_t topology;
	enum placement placement;
	int foreign;

	setenv("HWLOC_SYNTHETIC", machine, 1);
	assert_int_equal(topology_open(&topology, &foreign), 0);
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(cpus_parse(&e.executors, executors, strlen(executors)), 0);
	assert_int_equal(experiment_prepare(&e, topology, NULL), EXIT_PASS);
	placement = e.cells.at[0].cell.placement;
	for (size_t i = 0; i < e.cells.count; i++)
		assert_int_equal(e.cells.at[i].cell.placement, placement);
	cells_free(&e.cells);
	hwloc_topology_destroy(topology);
	return placement;
}

/* One CPU each as far as they reach. */
static void test_seats(void **state)
{
	(void)state;
	assert_int_equal(seat_on("pack:2 core:8 pu:1", "2-6"), PLACEMENT_SPREAD);
	assert_int_equal(seat_on("pack:1 core:4 pu:1", "2-3"), PLACEMENT_SPREAD);
	assert_int_equal(seat_on("pack:1 core:4 pu:1", "4-6"), PLACEMENT_OVERSUBSCRIBED);
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

/* --- How long --------------------------------------------------------------------- */

static void test_seconds_follow_from_the_pace(void **state)
{
	const struct pace pace = { .wait = { 0, 2400 }, .toggle = { 1e-6, 3e-6 }, .start = 0.5 };
	const struct pace flat = { .wait = { 700, 700 }, .toggle = { 1e-6, 1e-6 } };
	struct cell cell = { .toggles = 50000000 };

	(void)state;
	assert_true(fabs(pace_seconds(&pace, &cell) - 50.5) < 1e-4);
	cell.waits.first = 2400;
	assert_true(fabs(pace_seconds(&pace, &cell) - 150.5) < 1e-4);
	cell.waits.first = 1200;
	assert_true(fabs(pace_seconds(&pace, &cell) - 100.5) < 1e-4);
	cell.waits.first = 700;
	assert_true(fabs(pace_seconds(&flat, &cell) - 50) < 1e-4);
}

static void test_durations_are_readable(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(tell_duration(0.2, text, sizeof(text)), "1 s");
	assert_string_equal(tell_duration(89, text, sizeof(text)), "89 s");
	assert_string_equal(tell_duration(600, text, sizeof(text)), "10 min");
	assert_string_equal(tell_duration(7500, text, sizeof(text)), "2 h 5 min");
	assert_string_equal(tell_duration(3 * 86400 + 4 * 3600, text, sizeof(text)), "3 d 4 h");
}

/* --- What is there ------------------------------------------------------------------ */

struct journals {
	struct cell_record *records;
	struct journal_data data;
	struct experiment e;
};

static int make_journals(void **state)
{
	struct journals *j = calloc(1, sizeof(*j));

	if (!j)
		return -1;
	j->e = paper_as_shipped();
	/* Small, so that the records are few. */
	j->e.repetitions = 1;
	experiment_make(&j->e, "2", 0);
	j->records = calloc(3 * experiment_count(&j->e), sizeof(*j->records));
	j->data.records = j->records;
	*state = j;
	return j->records ? 0 : -1;
}

static int free_journals(void **state)
{
	struct journals *j = *state;

	cells_free(&j->e.cells);
	free(j->records);
	free(j);
	return 0;
}

static struct cell_record *put(struct journals *j, size_t i, enum outcome outcome)
{
	struct cell_record *r = &j->records[j->data.count++];

	strcpy(r->stage, "paper");
	experiment_cell(&j->e, i, &r->cell);
	r->result.outcome = outcome;
	r->result.toggles = outcome == OUTCOME_DONE ? r->cell.toggles : 1000;
	return r;
}

static struct there look(struct journals *j)
{
	struct there there;

	assert_int_equal(experiment_look(&j->e, &j->data, NULL, &there), 0);
	return there;
}

static void test_shards_add_up(void **state)
{
	struct journals *j = *state;
	bool have[100];
	struct there there;

	assert_int_equal(experiment_count(&j->e), 100);
	assert_int_equal(look(j).missing, 100);
	for (size_t i = 1; i < 100; i += 2)
		put(j, i, i % 3 ? OUTCOME_DONE : OUTCOME_CRASH);
	assert_int_equal(experiment_look(&j->e, &j->data, have, &there), 0);
	assert_int_equal(there.missing, 50);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(have[i], i % 2);
	for (size_t i = 0; i < 100; i += 2)
		put(j, i, OUTCOME_DONE);
	there = look(j);
	assert_int_equal(there.missing, 0);
	assert_int_equal(there.doubled, 0);
	assert_int_equal(there.other, 0);
}

static void test_no_answer_is_missing(void **state)
{
	static const enum outcome none[] = { OUTCOME_KILLED, OUTCOME_HANG, OUTCOME_INTERRUPTED,
					     OUTCOME_ERROR };
	struct journals *j = *state;

	for (size_t i = 0; i < 4; i++)
		put(j, i, none[i]);
	/* Not the whole run. */
	put(j, 4, OUTCOME_DONE)->result.toggles--;
	assert_int_equal(look(j).missing, 100);
	put(j, 0, OUTCOME_CRASH);
	assert_int_equal(look(j).missing, 99);
}

static void test_doubles_and_strangers(void **state)
{
	struct journals *j = *state;

	put(j, 3, OUTCOME_DONE);
	put(j, 3, OUTCOME_DONE);
	put(j, 4, OUTCOME_DONE)->cell.toggles /= 2;
	put(j, 5, OUTCOME_DONE)->cell.rest = 0;
	put(j, 6, OUTCOME_DONE)->cell.provokers = 1;
	put(j, 7, OUTCOME_DONE)->cell.pair = PAIR_JMP_NOP;
	put(j, 8, OUTCOME_DONE)->cell.waits.second++;
	put(j, 9, OUTCOME_DONE)->cell.seed++;
	strcpy(put(j, 9, OUTCOME_DONE)->stage, "campaign");
	j->records[j->data.count - 1].cell.seed++;
	assert_int_equal(look(j).missing, 99);
	assert_int_equal(look(j).doubled, 1);
	assert_int_equal(look(j).other, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid_is_the_papers),
		cmocka_unit_test(test_seeds_differ),
		cmocka_unit_test(test_other_grids_have_other_seeds),
		cmocka_unit_test(test_executor_lists),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_shard_names),
		cmocka_unit_test(test_shards_are_alike),
		cmocka_unit_test(test_seconds_follow_from_the_pace),
		cmocka_unit_test(test_durations_are_readable),
		cmocka_unit_test_setup_teardown(test_shards_add_up, make_journals, free_journals),
		cmocka_unit_test_setup_teardown(test_no_answer_is_missing, make_journals,
						free_journals),
		cmocka_unit_test_setup_teardown(test_doubles_and_strangers, make_journals,
						free_journals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
