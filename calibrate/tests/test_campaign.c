/* SPDX-License-Identifier: MIT */
/*
 * The search on machines that tear by chance: rare tails, provokers, company and
 * rates that change. What it says of them, and how often it is wrong.
 */
#include <gsl/gsl_cdf.h>

#include "calibrate/bound.h"
#include "calibrate/tests/made_up.h"

#define COLD	 (1u << PROVOKER_COLD_BACK)
#define CHAIN	 (1u << PROVOKER_CHAIN)
#define RUNS	 150  /* of searches whose share of passes counts */
#define BY_LUCK	 1e-6 /* so seldom a right search would fail such a test */
#define SOME_RUN 3

static struct waits first_candidate(struct run *run, unsigned claim)
{
	const struct machine kept = run->machine;

	run->machine = ordinary;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	run->machine = kept;
	return run->estimate.claim[claim].waits;
}

/* The same tail everywhere, at every wait. */
static void set_tail(struct run *run, double rate)
{
	run->machine.tail[CLAIM_LINE] = run->machine.tail[CLAIM_PAGE] = rate;
}

/* --- Rare tails --- */

/* One in ten million at any wait: longer waits do not help, and need not. */
static void a_tail_below_the_promise_passes(void **state)
{
	struct run *run = *state;
	struct waits first[CLAIMS];

	choose_plan(run, "default");
	for (unsigned i = 0; i < CLAIMS; i++)
		first[i] = first_candidate(run, i);
	set_tail(run, 1e-7);
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_verdict(run, VERDICT_PASS, " tears in ");
		assert_true(run->estimate.tears > 0);
		assert_true(run->estimate.upper_p > 1e-7 && run->estimate.upper_p <= 1e-6);
		for (unsigned i = 0; i < CLAIMS; i++) {
			assert_int_equal(run->estimate.claim[i].waits.first, first[i].first);
			assert_int_equal(run->estimate.claim[i].waits.second, first[i].second);
		}
	}
}

/* What is counted is what is told. */
static void tears_among_the_toggles_are_told(void **state)
{
	struct run *run = *state;
	uint64_t tears = 0, toggles = 0;

	choose_plan(run, "default");
	set_tail(run, 1e-7);
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++) {
		if (!in_campaign(&run->session.done[i]))
			continue;
		tears += cell_result_tears(&run->session.done[i].result);
		toggles += run->session.done[i].result.toggles;
	}
	assert_true(tears > 0);
	assert_int_equal(run->estimate.tears, tears);
	assert_int_equal(run->estimate.toggles, toggles);
}

static void a_tail_above_the_promise_never_passes(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	set_tail(run, 1e-5);
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_verdict(run, VERDICT_FAIL, "no wait up to 100000 ticks");
	}
}

/* Each placement and crossing may be wrong by its share; all of them at once hardly. */
static void a_rate_just_at_the_promise_is_no_pass(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	set_tail(run, run->plan.promise);
	for (unsigned long seed = 1; seed <= 4 * SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_int_not_equal(run->estimate.verdict, VERDICT_PASS);
	}
}

/* Before the time is up, there is a last candidate to learn something about. */
static void the_last_candidate_has_time(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	set_tail(run, run->plan.promise);
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, " tears in ");
	for (unsigned i = 0; i < run->estimate.sections; i++)
		assert_true((double)run->estimate.section[i].toggles >=
			    0.05 * run->plan.budget * TOGGLES_PER_SECOND / 6);
}

/* No proof against these waits, but no time left to show that they are good either. */
static void waits_without_hope_are_given_up(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	set_tail(run, 1.5 * run->plan.promise);
	run->machine.tail_ends = 3000;
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_verdict(run, VERDICT_PASS, " tears in ");
		assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 3000);
		assert_true(run->estimate.claim[CLAIM_PAGE].waits.first >= 3000);
	}
}

/* A few bad toggles among many good ones elsewhere are still bad. */
static void one_placement_speaks_for_itself(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	run->machine.tail[CLAIM_LINE] = 2 * run->plan.promise;
	run->machine.tail_placement = PLACEMENT_SAME_L3;
	run->machine.tail_ends = 3000;
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_verdict(run, VERDICT_PASS, " tears in ");
		assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 3000);
	}
}

static void a_tail_on_pages_leaves_lines_alone(void **state)
{
	struct run *run = *state;
	struct waits line = first_candidate(run, CLAIM_LINE);

	run->machine.tail[CLAIM_PAGE] = 100 * run->plan.promise;
	run->machine.tail_ends = 5000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	assert_int_equal(run->estimate.claim[CLAIM_LINE].waits.first, line.first);
	assert_int_equal(run->estimate.claim[CLAIM_LINE].waits.second, line.second);
	assert_true(run->estimate.claim[CLAIM_PAGE].waits.first >= 5000);
	run->machine.tail_ends = 0;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_FAIL, "no wait up to ");
	assert_true(run->estimate.claim[CLAIM_LINE].torn.wait[0] < line.first);
}

/* --- How often it is wrong --- */

static unsigned passes_of(struct run *run)
{
	unsigned passes = 0;

	for (unsigned long seed = 1; seed <= RUNS; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		passes += run->estimate.verdict == VERDICT_PASS;
	}
	return passes;
}

/* More passes than a machine that breaks the promise gets with the error allowed? */
static void assert_by_luck_only(unsigned passes)
{
	double p = passes ? gsl_cdf_binomial_Q(passes - 1, 1 - CONFIDENCE, RUNS) : 1;

	if (p < BY_LUCK)
		fail_msg("%u of %u runs passed", passes, RUNS);
}

/* The hardest case: all is well but in one placement and crossing. */
static void twice_the_promise_in_one_place_passes_by_luck_only(void **state)
{
	static const enum placement places[] = { PLACEMENT_SAME_L3, PLACEMENT_OVERSUBSCRIBED };
	struct run *run = *state;

	for (unsigned i = 0; i < 2; i++) {
		run->machine.tail[CLAIM_PAGE] = 2 * run->plan.promise;
		run->machine.tail_placement = (int)places[i];
		assert_by_luck_only(passes_of(run));
	}
}

static void a_little_more_than_the_promise_passes_by_luck_only(void **state)
{
	struct run *run = *state;

	run->machine.tail[CLAIM_LINE] = 1.01 * run->plan.promise;
	run->machine.tail_placement = PLACEMENT_OVERSUBSCRIBED;
	assert_by_luck_only(passes_of(run));
}

static void twice_the_promise_everywhere_passes_by_luck_only(void **state)
{
	struct run *run = *state;

	set_tail(run, 2 * run->plan.promise);
	assert_by_luck_only(passes_of(run));
}

/* A search that passed nothing would pass those tests. */
static void a_tenth_of_the_promise_mostly_passes(void **state)
{
	struct run *run = *state;
	unsigned passes;

	set_tail(run, 0.1 * run->plan.promise);
	passes = passes_of(run);
	if (passes < RUNS / 2)
		fail_msg("%u of %u runs passed", passes, RUNS);
}

/* --- Rates that change --- */

/* Too short to prove anything against the average, which is nobody's. */
static void a_storm_is_published_as_the_worst_time(void **state)
{
	struct run *run = *state;
	const struct claim *claim = run->estimate.claim;

	choose_plan(run, "default");
	set_tail(run, 1e-5);
	run->machine.storm[0] = 0.90;
	run->machine.storm[1] = 0.92;
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_verdict(run, VERDICT_INCONCLUSIVE, "; the rate drifted");
		assert_true(claim[CLAIM_LINE].drifted && claim[CLAIM_PAGE].drifted);
		assert_true(claim[CLAIM_LINE].upper_p > 3e-6);
		assert_true(run->estimate.pooled_p < 1e-6);
	}
}

/*
 * A storm so heavy that the waits are given up for longer ones, which meet none: what
 * they were tried with is less than the shorter ones had stayed clean.
 */
static void a_storm_that_ended_shorter_waits_proves_no_longer_ones(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	set_tail(run, 4e-5);
	run->machine.storm[0] = 0.80;
	run->machine.storm[1] = 0.82;
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_int_equal(run->estimate.verdict, VERDICT_INCONCLUSIVE);
	}
}

/* --- Provokers --- */

static const struct arm *find_arm(const struct estimate *e, unsigned provokers)
{
	for (unsigned i = 0; i < e->arms.count; i++)
		if (e->arms.arm[i].provokers == provokers)
			return &e->arms.arm[i];
	return NULL;
}

static unsigned campaign_with(const struct run *run, unsigned provokers)
{
	unsigned count = 0;

	for (size_t i = 0; i < run->session.count; i++)
		count += in_campaign(&run->session.done[i]) &&
			 run->session.done[i].cell.provokers == provokers;
	return count;
}

static void a_provoker_is_found_and_used(void **state)
{
	struct run *run = *state;
	const struct arm *cold;

	run->machine.provokers = COLD;
	run->machine.raise = 50;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	cold = find_arm(&run->estimate, COLD);
	assert_non_null(cold);
	assert_true(cold->ratio > 25 && cold->ratio < 75);
	assert_true(cold->p < BY_LUCK);
	/* One pass each, at least. */
	assert_true(campaign_with(run, COLD) >= run->plan.seats * CLAIMS * 4);
	assert_true(campaign_with(run, 0) >= run->plan.seats * CLAIMS * 4);
	assert_int_equal(campaign_with(run, 0) + campaign_with(run, COLD), run->estimate.cells);
}

static void what_raises_nothing_is_not_used(void **state)
{
	struct run *run = *state;

	assert_int_equal(search(run), 0);
	assert_true(run->estimate.arms.count > PROVOKER_COUNT);
	assert_int_equal(campaign_with(run, 0), run->estimate.cells);
}

static void the_two_worst_are_tried_together(void **state)
{
	struct run *run = *state;

	run->machine.provokers = COLD | CHAIN;
	run->machine.raise = 5;
	assert_int_equal(search(run), 0);
	assert_non_null(find_arm(&run->estimate, COLD | CHAIN));
	assert_true(find_arm(&run->estimate, COLD | CHAIN)->ratio > 10);
	assert_true(campaign_with(run, COLD | CHAIN) > 0);
}

/* With many seats there is time for few passes: each arm gets its part of it. */
static void arms_share_the_campaign(void **state)
{
	struct run *run = *state;
	uint64_t toggles[3] = { 0 };

	seat(run, "pack:2 l3:1 l2:2 core:1 pu:2");
	run->machine.provokers = COLD | CHAIN;
	run->machine.raise = 5;
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		if (in_campaign(r))
			toggles[__builtin_popcount(r->cell.provokers)] += r->result.toggles;
	}
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 3; k++)
			assert_true(3 * toggles[i] > toggles[k]);
}

static void what_cannot_be_done_here_is_not_tried(void **state)
{
	struct run *run = *state;

	run->machine.provokers = COLD | 1u << PROVOKER_SIBLING;
	run->machine.raise = 5;
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++)
		assert_false(run->session.done[i].cell.provokers & 1u << PROVOKER_SIBLING);
	assert_non_null(find_arm(&run->estimate, COLD));
}

/* Unprovoked this machine keeps its promise; the published one is that of the worst. */
static void a_tail_that_is_provoked_counts(void **state)
{
	struct run *run = *state;

	run->machine.provokers = COLD;
	run->machine.raise = 50;
	set_tail(run, run->plan.promise / 10);
	for (unsigned long seed = 1; seed <= SOME_RUN; seed++) {
		assert_int_equal(search_with(run, seed), 0);
		assert_int_not_equal(run->estimate.verdict, VERDICT_PASS);
	}
}

/* Arms are measured at short waits that stand still, and speak for no wait. */
static void arms_speak_for_no_wait(void **state)
{
	struct run *run = *state;
	unsigned seen[CROSSING_COUNT] = { 0 };

	run->machine.provokers = COLD;
	run->machine.raise = 50;
	run->machine.still = 1000;
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		if (strcmp(r->stage, "provoke") != 0)
			continue;
		assert_int_equal(r->cell.stretch, 0);
		assert_int_equal(r->cell.first_wait, r->cell.second_wait);
		seen[r->cell.crossing]++;
	}
	assert_true(seen[CROSSING_LINE] > 0);
	assert_int_equal(seen[CROSSING_LINE], seen[CROSSING_PAGE]);
	assert_true(run->estimate.waits.first < 1500);
}

/* --- Company --- */

/* Repeats take their time: enough of it for a campaign. */
static void make_noisy(struct run *run, double share)
{
	run->machine.noisy = share;
	run->session.budget = 3 * run->plan.budget;
}

static void a_machine_too_noisy_is_inconclusive(void **state)
{
	struct run *run = *state;

	make_noisy(run, 0.9);
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "too noisy: ");
	assert_verdict(run, VERDICT_INCONCLUSIVE, run->session.noise.reason);
	assert_true(run->estimate.noisy > 0);
	assert_true(run->estimate.noisy < run->estimate.cells);
}

/* Tears in company stay tears, but what they mean for a quiet machine nobody knows. */
static void tears_of_a_noisy_machine_are_no_fail(void **state)
{
	struct run *run = *state;

	make_noisy(run, 0.9);
	run->machine.noisy_tail = STEEP;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "too noisy: ");
	assert_true(run->estimate.torn.seen[0]);
	assert_true(run->estimate.torn.wait[0] > 2 * run->machine.tmax[CLAIM_LINE].first);
}

static void tears_in_company_raise_the_waits(void **state)
{
	struct run *run = *state;

	make_noisy(run, 0.3);
	run->machine.noisy_tail = STEEP;
	run->machine.tail_ends = 6000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 6000);
	assert_true(run->estimate.claim[CLAIM_PAGE].waits.first >= 6000);
}

/* Also where the repeat was quiet: the bracket's longest wait tore, if only in company. */
static void the_bracket_forgets_no_tear_in_company(void **state)
{
	struct run *run = *state;
	uint64_t longest = run->plan.waits[run->plan.wait_count - 1];

	make_noisy(run, 0.3);
	run->machine.noisy_tail = 10 * STEEP;
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++) {
		if (!in_campaign(&run->session.done[i]))
			continue;
		assert_true((double)run->session.done[i].cell.first_wait >= 1.5 * (double)longest);
		return;
	}
	fail_msg("there was no campaign");
}

/* Two tears in five quiet toggles of ten are more than two in ten. */
static void toggles_in_company_excuse_no_tear(void **state)
{
	struct run *run = *state;

	choose_plan(run, "default");
	make_noisy(run, 0.6);
	run->machine.tail_ends = 3000;
	set_tail(run, 0.5 * run->plan.promise);
	assert_int_equal(search(run), 0);
	assert_true(run->session.noise.stayed < run->session.noise.cells / 2);
	assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 3000);
	assert_true(run->estimate.claim[CLAIM_PAGE].waits.first >= 3000);
}

/* Is it a cell of the campaign at the waits that it ended with? */
static bool is_final(const struct run *run, const struct cell_record *r)
{
	int claim = claim_of(r->cell.crossing);

	return in_campaign(r) && r->cell.first_wait == run->estimate.claim[claim].waits.first &&
	       r->cell.second_wait == run->estimate.claim[claim].waits.second;
}

static void some_noise_counts_for_its_tears_only(void **state)
{
	struct run *run = *state;
	uint64_t tears = 0, toggles = 0, noisy = 0;

	make_noisy(run, 0.3);
	run->machine.noisy_tail = run->plan.promise / 10;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		if (!is_final(run, r))
			continue;
		tears += cell_result_tears(&r->result);
		toggles += r->noisy ? 0 : r->result.toggles;
		noisy += r->noisy;
	}
	assert_true(tears > 0 && noisy > 0);
	assert_int_equal(run->estimate.tears, tears);
	assert_int_equal(run->estimate.toggles, toggles);
	assert_true(run->estimate.noisy >= noisy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(a_tail_below_the_promise_passes),
		ON_RUN(tears_among_the_toggles_are_told),
		ON_RUN(a_tail_above_the_promise_never_passes),
		ON_RUN(a_rate_just_at_the_promise_is_no_pass),
		ON_RUN(the_last_candidate_has_time),
		ON_RUN(waits_without_hope_are_given_up),
		ON_RUN(one_placement_speaks_for_itself),
		ON_RUN(a_tail_on_pages_leaves_lines_alone),
		ON_RUN(twice_the_promise_in_one_place_passes_by_luck_only),
		ON_RUN(a_little_more_than_the_promise_passes_by_luck_only),
		ON_RUN(twice_the_promise_everywhere_passes_by_luck_only),
		ON_RUN(a_tenth_of_the_promise_mostly_passes),
		ON_RUN(a_storm_is_published_as_the_worst_time),
		ON_RUN(a_storm_that_ended_shorter_waits_proves_no_longer_ones),
		ON_RUN(a_provoker_is_found_and_used),
		ON_RUN(what_raises_nothing_is_not_used),
		ON_RUN(the_two_worst_are_tried_together),
		ON_RUN(arms_share_the_campaign),
		ON_RUN(what_cannot_be_done_here_is_not_tried),
		ON_RUN(a_tail_that_is_provoked_counts),
		ON_RUN(arms_speak_for_no_wait),
		ON_RUN(a_machine_too_noisy_is_inconclusive),
		ON_RUN(tears_of_a_noisy_machine_are_no_fail),
		ON_RUN(tears_in_company_raise_the_waits),
		ON_RUN(the_bracket_forgets_no_tear_in_company),
		ON_RUN(toggles_in_company_excuse_no_tear),
		ON_RUN(some_noise_counts_for_its_tears_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
