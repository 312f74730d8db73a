/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/experiment/tail_plan.h"
#include "stress/run/gap.h"

static const struct seat seat = { PLACEMENT_SAME_L3, 1 };

static unsigned find(const struct tail_plan *plan, const char *name)
{
	unsigned i = 0;

	while (i < plan->arms && strcmp(plan->arm[i].name, name) != 0)
		i++;
	return i;
}

static unsigned weights(const struct tail_plan *plan)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < plan->arms; i++)
		sum += plan->arm[i].weight;
	return sum;
}

/* --- Arms ------------------------------------------------------------------------ */

static void test_arms_can_be_run(void **state)
{
	struct tail_plan plan;
	struct cell cell;
	char reason[160];

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	for (unsigned i = 0; i < plan.arms; i++) {
		tail_cell(&plan, i, &seat, 1, i, &cell);
		assert_int_equal(plan.arm[i].gaps ? gap_check(&cell, reason, sizeof(reason))
						  : cell_check(&cell, reason, sizeof(reason)),
				 0);
		assert_int_equal(cell.placement, PLACEMENT_SAME_L3);
		assert_int_equal(cell.executors, 1);
		assert_int_equal(cell.oracle, ORACLE_COUNT);
		assert_int_equal(cell.crossing, plan.arm[i].crossing);
		assert_int_equal(cell.protocol, plan.arm[i].protocol);
		assert_int_equal(cell.provokers, plan.arm[i].provokers);
		assert_int_equal(cell.stretch, plan.arm[i].stretch);
		assert_true(cell.seconds <= TAIL_SLICE);
		assert_int_equal(cell.stop_tears, 0);
		assert_int_equal(find(&plan, plan.arm[i].name), i);
	}
}

static void test_every_hypothesis_has_its_arm(void **state)
{
	static const struct tail_arm wanted[] = {
		{ .name = "line-1000", .crossing = CROSSING_LINE, .wait = 1000 },
		{ .name = "line-2000", .crossing = CROSSING_LINE, .wait = 2000 },
		{ .name = "line-4000", .crossing = CROSSING_LINE, .wait = 4000 },
		{ .name = "stretch-1000", .crossing = CROSSING_LINE, .wait = 1000, .stretch = 4 },
		{ .name = "stretch-only", .crossing = CROSSING_LINE, .stretch = 4 },
		{ .name = "page-stretch", .crossing = CROSSING_PAGE, .stretch = 4 },
		{ .name = "page-2000", .crossing = CROSSING_PAGE, .wait = 2000 },
		{ .name = "line-400", .crossing = CROSSING_LINE, .wait = 400 },
		{ .name = "touch-400",
		  .crossing = CROSSING_LINE,
		  .protocol = PROTOCOL_TOUCH,
		  .wait = 400 },
		{ .name = "again-400",
		  .crossing = CROSSING_LINE,
		  .protocol = PROTOCOL_AGAIN,
		  .wait = 400 },
		{ .name = "inside-2000", .crossing = CROSSING_32, .wait = 2000 },
		{ .name = "membarrier",
		  .crossing = CROSSING_LINE,
		  .protocol = PROTOCOL_MEMBARRIER,
		  .wait = 2000 },
		{ .name = "cold-back",
		  .crossing = CROSSING_LINE,
		  .wait = 2000,
		  .provokers = 1u << PROVOKER_COLD_BACK },
		{ .name = "cold-front",
		  .crossing = CROSSING_LINE,
		  .wait = 2000,
		  .provokers = 1u << PROVOKER_COLD_FRONT },
		{ .name = "shootdown",
		  .crossing = CROSSING_LINE,
		  .wait = 2000,
		  .provokers = 1u << PROVOKER_SHOOTDOWN },
		{ .name = "load",
		  .crossing = CROSSING_LINE,
		  .wait = 2000,
		  .provokers = 1u << PROVOKER_LOAD },
	};
	struct tail_plan plan;

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		unsigned arm = find(&plan, wanted[i].name);
		const struct tail_arm *a = &plan.arm[arm];

		assert_true(arm < plan.arms);
		assert_int_equal(a->crossing, wanted[i].crossing);
		assert_int_equal(a->protocol, wanted[i].protocol);
		assert_int_equal(a->wait, wanted[i].wait);
		assert_int_equal(a->stretch, wanted[i].stretch);
		assert_int_equal(a->provokers, wanted[i].provokers);
		assert_false(a->gaps);
	}
	assert_true(plan.arm[find(&plan, "gap-line")].gaps);
	assert_true(plan.arm[find(&plan, "gap-page")].gaps);
	assert_true(plan.arm[find(&plan, "gap-inside")].gaps);
}

/* It would spin on the executor's CPU for ever. */
static void test_no_load_with_fifo(void **state)
{
	struct tail_plan plain, fifo;
	char stage[32];

	(void)state;
	tail_plan_make(&plain, TAIL_BUDGET, false);
	tail_plan_make(&fifo, TAIL_BUDGET, true);
	assert_true(find(&plain, "load") < plain.arms);
	assert_int_equal(fifo.arms, plain.arms - 1);
	assert_int_equal(find(&fifo, "load"), fifo.arms);
	assert_string_equal(tail_stage(&plain, 0, stage, sizeof(stage)), "tail-line-1000");
	assert_string_equal(tail_stage(&fifo, 0, stage, sizeof(stage)), "tail-fifo-line-1000");
}

static void test_cells_fit_the_budget(void **state)
{
	struct tail_plan plan;

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	assert_true(plan.slice == TAIL_SLICE);
	tail_plan_make(&plan, 10, false);
	assert_true(plan.slice * weights(&plan) < 10.0001);
	assert_true(plan.slice * weights(&plan) > 9.9999);
	tail_plan_make(&plan, 0.001, false);
	assert_true(plan.slice >= 0.01);
}

/* --- Turns ------------------------------------------------------------------------- */

/* At any time no arm is ahead of its share by more than one cell. */
static void test_arms_take_turns(void **state)
{
	uint64_t done[TAIL_ARMS_MAX] = { 0 };
	struct tail_plan plan;
	unsigned all, turns = 0;

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	all = weights(&plan);
	for (unsigned pass = 1; pass <= 3; pass++) {
		for (; turns < pass * all; turns++) {
			done[tail_next(&plan, done)]++;
			for (unsigned i = 0; i < plan.arms; i++)
				assert_true((double)done[i] <=
					    (double)(turns + 1) * plan.arm[i].weight / all + 1.5);
		}
		for (unsigned i = 0; i < plan.arms; i++)
			assert_int_equal(done[i], pass * plan.arm[i].weight);
	}
}

static void test_first_each_arm_once(void **state)
{
	uint64_t done[TAIL_ARMS_MAX] = { 0 };
	struct tail_plan plan;

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	for (unsigned i = 0; i < plan.arms; i++) {
		assert_int_equal(tail_next(&plan, done), i);
		done[i]++;
	}
}

static void test_turns_have_seeds_of_their_own(void **state)
{
	struct tail_plan plan, fifo;
	struct cell a, b;

	(void)state;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	tail_plan_make(&fifo, TAIL_BUDGET, true);
	tail_cell(&plan, 1, &seat, 5, 0, &a);
	for (unsigned turn = 1; turn < 100; turn++) {
		tail_cell(&plan, 1, &seat, 5, turn, &b);
		assert_true(a.seed != b.seed);
	}
	tail_cell(&plan, 1, &seat, 5, 0, &b);
	assert_int_equal(a.seed, b.seed);
	tail_cell(&plan, 1, &seat, 6, 0, &b);
	assert_true(a.seed != b.seed);
	tail_cell(&fifo, 1, &seat, 5, 0, &b);
	assert_true(a.seed != b.seed);
}

/* --- Sums --------------------------------------------------------------------------- */

static struct cell_record record(const char *stage, uint64_t toggles, uint64_t distance,
				 uint64_t latency)
{
	struct cell_record r = { 0 };

	strcpy(r.stage, stage);
	r.result.toggles = toggles;
	r.result.latency.median = latency;
	r.result.witness.offset_error = distance;
	return r;
}

static void test_sums(void **state)
{
	struct cell_record r[] = {
		record("tail-line-1000", 1000000, 299, 399),
		record("tail-line-1000", 2000000, 300, 400),
		record("tail-line-1000", 4000000, 150, 150),
		record("tail-line-1000", 8000000, 0, 0),
		record("tail-line-2000", 16000000, 900, 900),
		record("tail-fifo-line-1000", 1, 1, 1),
		record("campaign", 32000000, 1, 1),
	};
	const size_t count = sizeof(r) / sizeof(r[0]);
	struct tail_plan plan;
	struct tail_sum sum;

	(void)state;
	r[0].result.tears[TEAR_OLD_FRONT] = 1;
	r[1].result.tears[TEAR_NEW_FRONT] = 2;
	r[2].result.tears[TEAR_OTHER] = 4;
	/* The crash has its tear already. */
	r[3].result.outcome = OUTCOME_CRASH;
	r[3].result.tears[TEAR_OTHER] = 1;
	r[4].result.tears[TEAR_OLD_FRONT] = 64;
	tail_plan_make(&plan, TAIL_BUDGET, false);
	tail_sum(&sum, &plan, 0, TAIL_ALL, r, count);
	assert_int_equal(sum.cells, 4);
	assert_int_equal(sum.toggles, 15000000);
	assert_int_equal(sum.tears[TEAR_OLD_FRONT], 1);
	assert_int_equal(sum.tears[TEAR_NEW_FRONT], 2);
	assert_int_equal(sum.tears[TEAR_OTHER], 5);
	assert_int_equal(sum.all, 8);
	assert_int_equal(sum.latency[0], 150);
	assert_int_equal(sum.latency[1], 400);
	/* Poisson, 8 seen: 3.45 to 15.76. */
	assert_true(sum.band.lower > 3.4 / 15e6 && sum.band.lower < 3.5 / 15e6);
	assert_true(sum.band.upper > 15.7 / 15e6 && sum.band.upper < 15.8 / 15e6);

	tail_sum(&sum, &plan, 0, TAIL_NEAR, r, count);
	assert_int_equal(sum.cells, 2);
	assert_int_equal(sum.all, 5);
	tail_sum(&sum, &plan, 0, TAIL_DISTANT, r, count);
	assert_int_equal(sum.cells, 1);
	assert_int_equal(sum.all, 2);
	tail_sum(&sum, &plan, find(&plan, "page-2000"), TAIL_ALL, r, count);
	assert_int_equal(sum.cells, 0);
	assert_true(sum.band.upper == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arms_can_be_run),
		cmocka_unit_test(test_every_hypothesis_has_its_arm),
		cmocka_unit_test(test_no_load_with_fifo),
		cmocka_unit_test(test_cells_fit_the_budget),
		cmocka_unit_test(test_arms_take_turns),
		cmocka_unit_test(test_first_each_arm_once),
		cmocka_unit_test(test_turns_have_seeds_of_their_own),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
