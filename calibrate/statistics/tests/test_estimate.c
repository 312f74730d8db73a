/* SPDX-License-Identifier: MIT */
/* What sums support, and no more. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/tests/sums_sample.h"

static const struct waits low = { 100, 100, LADDER_STRETCH }, high = { 1600, 1600, LADDER_STRETCH };

static struct estimate estimate_of(const struct sums *sums, const struct plan *plan)
{
	struct sums run = *sums;
	struct estimate e;

	estimate_make(&e, &run, 1, plan);
	return e;
}

static const struct level *level_at(const struct estimate *e, struct waits rung)
{
	for (unsigned i = 0; i < e->levels; i++)
		if (waits_same(&e->level[i].rung, &rung))
			return &e->level[i];
	fail();
	return NULL;
}

static void nothing_supports_nothing(void **state)
{
	struct plan plan = sample_plan(2);
	struct sums sums = { 0 };
	struct estimate e = estimate_of(&sums, &plan);

	(void)state;
	assert_int_equal(e.verdict, VERDICT_INCONCLUSIVE);
	for (unsigned i = 0; i < e.levels; i++)
		assert_true(e.level[i].upper_p == 1);
	assert_int_equal(e.window.bytes, 8);
	assert_true(estimate_kept(&e, 0.5) > 0.5);
}

static void the_cheapest_that_keeps_it_passes(void **state)
{
	struct plan plan = sample_plan(2);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	sample_rung(&sums, &plan, low, sample_count(20, 100000, 50));
	sample_rung(&sums, &plan, high, sample_count(20, 100000, 0));
	e = estimate_of(&sums, &plan);
	assert_int_equal(e.verdict, VERDICT_PASS);
	for (int c = 0; c < CLAIMS; c++) {
		assert_true(waits_same(&e.level[estimate_best(&e, c, REQUIRE_P)].rung, &high));
		assert_true(waits_same(&e.level[estimate_best(&e, c, 1e-2)].rung, &low));
	}
	assert_true(estimate_kept(&e, REQUIRE_P) <= REQUIRE_P);
	assert_true(level_at(&e, high)->upper_p < 1e-5);
	assert_true(level_at(&e, low)->upper_p > 5e-4);
	sums_free(&sums);
}

/* A placement of which nothing is known is not covered by the others. */
static void every_placement_must_be_known(void **state)
{
	struct plan one = sample_plan(1), two = sample_plan(2);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	sample_rung(&sums, &one, high, sample_count(20, 100000, 0));
	e = estimate_of(&sums, &one);
	assert_int_equal(e.verdict, VERDICT_PASS);
	e = estimate_of(&sums, &two);
	assert_int_equal(e.verdict, VERDICT_INCONCLUSIVE);
	assert_true(level_at(&e, high)->upper_p == 1);
	sums_free(&sums);
}

static void lines_and_pages_are_judged_apart(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	sample_add(&sums, SUM_WAIT, low, CROSSING_LINE, &plan.seat[0], sample_count(20, 100000, 0));
	sample_add(&sums, SUM_WAIT, low, CROSSING_PAGE, &plan.seat[0],
		   sample_count(20, 100000, 90));
	e = estimate_of(&sums, &plan);
	assert_true(estimate_best(&e, CLAIM_LINE, REQUIRE_P) >= 0);
	assert_int_equal(estimate_best(&e, CLAIM_PAGE, REQUIRE_P), -1);
	assert_true(estimate_kept(&e, REQUIRE_P) > REQUIRE_P);
	sums_free(&sums);
}

/* What hot sites tear says nothing of sites at rest, and what these do not, nothing of hot ones. */
static void sites_at_rest_are_another_claim(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	const struct level *rested;
	struct estimate e, alone;

	(void)state;
	sample_rung(&sums, &plan, low, sample_count(20, 100000, 50));
	alone = estimate_of(&sums, &plan);
	for (int c = 0; c < CLAIMS; c++)
		sample_add(&sums, SUM_RESTED, low, claimed[c], &plan.seat[0],
			   sample_count(40, 100000, 0));
	e = estimate_of(&sums, &plan);
	assert_true(level_at(&e, low)->upper_p == level_at(&alone, low)->upper_p);
	assert_int_equal(level_at(&e, low)->claim[CLAIM_LINE].count.toggles, 2000000);
	rested = &e.level[e.ladder.count + 1];
	assert_true(waits_same(&rested->rung, &low));
	assert_int_equal(rested->claim[CLAIM_LINE].count.toggles, 4000000);
	assert_true(rested->upper_p < level_at(&e, low)->upper_p / 10);
	assert_true(alone.level[alone.ladder.count + 1].upper_p == 1);
	/* Nor are they what a pass needs: a program may change one site all the time. */
	sums_free(&sums);
	sample_rung(&sums, &plan, low, sample_count(20, 100000, 90));
	for (int c = 0; c < CLAIMS; c++)
		sample_add(&sums, SUM_RESTED, low, claimed[c], &plan.seat[0],
			   sample_count(40, 100000, 0));
	e = estimate_of(&sums, &plan);
	assert_true(e.verdict != VERDICT_PASS);
	sums_free(&sums);
}

/* The same tears, in every slice or in one of them. */
static void bursts_widen_a_bound(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums even = { 0 }, burst = { 0 };
	struct estimate a, b;

	(void)state;
	sample_rung(&even, &plan, low, sample_count(20, 100000, 5));
	sample_rung(&burst, &plan, low, sample_count(19, 100000, 0));
	sample_rung(&burst, &plan, low, sample_count(1, 100000, 100));
	a = estimate_of(&even, &plan);
	b = estimate_of(&burst, &plan);
	assert_true(level_at(&b, low)->upper_p > 2 * level_at(&a, low)->upper_p);
	assert_true(b.spread[CLAIM_LINE] > 10);
	/* And the bound of a rung that never tore, of which the same site and time are behind. */
	sample_rung(&even, &plan, high, sample_count(20, 100000, 0));
	sample_rung(&burst, &plan, high, sample_count(20, 100000, 0));
	a = estimate_of(&even, &plan);
	b = estimate_of(&burst, &plan);
	assert_true(level_at(&b, high)->upper_p > 2 * level_at(&a, high)->upper_p);
	sums_free(&even);
	sums_free(&burst);
}

/* A storm came while a longer wait was measured: it would have come at shorter ones, too. */
static void a_storm_at_a_longer_wait_bounds_shorter_ones(void **state)
{
	const double least = bound_lower(1000, 20 * 100000, CONFIDENCE);
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct section alone;
	struct estimate e;

	(void)state;
	sample_rung(&sums, &plan, low, sample_count(400, 100000, 0));
	sample_rung(&sums, &plan, high, sample_count(19, 100000, 0));
	sample_rung(&sums, &plan, high, sample_count(1, 100000, 1000));
	e = estimate_of(&sums, &plan);
	assert_true(least > 1e-4);
	assert_true(level_at(&e, low)->claim[CLAIM_LINE].upper_p >= least);
	assert_true(level_at(&e, low)->claim[CLAIM_PAGE].upper_p >= least);
	/* What waits longer than the storm's is not bounded by it. */
	assert_true(e.level[e.levels - 1].claim[CLAIM_LINE].section[0].longer_p == 0);
	/* Broken: by its own count the shorter wait would be claimed to tear less often. */
	alone = level_at(&e, low)->claim[CLAIM_LINE].section[0];
	alone.longer_p = 0;
	assert_true(estimate_section(&alone, e.spread[CLAIM_LINE], e.cap[CLAIM_LINE], CONFIDENCE) <
		    least);
	sums_free(&sums);
}

static void too_many_tears_at_the_top_fail(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	sample_membarrier(&sums, &plan, 3300);
	sample_rung(&sums, &plan, (struct waits){ 3200, 3200, LADDER_STRETCH },
		    sample_count(20, 10000, 100));
	e = estimate_of(&sums, &plan);
	assert_int_equal(e.verdict, VERDICT_FAIL);
	sums_free(&sums);
}

static void a_word_that_tears_fails_whatever_else(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	sample_rung(&sums, &plan, high, sample_count(20, 100000, 0));
	sample_add(&sums, SUM_STORE, (struct waits){ 0 }, CROSSING_NONE, &plan.seat[0],
		   sample_count(1, 1000000, 1));
	e = estimate_of(&sums, &plan);
	assert_int_equal(e.verdict, VERDICT_FAIL);
	estimate_blind(&e, "no oracle looked");
	assert_int_equal(e.verdict, VERDICT_FAIL);
	assert_true(e.blind);
	sums_free(&sums);
}

/* It did not see the broken protocols tear: that no store tore says nothing. */
static void a_blind_run_has_no_window(void **state)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		sample_add(&sums, SUM_STORE, (struct waits){ 0 }, inside[i], &plan.seat[0],
			   sample_count(4, 1000000, 0));
	e = estimate_of(&sums, &plan);
	assert_int_equal(e.window.bytes, 64);
	estimate_blind(&e, "no oracle looked");
	assert_int_equal(e.window.bytes, 8);
	assert_int_equal(e.window.toggles, 0);
	assert_true(e.window.upper_p == 1);
	sums_free(&sums);
}

static void the_window_ends_where_a_store_tore(void **state)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct plan plan = sample_plan(1);

	(void)state;
	for (unsigned torn = 0; torn <= 3; torn++) {
		struct sums sums = { 0 };
		struct estimate e;

		for (unsigned i = 0; i < 3; i++)
			sample_add(&sums, SUM_STORE, (struct waits){ 0 }, inside[i], &plan.seat[0],
				   sample_count(4, 1000000, i == torn));
		e = estimate_of(&sums, &plan);
		assert_int_equal(e.window.bytes, 8u << torn);
		assert_int_equal(e.window.torn, torn < 3 ? 8u << torn : 0);
		/* Runs differ: one bounds nothing, however many stores it has. */
		assert_true(e.window.upper_p == 1);
		if (torn)
			assert_true(e.window.runs == 1 && e.window.toggles == 4000000);
		/* Machines of this kind are known to tear across 16 bytes. */
		plan.widest = 16;
		e = estimate_of(&sums, &plan);
		assert_int_equal(e.window.bytes, torn ? 16 : 8);
		assert_int_equal(e.window.torn, e.window.bytes);
		plan.widest = 0;
		sums_free(&sums);
	}
}

/* As many slices near as far. */
static void add_near_and_far(struct sums *sums, struct waits rung, enum crossing crossing,
			     const struct seat *seat, struct count each)
{
	struct sum sum = { .kind = SUM_WAIT,
			   .rung = rung,
			   .crossing = crossing,
			   .placement = seat->placement,
			   .executors = seat->executors,
			   .count = each,
			   .at = { each, each } };

	count_add(&sum.count, &each);
	assert_int_equal(sums_add(sums, &sum), 0);
}

/* Sites across 32 bytes of a line, where single stores tear, may tear more by waits than lines do.
 */
static void a_line_bound_heeds_sites_inside_a_line(void **state)
{
	struct plan plan = sample_plan(1);
	const struct waits rung = { 0, 0, LADDER_STRETCH };
	double bound[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct sums sums = { 0 };
		struct estimate e;

		for (unsigned c = 0; c < CLAIMS; c++)
			add_near_and_far(&sums, rung, c ? CROSSING_PAGE : CROSSING_LINE,
					 &plan.seat[0], sample_count(50, 10000, 0));
		/* None, fewer than the bound for lines allows, more. */
		sample_add(&sums, SUM_WAIT, rung, CROSSING_32, &plan.seat[0],
			   sample_count(10, 10000, i == 2 ? 5 : 0));
		plan.widest = i ? 32 : 0;
		e = estimate_of(&sums, &plan);
		bound[i] = e.level[0].claim[CLAIM_LINE].upper_p;
		assert_int_equal(e.window.waited.toggles, i ? 100000 : 0);
		assert_int_equal(e.window.waited.tears, i == 2 ? 50 : 0);
		/* Whether they were near or far is not known of them, so it may have been either.
		 */
		for (int d = 0; i == 2 && d < DISTANCES; d++)
			assert_true(e.level[0].at_p[d] >= bound[i]);
		sums_free(&sums);
	}
	assert_true(bound[1] == bound[0]);
	assert_true(bound[2] > 5e-4 && bound[0] < 1e-4);
}

static void the_papers_wait_is_the_lowest_without_a_tear(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 };
	struct estimate e;

	(void)state;
	for (uint64_t wait = 0; wait <= LADDER_PAPER; wait += LADDER_STEP)
		sample_add(&sums, SUM_WAIT, (struct waits){ wait, wait, 0 }, CROSSING_LINE,
			   &plan.seat[0], sample_count(2, 10000, wait < 600 || wait == 1800));
	e = estimate_of(&sums, &plan);
	assert_true(e.paper.known && e.paper.found && !e.paper.stays);
	assert_int_equal(e.paper.wait, 600);
	sums_free(&sums);
}

/* From thirty runs on the run is the unit, and a bad day counts as one. */
static void many_runs_speak_for_the_long_run(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums runs[LONG_RUN] = { 0 };
	struct estimate few, many;

	(void)state;
	for (unsigned i = 0; i < LONG_RUN; i++)
		sample_rung(&runs[i], &plan, low, sample_count(10, 100000, i == 7 ? 100 : 0));
	estimate_make(&few, runs, LONG_RUN - 1, &plan);
	estimate_make(&many, runs, LONG_RUN, &plan);
	assert_false(few.long_run);
	assert_true(many.long_run);
	/* All that a run has counted is one slice now: there are fewer, and they differ more. */
	assert_int_equal(level_at(&many, low)->claim[CLAIM_LINE].count.slices, LONG_RUN);
	assert_true(level_at(&many, low)->upper_p > level_at(&few, low)->upper_p);
	for (unsigned i = 0; i < LONG_RUN; i++)
		sums_free(&runs[i]);
}

/* More evidence without a tear never says less. */
static void evidence_adds_up(void **state)
{
	struct plan plan = sample_plan(2);
	struct sums runs[8] = { 0 };
	double before = 1;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct estimate e;

		sample_rung(&runs[i], &plan, high, sample_count(5, 100000, 0));
		estimate_make(&e, runs, i + 1, &plan);
		assert_true(level_at(&e, high)->upper_p < before);
		before = level_at(&e, high)->upper_p;
	}
	for (unsigned i = 0; i < 8; i++)
		sums_free(&runs[i]);
}

static void an_estimate_has_a_line(void **state)
{
	struct plan plan = sample_plan(2);
	struct sums sums = { 0 };
	struct estimate e;
	json_t *line;

	(void)state;
	sample_rung(&sums, &plan, high, sample_count(20, 100000, 0));
	e = estimate_of(&sums, &plan);
	line = estimate_to_json(&e);
	assert_string_equal(json_string_value(json_object_get(line, "verdict")), "pass");
	assert_int_equal(json_array_size(json_object_get(line, "levels")), e.ladder.count);
	json_decref(line);
	sums_free(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_supports_nothing),
		cmocka_unit_test(the_cheapest_that_keeps_it_passes),
		cmocka_unit_test(every_placement_must_be_known),
		cmocka_unit_test(lines_and_pages_are_judged_apart),
		cmocka_unit_test(sites_at_rest_are_another_claim),
		cmocka_unit_test(bursts_widen_a_bound),
		cmocka_unit_test(a_storm_at_a_longer_wait_bounds_shorter_ones),
		cmocka_unit_test(too_many_tears_at_the_top_fail),
		cmocka_unit_test(a_word_that_tears_fails_whatever_else),
		cmocka_unit_test(a_blind_run_has_no_window),
		cmocka_unit_test(the_window_ends_where_a_store_tore),
		cmocka_unit_test(a_line_bound_heeds_sites_inside_a_line),
		cmocka_unit_test(the_papers_wait_is_the_lowest_without_a_tear),
		cmocka_unit_test(many_runs_speak_for_the_long_run),
		cmocka_unit_test(evidence_adds_up),
		cmocka_unit_test(an_estimate_has_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
