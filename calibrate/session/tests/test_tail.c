/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/tests/experiment_place.h"
#include "stress/run/gap.h"

static struct experiment tail(void)
{
	return list_as_shipped("tail.cells", 10);
}

/* The first line of that name, NULL if there is none. */
static const struct listed *find(const struct experiment *e, const char *name)
{
	for (size_t i = 0; i < e->cells.count; i++)
		if (strcmp(e->cells.at[i].name, name) == 0)
			return &e->cells.at[i];
	return NULL;
}

/* --- Arms ------------------------------------------------------------------------ */

static void test_arms_can_be_run(void **state)
{
	struct experiment e = tail();
	char reason[160];

	(void)state;
	for (size_t i = 0; i < e.cells.count; i++) {
		const struct listed *l = &e.cells.at[i];
		struct cell cell;

		experiment_cell(&e, i, &cell);
		assert_int_equal(l->gaps ? gap_check(&cell, reason, sizeof(reason))
					 : cell_check(&cell, reason, sizeof(reason)),
				 0);
		assert_true(l->name[0]);
		assert_int_equal(cell.placement, PLACEMENT_SPREAD);
		assert_int_equal(cell.executors, 1);
		assert_int_equal(cell.oracle, ORACLE_COUNT);
		assert_int_equal(cell.waits.first, cell.waits.second);
		assert_int_equal(cell.split, l->gaps ? 3 : 4);
		assert_int_equal(cell.pair, l->gaps ? PAIR_WORD : PAIR_CALL_CALL);
		assert_int_equal(cell.toggles, CELL_TOGGLES_MAX);
		assert_int_equal(cell.stop_tears, 0);
		assert_true(cell.seconds > 1.999 && cell.seconds < 2.001);
	}
	cells_free(&e.cells);
}

static void test_every_hypothesis_has_its_arm(void **state)
{
	static const struct {
		const char *name;
		struct cell cell;
	} wanted[] = {
		{ "line-1000", { .crossing = CROSSING_LINE, .waits.first = 1000 } },
		{ "line-2000", { .crossing = CROSSING_LINE, .waits.first = 2000 } },
		{ "line-4000", { .crossing = CROSSING_LINE, .waits.first = 4000 } },
		{ "stretch-1000",
		  { .crossing = CROSSING_LINE, .waits.first = 1000, .waits.stretch = 4 } },
		{ "stretch-only", { .crossing = CROSSING_LINE, .waits.stretch = 4 } },
		{ "page-stretch", { .crossing = CROSSING_PAGE, .waits.stretch = 4 } },
		{ "page-2000", { .crossing = CROSSING_PAGE, .waits.first = 2000 } },
		{ "inside-2000", { .crossing = CROSSING_32, .waits.first = 2000 } },
		{ "membarrier",
		  { .crossing = CROSSING_LINE,
		    .protocol = PROTOCOL_MEMBARRIER,
		    .waits.first = 2000 } },
		{ "cold-back",
		  { .crossing = CROSSING_LINE,
		    .waits.first = 2000,
		    .provokers = 1u << PROVOKER_COLD_BACK } },
		{ "cold-front",
		  { .crossing = CROSSING_LINE,
		    .waits.first = 2000,
		    .provokers = 1u << PROVOKER_COLD_FRONT } },
		{ "shootdown",
		  { .crossing = CROSSING_LINE,
		    .waits.first = 2000,
		    .provokers = 1u << PROVOKER_SHOOTDOWN } },
		{ "load",
		  { .crossing = CROSSING_LINE,
		    .waits.first = 2000,
		    .provokers = 1u << PROVOKER_LOAD } },
	};
	struct experiment e = tail();

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct listed *l = find(&e, wanted[i].name);

		assert_non_null(l);
		assert_int_equal(l->cell.crossing, wanted[i].cell.crossing);
		assert_int_equal(l->cell.protocol, wanted[i].cell.protocol);
		assert_int_equal(l->cell.waits.first, wanted[i].cell.waits.first);
		assert_int_equal(l->cell.waits.stretch, wanted[i].cell.waits.stretch);
		assert_int_equal(l->cell.provokers, wanted[i].cell.provokers);
		assert_false(l->gaps);
		/* A toggle of it is as much slower. */
		assert_int_equal(l->copies, strcmp(l->name, "membarrier") == 0 ? 8 : 1);
	}
	assert_true(find(&e, "gap-line")->gaps);
	assert_true(find(&e, "gap-page")->gaps);
	assert_true(find(&e, "gap-inside")->gaps);
	cells_free(&e.cells);
}

static void test_stages(void **state)
{
	struct experiment plain = tail(), own = { .list = "/a.b/My list-of_cells.txt" };
	const struct listed line = { .name = "line-1000" }, none = { .name = "" };
	char stage[32];

	(void)state;
	assert_string_equal(experiment_stage(&plain, &line, stage), "tail-line-1000");
	assert_string_equal(experiment_stage(&plain, &none, stage), "tail");
	cells_free(&plain.cells);
	experiment_name(&own);
	assert_string_equal(own.name, "list");
	own.list = "here/my cells.txt";
	experiment_name(&own);
	assert_string_equal(own.name, "my-cells");
}

/* --- Turns ------------------------------------------------------------------------- */

/* First each of them once; and at no time is one ahead of its share by more than a round. */
static void test_arms_take_turns(void **state)
{
	struct experiment e = tail();
	size_t all = e.cells.count, arms = all - 7;

	(void)state;
	for (size_t i = 0; i < arms; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(e.cells.at[i].name, e.cells.at[k].name);
	for (const struct listed *l = e.cells.at; l < e.cells.at + all; l++) {
		double done = 0;

		for (size_t i = 0; i < 10 * all; i++) {
			done += strcmp(experiment_line(&e, i)->name, l->name) == 0;
			assert_true(done <=
				    (double)((i + 1) * l->copies) / (double)all + l->copies);
			if ((i + 1) % all == 0)
				assert_true((size_t)(done + 0.5) == (i + 1) / all * l->copies);
		}
	}
	cells_free(&e.cells);
}

static void test_turns_have_seeds_of_their_own(void **state)
{
	struct experiment e = tail();
	const struct listed *membarrier = find(&e, "membarrier");
	uint64_t seen[80];
	unsigned count = 0;
	struct cell a, b;

	(void)state;
	for (size_t i = 0; count < 80; i++) {
		if (strcmp(experiment_line(&e, i)->name, membarrier->name) != 0)
			continue;
		experiment_cell(&e, i, &a);
		for (unsigned k = 0; k < count; k++)
			assert_true(seen[k] != a.seed);
		seen[count++] = a.seed;
	}
	experiment_cell(&e, 1, &a);
	experiment_cell(&e, 1, &b);
	assert_int_equal(a.seed, b.seed);
	e.seed = 6;
	experiment_cell(&e, 1, &b);
	assert_true(a.seed != b.seed);
	cells_free(&e.cells);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arms_can_be_run),
		cmocka_unit_test(test_every_hypothesis_has_its_arm),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_arms_take_turns),
		cmocka_unit_test(test_turns_have_seeds_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
