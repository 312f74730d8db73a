/* SPDX-License-Identifier: MIT */
/* How sure an estimate is, when the rate was not the same all the time, and where it was worst. */
#include <math.h>

#include "calibrate/drift.h"
#include "calibrate/tests/estimate_run.h"

/* Computed apart, by bisection of the mixture's likelihood ratio; promise 1e-3. */
static const struct {
	uint64_t tears, toggles;
	unsigned bounds; /* that hold at once */
	double upper;
} known[] = {
	{ 0, 10000, 1, 0.000451721102051 }, { 0, 10000, 2, 0.000521002108062 },
	{ 1, 10000, 1, 0.000723744574781 }, { 3, 10000, 2, 0.0012238510465 },
	{ 12, 10000, 4, 0.00285223873624 }, { 2, 100, 1, 0.113554847953 },
};

/* So many sections that all count alike, the first with tears. */
static void add_sections(struct run *run, unsigned sections, uint64_t toggles, uint64_t tears)
{
	for (unsigned i = 0; i < sections; i++)
		add(run, toggles)->cell.placement = (enum placement)i;
	run->record[0].result.tears[TEAR_OLD_FRONT] = tears;
}

static void bounds_are_exact(void **state)
{
	struct run *run = *state;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct estimate *e;

		run->count = 0;
		/* A section has a bound, and the way to provoke has one. */
		add_sections(run, known[i].bounds > 1 ? known[i].bounds - 1 : 1, known[i].toggles,
			     known[i].tears);
		e = make(run);
		assert_true(fabs((known[i].bounds > 1 ? e->section[0].upper_p : e->pooled_p) /
					 known[i].upper -
				 1) < 1e-6);
	}
}

/* All kinds of tears count, each as one. */
static void tears_among_the_toggles_are_bounded(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct cell_record *r;

	add(run, 4000)->result.tears[TEAR_OLD_FRONT] = 1;
	r = add(run, 6000);
	r->result.tears[TEAR_NEW_FRONT] = 1;
	r->result.tears[TEAR_OTHER] = 1;
	e = make(run);
	assert_int_equal(e->tears, 3);
	assert_true(e->section[0].upper_p == bound(3, 10000, 2));
	assert_true(e->claim[CLAIM_LINE].upper_p == e->section[0].upper_p);
	assert_true(e->pooled_p == bound(3, 10000, 1));
}

static void more_tears_than_toggles_are_no_bound_at_all(void **state)
{
	struct run *run = *state;
	struct cell_record *r = add(run, 10);

	r->noisy = true;
	r->result.tears[TEAR_OLD_FRONT] = 3;
	assert_true(make(run)->section[0].upper_p == 1);
	assert_true(run->estimate.upper_p == 1);
}

/* Each section may err, so each has to be surer. */
static void sections_share_the_error(void **state)
{
	struct run *run = *state;
	double before = 0;

	for (unsigned sections = 1; sections <= 6; sections++) {
		const struct estimate *e;

		run->count = 0;
		add_sections(run, sections, 10000, 1);
		e = make(run);
		assert_int_equal(e->sections, sections);
		assert_true(e->section[0].upper_p == bound(1, 10000, sections + 1));
		assert_true(e->section[0].upper_p > before);
		before = e->section[0].upper_p;
		/* One statement about the sum needs none of that. */
		assert_true(e->pooled_p == bound(1, 10000 * sections, 1));
	}
}

static void a_claim_is_as_bad_as_its_worst_section(void **state)
{
	const uint64_t toggles[] = { 5000, 400, 90000 };

	for (unsigned worst = 0; worst < 3; worst++) {
		struct run *run = *state;
		const struct estimate *e;

		run->count = 0;
		for (unsigned i = 0; i < 3; i++)
			add(run, toggles[(i + worst) % 3])->cell.placement = (enum placement)i;
		add_across(run, CROSSING_PAGE, 2000);
		e = make(run);
		assert_true(e->claim[CLAIM_LINE].upper_p == bound(0, 400, 6));
		assert_true(e->claim[CLAIM_PAGE].upper_p == bound(0, 2000, 6));
		assert_true(e->upper_p == bound(0, 400, 6));
		assert_true(e->pooled_p == bound(0, 97400, 1));
	}
}

static void the_machine_is_as_bad_as_the_worse_claim(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 100000);
	add_across(run, CROSSING_PAGE, 100000)->result.tears[TEAR_OLD_FRONT] = 5;
	e = make(run);
	assert_true(e->claim[CLAIM_LINE].upper_p == bound(0, 100000, 4));
	assert_true(e->claim[CLAIM_PAGE].upper_p == bound(5, 100000, 4));
	assert_true(e->upper_p == e->claim[CLAIM_PAGE].upper_p);
	run->record[0].result.tears[TEAR_NEW_FRONT] = 9;
	e = make(run);
	assert_true(e->upper_p == bound(9, 100000, 4));
}

/* A claim that was not tried at its waits is not kept. */
static void half_a_campaign_claims_nothing_of_the_other_half(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 1000000);
	e = make(run);
	assert_true(e->claim[CLAIM_LINE].upper_p == bound(0, 1000000, 2));
	assert_true(e->claim[CLAIM_PAGE].upper_p == 1);
	assert_true(e->upper_p == 1);
}

/* --- Drift --- */

/* Ten cells of 4000 toggles with so many tears each. */
static void add_times(struct run *run, enum crossing crossing, const uint64_t tears[10])
{
	for (unsigned i = 0; i < 10; i++)
		add_across(run, crossing, 4000)->result.tears[TEAR_OLD_FRONT] = tears[i];
}

static void a_rate_that_drifts_is_as_bad_as_its_worst_time(void **state)
{
	static const uint64_t tears[10] = { 0, 0, 0, 0, 0, 0, 30, 0, 0, 0 };
	struct run *run = *state;
	const struct estimate *e;
	const struct claim *line;

	add_times(run, CROSSING_LINE, tears);
	e = make(run);
	line = &e->claim[CLAIM_LINE];
	assert_true(line->drifted);
	assert_true(line->drift_p < DRIFT_P);
	assert_true(line->upper_p == bound_upper(30, 8000, bound_confidence_each(CONFIDENCE, 5)));
	assert_true(line->upper_p > 30 / 8000.0);
	/* The average, which no time was like, is still what the section says. */
	assert_true(e->section[0].upper_p == bound(30, 40000, 2));
	assert_true(e->section[0].upper_p < 30 / 8000.0);
}

static void a_steady_rate_is_bounded_by_all_its_time(void **state)
{
	static const uint64_t tears[10] = { 3, 2, 4, 3, 3, 2, 4, 3, 3, 3 };
	struct run *run = *state;
	const struct claim *line;

	add_times(run, CROSSING_LINE, tears);
	line = &make(run)->claim[CLAIM_LINE];
	assert_false(line->drifted);
	assert_true(line->drift_p > 0.5);
	assert_true(line->upper_p == bound(30, 40000, 2));
}

static void one_claim_drifts_without_the_other(void **state)
{
	static const uint64_t even[10] = { 3, 2, 4, 3, 3, 2, 4, 3, 3, 3 };
	static const uint64_t uneven[10] = { 29, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	struct run *run = *state;
	const struct estimate *e;

	add_times(run, CROSSING_PAGE, uneven);
	add_times(run, CROSSING_LINE, even);
	e = make(run);
	assert_true(e->claim[CLAIM_PAGE].drifted);
	assert_false(e->claim[CLAIM_LINE].drifted);
	assert_true(e->claim[CLAIM_LINE].upper_p == bound(30, 40000, 4));
	assert_true(e->upper_p == e->claim[CLAIM_PAGE].upper_p);
}

/* Another wait is another rate: no drift. */
static void the_drift_is_that_of_the_claimed_waits(void **state)
{
	static const uint64_t none[10] = { 0 };
	struct run *run = *state;

	for (unsigned i = 0; i < 10; i++)
		add_waits(run, i % 2 ? "campaign" : "bracket", 100, 100)->result.tears[0] = 500;
	add_times(run, CROSSING_LINE, none);
	assert_false(make(run)->claim[CLAIM_LINE].drifted);
	assert_true(run->estimate.claim[CLAIM_LINE].drift_p == 1);
	assert_true(run->estimate.claim[CLAIM_LINE].upper_p == bound(0, 40000, 2));
}

/* Three ways to provoke, one of them bad: its own rate counts, not the average. */
static void a_claim_is_as_bad_as_its_worst_arm(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	for (unsigned i = 0; i < 3; i++)
		add(run, 10000)->cell.provokers = i;
	run->record[2].result.tears[TEAR_OLD_FRONT] = 9;
	e = make(run);
	assert_true(e->claim[CLAIM_LINE].upper_p == bound(9, 10000, 4));
	assert_true(e->section[0].upper_p == bound(9, 30000, 4));
}

static struct cell_record *add_distant(struct run *run, uint64_t toggles, uint64_t distance)
{
	struct cell_record *r = add(run, toggles);

	r->result.witness.offset_error = distance;
	return r;
}

/* Most of the time near and clean, the rest far and torn: the far time counts by itself. */
static void far_cpus_are_bounded_apart(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_distant(run, 50000, 150);
	add_distant(run, 50000, 299);
	add_distant(run, 10000, 300)->result.tears[TEAR_OLD_FRONT] = 5;
	/* Nobody knows; another placement is another distance. */
	add_distant(run, 20000, WITNESS_UNKNOWN);
	add_distant(run, 20000, 900)->cell.placement = PLACEMENT_CROSS_SOCKET;
	e = make(run);
	assert_true(e->distance.both);
	assert_int_equal(e->distance.cells, 4);
	assert_int_equal(e->distance.far, 1);
	assert_int_equal(e->distance.least[PLACEMENT_SPREAD], 150);
	assert_int_equal(e->distance.greatest[PLACEMENT_SPREAD], 300);
	assert_int_equal(e->claim[CLAIM_LINE].far_toggles, 10000);
	assert_int_equal(e->claim[CLAIM_LINE].far_tears, 5);
	/* Two sections, an arm, and the far time of both claims. */
	assert_true(e->claim[CLAIM_LINE].upper_p == bound(5, 10000, 5));
}

/* A distance that was seen once in many cells is left to the average. */
static void seldom_far_is_not_bounded_apart(void **state)
{
	struct run *run = *state;

	for (unsigned i = 0; i < 40; i++)
		add_distant(run, 1000, i ? 150 : 600);
	assert_false(make(run)->distance.both);
	assert_true(run->estimate.claim[CLAIM_LINE].upper_p == bound(0, 40000, 2));
}

/* Longest without a tear at waits that were given up; those of other pages are not ours. */
static void clean_toggles_before_a_storm_are_remembered(void **state)
{
	static const uint64_t tears[] = { 0, 0, 1, 0, 0, 0, 2, 0 };
	struct run *run = *state;

	add(run, 500);
	assert_int_equal(make(run)->claim[CLAIM_LINE].clean_before, 0);
	for (size_t i = 0; i < sizeof(tears) / sizeof(tears[0]); i++)
		add_waits(run, "campaign", FIRST - 100, SECOND)->result.tears[TEAR_OLD_FRONT] =
			tears[i];
	assert_int_equal(make(run)->claim[CLAIM_LINE].clean_before, 3000);
	assert_int_equal(run->estimate.claim[CLAIM_PAGE].clean_before, 0);
}

/* --- The worst cells --- */

static void kinds_of_cells_are_summed_up(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 100)->result.tears[TEAR_OLD_FRONT] = 1;
	add(run, 200)->result.tears[TEAR_NEW_FRONT] = 1;
	/* Pair and seed are drawn anew all the time. */
	run->record[1].cell.pair = PAIR_WORD;
	run->record[1].cell.seed = 77;
	add(run, 4000)->noisy = true;
	run->record[2].result.tears[TEAR_OTHER] = 1;
	e = make(run);
	assert_int_equal(e->worsts, 1);
	assert_int_equal(e->worst[0].toggles, 300);
	assert_int_equal(e->worst[0].tears, 3);
}

static void each_way_to_run_is_a_kind_of_its_own(void **state)
{
	struct run *run = *state;

	for (unsigned i = 0; i < 7; i++)
		add(run, 100 + i);
	run->record[1].cell.placement = PLACEMENT_SAME_CORE;
	run->record[2].cell.executors = 2;
	run->record[3].cell.split = 1;
	run->record[4].cell.provokers = 1u << PROVOKER_COLD_BACK;
	run->record[5].cell.loop = 64;
	run->record[6].cell.rest = 500;
	for (size_t i = 1; i < 7; i++) {
		const struct cell_record kept = run->record[1];

		run->count = 2;
		run->record[1] = run->record[i];
		assert_int_equal(make(run)->worsts, 2);
		run->record[1] = kept;
	}
}

static void most_tears_then_least_known(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	for (unsigned i = 0; i < 3; i++)
		add(run, 1000 + i)->cell.split = 1 + i;
	run->record[1].result.tears[TEAR_OLD_FRONT] = 1;
	e = make(run);
	assert_int_equal(e->worsts, 3);
	assert_int_equal(e->worst[0].cell.split, 2);
	assert_int_equal(e->worst[1].cell.split, 1);
	assert_int_equal(e->worst[2].cell.split, 3);
}

static void neither_claim_crowds_out_the_other(void **state)
{
	struct run *run = *state;
	unsigned count[CLAIMS] = { 0 };
	const struct estimate *e;

	for (unsigned i = 0; i < 2 * WORST_MAX; i++) {
		struct cell_record *r = add(run, 1000);

		r->cell.executors = 1 + i;
		r->result.tears[TEAR_OLD_FRONT] = 100;
	}
	for (unsigned i = 0; i < 2 * WORST_MAX; i++)
		add_across(run, CROSSING_PAGE, 1000)->cell.executors = 1 + i;
	e = make(run);
	assert_int_equal(e->worsts, WORST_MAX);
	for (unsigned i = 0; i < e->worsts; i++)
		count[claim_of(e->worst[i].cell.crossing)]++;
	assert_int_equal(count[CLAIM_LINE], WORST_MAX / CLAIMS);
	assert_int_equal(count[CLAIM_PAGE], WORST_MAX / CLAIMS);
}

static void only_what_speaks_for_the_claim_is_worth_another_try(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", FIRST, SECOND)->result.tears[TEAR_OLD_FRONT] = 9;
	add_waits(run, "campaign", FIRST - 1, SECOND)->result.tears[TEAR_OLD_FRONT] = 9;
	add(run, 100)->cell.protocol = PROTOCOL_MEMBARRIER;
	add(run, 100)->cell.crossing = CROSSING_32;
	assert_int_equal(make(run)->worsts, 0);
}

/* --- Provokers --- */

static void the_provokers_are_told_with_the_estimate(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_waits(run, "provoke", 200, 200)->cell.stretch = 0;
	add_waits(run, "provoke", 200, 200)->cell.provokers = 1u << PROVOKER_CHAIN;
	run->record[1].result.tears[TEAR_OLD_FRONT] = 40;
	e = make(run);
	assert_int_equal(e->arms.count, 2);
	assert_int_equal(e->arms.arm[1].provokers, 1u << PROVOKER_CHAIN);
	assert_int_equal(e->arms.arm[1].tears, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(bounds_are_exact),
		ON_RUN(tears_among_the_toggles_are_bounded),
		ON_RUN(more_tears_than_toggles_are_no_bound_at_all),
		ON_RUN(sections_share_the_error),
		ON_RUN(a_claim_is_as_bad_as_its_worst_section),
		ON_RUN(the_machine_is_as_bad_as_the_worse_claim),
		ON_RUN(half_a_campaign_claims_nothing_of_the_other_half),
		ON_RUN(a_rate_that_drifts_is_as_bad_as_its_worst_time),
		ON_RUN(a_steady_rate_is_bounded_by_all_its_time),
		ON_RUN(one_claim_drifts_without_the_other),
		ON_RUN(the_drift_is_that_of_the_claimed_waits),
		ON_RUN(a_claim_is_as_bad_as_its_worst_arm),
		ON_RUN(far_cpus_are_bounded_apart),
		ON_RUN(seldom_far_is_not_bounded_apart),
		ON_RUN(clean_toggles_before_a_storm_are_remembered),
		ON_RUN(kinds_of_cells_are_summed_up),
		ON_RUN(each_way_to_run_is_a_kind_of_its_own),
		ON_RUN(most_tears_then_least_known),
		ON_RUN(neither_claim_crowds_out_the_other),
		ON_RUN(only_what_speaks_for_the_claim_is_worth_another_try),
		ON_RUN(the_provokers_are_told_with_the_estimate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
