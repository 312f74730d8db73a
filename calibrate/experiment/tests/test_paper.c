/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/experiment/paper.h"
#include "calibrate/experiment/paper_run.h"
#include "calibrate/experiment/shard.h"

#define GRID (25 * 4 * 5 * 5)

static struct paper grid(void)
{
	struct paper paper;

	paper_defaults(&paper);
	return paper;
}

/* --- The grid ------------------------------------------------------------------ */

static void test_grid_is_the_papers(void **state)
{
	struct paper paper = grid();
	struct cell cell;
	char reason[160];

	(void)state;
	assert_int_equal(paper_count(&paper), GRID);
	for (size_t i = 0; i < GRID; i++) {
		paper_cell(&paper, i, &cell);
		assert_int_equal(cell_check(&cell, reason, sizeof(reason)), 0);
		assert_int_equal(cell.toggles, 50000000);
		assert_int_equal(cell.oracle, ORACLE_CRASH);
		assert_int_equal(cell.protocol, PROTOCOL_WAIT);
		assert_int_equal(cell.crossing, CROSSING_LINE);
		assert_int_equal(cell.pair, PAIR_CALL_NOP);
		assert_int_equal(cell.first_wait, cell.second_wait);
		assert_int_equal(cell.rest, 2000);
		assert_true(cell.stretch == 0 && cell.provokers == 0 && cell.loop == 0);
		assert_true(cell.seconds == 0 && cell.stop_tears == 0);
	}
}

static void test_every_variant_is_there_once(void **state)
{
	static bool seen[25][4][5][5];
	struct paper paper = grid();
	struct cell cell;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < GRID; i++) {
		bool *at;

		paper_cell(&paper, i, &cell);
		assert_int_equal(cell.first_wait % 100, 0);
		assert_true(cell.first_wait <= 2400 && cell.split >= 1 && cell.split <= 4);
		assert_true(cell.executors >= 2 && cell.executors <= 6);
		assert_true(paper_repetition(&paper, i) < 5);
		at = &seen[cell.first_wait / 100][cell.split - 1][cell.executors - 2]
			  [paper_repetition(&paper, i)];
		assert_false(*at);
		*at = true;
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

static void test_seeds_differ(void **state)
{
	struct paper paper = grid();
	uint64_t *seed = calloc(GRID, sizeof(*seed));
	struct cell cell;

	(void)state;
	assert_non_null(seed);
	for (size_t i = 0; i < GRID; i++) {
		paper_cell(&paper, i, &cell);
		seed[i] = cell.seed;
	}
	qsort(seed, GRID, sizeof(*seed), compare);
	for (size_t i = 1; i < GRID; i++)
		assert_true(seed[i] != seed[i - 1]);
	free(seed);
}

/* Else a resumed run would take short runs for long ones. */
static void test_other_grids_have_other_seeds(void **state)
{
	struct paper paper = grid(), other = paper;
	struct cell a, b;

	(void)state;
	paper_cell(&paper, 7, &a);
	other.toggles = 1000;
	paper_cell(&other, 7, &b);
	assert_true(a.seed != b.seed);
	other = paper;
	other.rest = 0;
	paper_cell(&other, 7, &b);
	assert_true(a.seed != b.seed);
	other = paper;
	other.seed = 2;
	paper_cell(&other, 7, &b);
	assert_true(a.seed != b.seed);
	other = paper;
	other.seat[0].placement = PLACEMENT_OVERSUBSCRIBED;
	paper_cell(&other, 7, &b);
	assert_true(a.seed != b.seed);
	paper_cell(&paper, 7, &b);
	assert_int_equal(a.seed, b.seed);
}

static void test_executor_lists(void **state)
{
	static const char *const bad[] = { "",	    "0",  "2-",	  "-2",	  "6-2",  "2,2",
					   "1-3,2", "2,", ",2",	  "2-65", "a",	  "2 ",
					   " 2",    "+2", "2--3", "1-33", "2-3-4" };
	struct paper paper = grid();

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(paper.seat[i].executors, 2 + i);
	assert_int_equal(paper_executors(&paper, "1,4-6,3"), 0);
	assert_int_equal(paper.seats, 5);
	assert_int_equal(paper.seat[0].executors, 1);
	assert_int_equal(paper.seat[3].executors, 6);
	assert_int_equal(paper.seat[4].executors, 3);
	assert_int_equal(paper_count(&paper), GRID);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(paper_executors(&paper, bad[i]), -EINVAL);
}

static void seat_on(const char *machine, struct paper *paper)
{
	hwloc_topology_t topology;
	char reason[160];
	int foreign;

	setenv("HWLOC_SYNTHETIC", machine, 1);
	assert_int_equal(topology_open(&topology, &foreign), 0);
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(paper_seat(paper, topology, reason, sizeof(reason)), 0);
	hwloc_topology_destroy(topology);
}

/* One CPU each as far as they reach. */
static void test_seats(void **state)
{
	struct paper paper = grid();

	(void)state;
	seat_on("pack:2 core:8 pu:1", &paper);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(paper.seat[i].placement, PLACEMENT_SPREAD);
	seat_on("pack:1 core:4 pu:1", &paper);
	assert_int_equal(paper.seat[0].placement, PLACEMENT_SPREAD);
	assert_int_equal(paper.seat[1].placement, PLACEMENT_SPREAD);
	for (unsigned i = 2; i < 5; i++)
		assert_int_equal(paper.seat[i].placement, PLACEMENT_OVERSUBSCRIBED);
}

/* --- Shards --------------------------------------------------------------------- */

static void test_shard_names(void **state)
{
	static const char *const bad[] = { "",	    "3",      "3/",
					   "/3",    "0/3",    "4/3",
					   "1/0",   "1/1001", "-1/3",
					   "1/+3",  " 1/3",   "1/3 ",
					   "1/3/5", "1.5/3",  "4294967297/4294967298" };
	struct shard shard;

	(void)state;
	assert_int_equal(shard_parse("3/16", &shard), 0);
	assert_int_equal(shard.number, 3);
	assert_int_equal(shard.of, 16);
	assert_int_equal(shard_parse("1/1", &shard), 0);
	assert_int_equal(shard_parse("1000/1000", &shard), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(shard_parse(bad[i], &shard), -EINVAL);
}

static void test_shards_part_the_grid(void **state)
{
	static size_t order[GRID];
	static unsigned taken[GRID];
	const unsigned cuts[] = { 1, 3, 16, 1000 };

	(void)state;
	assert_int_equal(shard_order(order, GRID, 1), 0);
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		memset(taken, 0, sizeof(taken));
		for (unsigned number = 1; number <= cuts[c]; number++) {
			const struct shard shard = { number, cuts[c] };
			size_t has = 0;

			for (size_t place = 0; place < GRID; place++)
				if (shard_has(&shard, place)) {
					taken[order[place]]++;
					has++;
				}
			assert_in_range(has, GRID / cuts[c], GRID / cuts[c] + 1);
		}
		for (size_t i = 0; i < GRID; i++)
			assert_int_equal(taken[i], 1);
	}
}

/* Shards are run on different days: they must agree on the order. */
static void test_order_is_the_seeds(void **state)
{
	static size_t a[GRID], b[GRID];
	size_t same = 0;

	(void)state;
	assert_int_equal(shard_order(a, GRID, 1), 0);
	assert_int_equal(shard_order(b, GRID, 1), 0);
	assert_memory_equal(a, b, sizeof(a));
	assert_int_equal(shard_order(b, GRID, 0), 0);
	for (size_t i = 0; i < GRID; i++)
		same += a[i] == b[i];
	assert_true(same < 20);
}

/* Every 16th cell of an unshuffled grid would have the same few waits. */
static void test_shards_are_alike(void **state)
{
	static size_t order[GRID];
	struct paper paper = grid();
	double sum[16] = { 0 };
	struct cell cell;

	(void)state;
	assert_int_equal(shard_order(order, GRID, 1), 0);
	for (size_t place = 0; place < GRID; place++) {
		paper_cell(&paper, order[place], &cell);
		sum[place % 16] += (double)cell.first_wait;
	}
	for (unsigned i = 0; i < 16; i++)
		assert_true(sum[i] > 0.8 * 1200 * GRID / 16 && sum[i] < 1.2 * 1200 * GRID / 16);
}

/* --- How long --------------------------------------------------------------------- */

static void test_seconds_follow_from_the_pace(void **state)
{
	struct paper paper = grid();
	struct paper_pace pace[5] = { 0 };
	size_t cells[GRID];
	double all;

	(void)state;
	for (size_t i = 0; i < GRID; i++)
		cells[i] = i;
	for (unsigned n = 0; n < 5; n++)
		pace[n] = (struct paper_pace){ .low = 1e-6, .high = 3e-6, .start = 0.5 };
	all = paper_seconds(&paper, pace, cells, GRID);
	/* In the middle of the waits a run takes 50e6 times 2 us. */
	assert_true(all > GRID * 100.5 * (1 - 1e-9) && all < GRID * 100.5 * (1 + 1e-9));
	assert_true(paper_seconds(&paper, pace, cells, 1) > 50.4999);
	assert_true(paper_seconds(&paper, pace, cells, 1) < 50.5001);
	assert_true(paper_seconds(&paper, pace, cells + 24, 1) > 150.4999);
	assert_true(paper_seconds(&paper, pace, cells + 24, 1) < 150.5001);
	/* Each N has its own pace. */
	pace[4].low = pace[4].high = 1e-3;
	assert_true(paper_seconds(&paper, pace, cells, GRID) > GRID / 5 * 5e4);
	assert_true(paper_seconds(&paper, pace, cells, 0) < 1e-12);
}

static void test_durations_are_readable(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(paper_duration(0.2, text, sizeof(text)), "1 s");
	assert_string_equal(paper_duration(89, text, sizeof(text)), "89 s");
	assert_string_equal(paper_duration(600, text, sizeof(text)), "10 min");
	assert_string_equal(paper_duration(7500, text, sizeof(text)), "2 h 5 min");
	assert_string_equal(paper_duration(3 * 86400 + 4 * 3600, text, sizeof(text)), "3 d 4 h");
}

/* --- What is there ------------------------------------------------------------------ */

struct journals {
	struct cell_record *records;
	struct journal_data data;
	struct paper paper;
};

static int make_journals(void **state)
{
	struct journals *j = calloc(1, sizeof(*j));

	if (!j)
		return -1;
	j->paper = grid();
	/* Small, so that the records are few. */
	j->paper.repetitions = 1;
	assert_int_equal(paper_executors(&j->paper, "2"), 0);
	j->records = calloc(3 * paper_count(&j->paper), sizeof(*j->records));
	j->data.records = j->records;
	*state = j;
	return j->records ? 0 : -1;
}

static int free_journals(void **state)
{
	struct journals *j = *state;

	free(j->records);
	free(j);
	return 0;
}

static struct cell_record *put(struct journals *j, size_t i, enum outcome outcome)
{
	struct cell_record *r = &j->records[j->data.count++];

	strcpy(r->stage, PAPER_STAGE);
	paper_cell(&j->paper, i, &r->cell);
	r->result.outcome = outcome;
	r->result.toggles = outcome == OUTCOME_DONE ? r->cell.toggles : 1000;
	return r;
}

static struct paper_there look(struct journals *j)
{
	struct paper_there there;

	assert_int_equal(paper_look(&j->paper, &j->data, NULL, &there), 0);
	return there;
}

static void test_shards_add_up(void **state)
{
	struct journals *j = *state;
	const struct shard first = { 1, 2 }, second = { 2, 2 };
	size_t order[100];
	bool have[100];
	struct paper_there there;

	assert_int_equal(paper_count(&j->paper), 100);
	assert_int_equal(look(j).missing, 100);
	assert_int_equal(shard_order(order, 100, 1), 0);
	for (size_t place = 0; place < 100; place++)
		if (shard_has(&second, place))
			put(j, order[place], place % 3 ? OUTCOME_DONE : OUTCOME_CRASH);
	assert_int_equal(paper_look(&j->paper, &j->data, have, &there), 0);
	assert_int_equal(there.missing, 50);
	for (size_t place = 0; place < 100; place++)
		assert_int_equal(have[order[place]], shard_has(&second, place));
	for (size_t place = 0; place < 100; place++)
		if (shard_has(&first, place))
			put(j, order[place], OUTCOME_DONE);
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
	put(j, 8, OUTCOME_DONE)->cell.second_wait++;
	put(j, 9, OUTCOME_DONE)->cell.seed++;
	strcpy(put(j, 9, OUTCOME_DONE)->stage, "campaign");
	j->records[j->data.count - 1].cell.seed++;
	assert_int_equal(look(j).missing, 99);
	assert_int_equal(look(j).doubled, 1);
	assert_int_equal(look(j).other, 6);
}

/* The journals may come from a machine with other CPUs than this one. */
static void test_seats_as_recorded(void **state)
{
	struct journals *j = *state;

	j->paper.seat[0].placement = PLACEMENT_OVERSUBSCRIBED;
	put(j, 3, OUTCOME_DONE);
	j->paper.seat[0].placement = PLACEMENT_SPREAD;
	assert_int_equal(look(j).missing, 100);
	paper_seat_as(&j->paper, &j->data);
	assert_int_equal(look(j).missing, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid_is_the_papers),
		cmocka_unit_test(test_every_variant_is_there_once),
		cmocka_unit_test(test_seeds_differ),
		cmocka_unit_test(test_other_grids_have_other_seeds),
		cmocka_unit_test(test_executor_lists),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_shard_names),
		cmocka_unit_test(test_shards_part_the_grid),
		cmocka_unit_test(test_order_is_the_seeds),
		cmocka_unit_test(test_shards_are_alike),
		cmocka_unit_test(test_seconds_follow_from_the_pace),
		cmocka_unit_test(test_durations_are_readable),
		cmocka_unit_test_setup_teardown(test_shards_add_up, make_journals, free_journals),
		cmocka_unit_test_setup_teardown(test_no_answer_is_missing, make_journals,
						free_journals),
		cmocka_unit_test_setup_teardown(test_doubles_and_strangers, make_journals,
						free_journals),
		cmocka_unit_test_setup_teardown(test_seats_as_recorded, make_journals,
						free_journals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
