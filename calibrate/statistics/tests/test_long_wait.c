/* SPDX-License-Identifier: MIT */
/* Long waits, by gaps of fetches: what is counted, and what that supports. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"
#include "calibrate/tests/sums_sample.h"
#include "stress/run/gap.h"

#define STORES 50000000

static struct gap_result *result;

static int new_result(void **state)
{
	(void)state;
	result = calloc(1, sizeof(*result));
	if (result)
		result->stores = STORES;
	return !result;
}

static int drop_result(void **state)
{
	(void)state;
	free(result);
	return 0;
}

static void add_gaps(uint64_t ticks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		gap_tally_add(&result->kind[i % GAP_KINDS], ticks, 0);
}

static struct cell gap_cell(const struct seat *seat, enum crossing crossing, unsigned provokers)
{
	struct cell cell;

	gap_defaults(&cell);
	cell.placement = seat->placement;
	cell.executors = seat->executors;
	cell.crossing = crossing;
	cell.provokers = provokers;
	cell.seconds = result->seconds;
	return cell;
}

static uint64_t gaps_at(const struct sums *sums, const struct cell *cell, uint64_t wait)
{
	struct sum like = {
		.kind = SUM_GAP,
		.rung = { wait, wait, 0 },
		.crossing = cell->crossing,
		.placement = cell->placement,
		.executors = cell->executors,
	};
	const struct sum *sum = sums_find(sums, &like);

	return sum ? sum->count.tears : UINT64_MAX;
}

static void gaps_are_counted_by_their_length(void **state)
{
	struct plan plan = sample_plan(1);
	struct cell cell = gap_cell(&plan.seat[0], CROSSING_LINE, 0);
	struct sums sums = { 0 };

	(void)state;
	add_gaps(150, 7);
	add_gaps(900, 5);
	/* Seen so long, it may have been a third longer. */
	add_gaps(25000, 3);
	add_gaps(2000000, 1);
	assert_int_equal(long_add_gaps(&sums, &cell, result), 0);
	assert_int_equal(gaps_at(&sums, &cell, 200), 9);
	assert_int_equal(gaps_at(&sums, &cell, 800), 9);
	assert_int_equal(gaps_at(&sums, &cell, 1000), 4);
	assert_int_equal(gaps_at(&sums, &cell, 32000), 4);
	assert_int_equal(gaps_at(&sums, &cell, 100000), 1);
	assert_int_equal(gaps_at(&sums, &cell, 10000000), 0);
	sums_free(&sums);
}

/* The waits by which the oracles are compared are of sites that are left alone. */
static void provoked_gaps_count_for_long_waits_only(void **state)
{
	struct plan plan = sample_plan(1);
	struct cell cell = gap_cell(&plan.seat[0], CROSSING_PAGE, 1);
	struct sums sums = { 0 };

	(void)state;
	add_gaps(40000, 2);
	assert_int_equal(long_add_gaps(&sums, &cell, result), 0);
	assert_true(gaps_at(&sums, &cell, 400) == UINT64_MAX);
	assert_int_equal(gaps_at(&sums, &cell, 32000), 2);
	sums_free(&sums);
}

/* Both oracles have counts at a wait of 400, everywhere; slices of the gap oracle: 40 a seat. */
static struct estimate estimate_with(uint64_t tears, unsigned gaps, unsigned far)
{
	struct plan plan = sample_plan(2);
	struct sums run = { 0 };
	struct estimate e;

	add_gaps(500, gaps);
	add_gaps(26000, far);
	for (unsigned i = 0; i < plan.seats; i++) {
		for (int c = 0; c < CLAIMS; c++) {
			struct cell cell =
				gap_cell(&plan.seat[i], c ? CROSSING_PAGE : CROSSING_LINE, 0);

			for (unsigned k = 0; k < 40; k++)
				assert_int_equal(long_add_gaps(&run, &cell, result), 0);
		}
	}
	sample_rung(&run, &plan, (struct waits){ 400, 400, 0 }, sample_count(40, 100000, tears));
	sample_rung(&run, &plan, (struct waits){ 1600, 1600, 4 }, sample_count(40, 100000, 0));
	estimate_make(&e, &run, 1, &plan);
	sums_free(&run);
	return e;
}

static void without_gaps_to_compare_by_nothing_is_claimed(void **state)
{
	struct estimate e = estimate_with(1, 0, 0);

	(void)state;
	for (int c = 0; c < CLAIMS; c++)
		assert_true(e.factor[c] == 0);
	for (unsigned i = 0; i < LONG_WAITS; i++)
		assert_true(e.long_level[i].upper_p == 1);
}

/* 100 gaps in 5e7 stores are 2e-6; one tear in 1e5 toggles is 1e-5: five times as many. */
static void the_factor_is_what_the_oracles_differ_by(void **state)
{
	struct estimate e = estimate_with(1, 100, 0);

	(void)state;
	for (int c = 0; c < CLAIMS; c++) {
		assert_true(e.factor[c] > 5 && e.factor[c] < 15);
		assert_int_equal(e.factor_wait[c], 400);
	}
	/* No gap in 2e9 stores of each kind: 3 / 2e9 or more, times the factor. */
	for (unsigned i = 0; i < LONG_WAITS; i++) {
		double least = 3.0 / (40.0 * STORES) * 5;

		assert_true(e.long_level[i].upper_p > least &&
			    e.long_level[i].upper_p < 20 * least);
	}
}

/* A toggle waits twice: its bound is never below that of the gaps, however few toggles tore. */
static void few_tears_make_no_claim_stronger(void **state)
{
	struct estimate e = estimate_with(0, 60000, 0);

	(void)state;
	assert_true(e.factor[CLAIM_LINE] == 2 && e.factor[CLAIM_PAGE] == 2);
}

/* Does the bound of the first long wait keep what toggles tear there? */
static bool is_kept(const struct estimate *e, double factor)
{
	/* 2 gaps in each slice, of 5e7 stores, and five times as many tears. */
	return e->long_level[0].upper_p / factor > 2.0 / STORES * 5;
}

static void gaps_that_long_are_told(void **state)
{
	struct estimate e = estimate_with(1, 100, 2);

	(void)state;
	assert_true(is_kept(&e, 1));
	/* A bound of gaps alone does not: the same judge sees it. */
	for (int c = 0; c < CLAIMS; c++)
		assert_false(is_kept(&e, e.factor[c]));
	assert_true(e.long_level[1].upper_p < e.long_level[0].upper_p / 10);
}

/* --- What more time would give ---------------------------------------------------------------- */

/* As many slices of a second at each of four sections. */
static void add_seconds(struct sums *run, const struct plan *plan, unsigned seconds)
{
	result->seconds = 1;
	for (unsigned i = 0; i < CLAIMS * plan->seats * seconds; i++) {
		struct cell cell = gap_cell(&plan->seat[i / CLAIMS % plan->seats],
					    i % CLAIMS ? CROSSING_PAGE : CROSSING_LINE, 0);

		assert_int_equal(long_add_gaps(run, &cell, result), 0);
	}
}

/*
 * Sites inside a line that tear at the longest wait of the ladder may tear at a long one, too: no
 * gap was looked for there.
 */
static void sites_inside_a_line_hold_for_long_waits(void **state)
{
	struct plan plan = sample_plan(1);
	struct estimate e[2];

	(void)state;
	add_gaps(500, 100);
	for (unsigned i = 0; i < 2; i++) {
		struct sums run = { 0 };
		struct waits top;

		add_seconds(&run, &plan, 40);
		sample_rung(&run, &plan, (struct waits){ 400, 400, 0 },
			    sample_count(40, 100000, 1));
		ladder_make(&e[i].ladder, 0);
		top = e[i].ladder.rung[e[i].ladder.stretched - 1];
		sample_rung(&run, &plan, top, sample_count(40, 100000, 0));
		sample_add(&run, SUM_WAIT, top, CROSSING_32, &plan.seat[0],
			   sample_count(10, 10000, i ? 100 : 0));
		plan.widest = 32;
		estimate_make(&e[i], &run, 1, &plan);
		sums_free(&run);
	}
	assert_true(e[1].long_level[0].claim[CLAIM_LINE].upper_p > 1e-2);
	assert_true(e[1].long_level[0].claim[CLAIM_PAGE].upper_p < 1);
	assert_true(e[0].long_level[0].claim[CLAIM_LINE].upper_p < 1e-2);
	assert_int_equal(e[1].verdict, VERDICT_FAIL);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, new_result, drop_result)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gaps_are_counted_by_their_length),
		CASE(provoked_gaps_count_for_long_waits_only),
		CASE(without_gaps_to_compare_by_nothing_is_claimed),
		CASE(the_factor_is_what_the_oracles_differ_by),
		CASE(few_tears_make_no_claim_stronger),
		CASE(gaps_that_long_are_told),
		CASE(sites_inside_a_line_hold_for_long_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
