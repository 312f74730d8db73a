/* SPDX-License-Identifier: MIT */
/* The search on machines that always do the same: its rules, one by one. */
#include "calibrate/bound.h"
#include "calibrate/sequential.h"
#include "calibrate/tests/made_up.h"

static void waits_that_hold_are_found(void **state)
{
	struct run *run = *state;
	const struct estimate *e = &run->estimate;

	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	for (unsigned i = 0; i < CLAIMS; i++) {
		const struct claim *c = &e->claim[i];

		assert_true(c->waits.first >= run->machine.tmax[i].first);
		assert_true(c->waits.second >= run->machine.tmax[i].second);
		/* Not far off either: what one waits for nothing is paid at every change. */
		assert_true(c->waits.first <= 2 * run->machine.tmax[i].first);
		assert_true(c->waits.second <= c->waits.first);
		assert_true(c->torn.seen[0] && c->torn.wait[0] < run->machine.tmax[i].first);
		assert_true(c->torn.seen[1] && c->torn.wait[1] < run->machine.tmax[i].second);
		assert_true(c->upper_p <= run->plan.promise);
	}
	assert_int_equal(e->tears, 0);
	assert_true(e->tears_here);
	assert_int_equal(e->window, 64);
	assert_int_equal(e->stretch, run->plan.stretch);
	assert_true(run->spent <= run->plan.budget * 1.1);
}

/* Half as much again as what tore in the bracket. */
static void the_campaign_begins_above_what_tore(void **state)
{
	struct run *run = *state;

	assert_int_equal(search(run), 0);
	for (unsigned i = 0; i < CLAIMS; i++) {
		const struct claim *c = &run->estimate.claim[i];

		assert_true((double)c->waits.first >= 1.5 * (double)c->torn.wait[0]);
		assert_true((double)c->waits.second >= 1.5 * (double)c->torn.wait[1]);
	}
}

/* Tears of the second wait are the rarer kind: that there were none says less. */
static void the_second_wait_is_at_least_half_the_first(void **state)
{
	struct run *run = *state;
	const struct claim *line = &run->estimate.claim[CLAIM_LINE];

	run->machine.tmax[CLAIM_LINE] = (struct waits){ 1000, 0 };
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_true(2 * line->waits.second >= line->waits.first);
	run->machine.late[CLAIM_LINE].first = 9000;
	assert_int_equal(search(run), 0);
	assert_true(line->waits.first >= 9000);
	assert_true(2 * line->waits.second >= line->waits.first);
}

static bool tried(const struct run *run, const struct seat *where, unsigned claim, unsigned split)
{
	const struct claim *c = &run->estimate.claim[claim];

	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		if (in_campaign(r) && r->cell.first_wait == c->waits.first &&
		    r->cell.second_wait == c->waits.second && r->cell.crossing == c->crossing &&
		    r->cell.placement == where->placement &&
		    r->cell.executors == where->executors && r->cell.split == split &&
		    r->cell.stretch == run->plan.stretch)
			return true;
	}
	return false;
}

static void the_campaign_leaves_nothing_out(void **state)
{
	struct run *run = *state;

	run->machine.late[CLAIM_PAGE].first = 4000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	for (unsigned i = 0; i < run->plan.seats; i++) {
		for (unsigned split = 1; split <= 4; split++) {
			assert_true(tried(run, &run->plan.seat[i], CLAIM_LINE, split));
			assert_true(tried(run, &run->plan.seat[i], CLAIM_PAGE, split));
		}
	}
}

static void tears_in_the_campaign_raise_the_wait(void **state)
{
	struct run *run = *state;

	run->machine.late[CLAIM_LINE].first = run->machine.late[CLAIM_PAGE].first = 9000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_true(run->estimate.waits.first >= 9000);
	assert_true(run->estimate.waits.first <= 9000 * 3 / 2 + 100);
	assert_int_equal(run->estimate.tears, 0);
	assert_true(run->estimate.torn.wait[0] >= 1000);
}

static void the_second_wait_is_raised_alone(void **state)
{
	struct run *run = *state;

	run->machine.late[CLAIM_LINE].second = 5000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_true(run->estimate.claim[CLAIM_LINE].waits.second >= 5000);
	assert_true(run->estimate.claim[CLAIM_LINE].waits.first <=
		    2 * run->machine.tmax[CLAIM_LINE].first);
}

/* Who owns sites across lines only need not wait for pages. */
static void each_claim_waits_for_itself(void **state)
{
	for (unsigned slow = 0; slow < CLAIMS; slow++) {
		struct run *run = *state;
		const struct claim *claim = run->estimate.claim;

		run->machine = ordinary;
		run->machine.late[slow] = (struct waits){ 9000, 5000 };
		assert_int_equal(search(run), 0);
		assert_verdict(run, VERDICT_PASS, "0 tears in ");
		assert_true(claim[slow].waits.first >= 9000);
		assert_true(claim[slow].waits.second >= 5000);
		assert_true(claim[!slow].waits.first <= 2 * run->machine.tmax[!slow].first);
		assert_true(claim[!slow].waits.second <= 2 * run->machine.tmax[!slow].first);
		assert_int_equal(run->estimate.waits.first, claim[slow].waits.first);
		assert_int_equal(run->estimate.waits.second, claim[slow].waits.second);
	}
}

/* The bracket looks at waits that stand still as well: they are not the library's. */
static void waits_that_stand_still_raise_nothing(void **state)
{
	struct run *run = *state;

	run->machine.still = UINT64_MAX;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_true(run->estimate.waits.first <= 2 * run->machine.tmax[CLAIM_LINE].first);
	assert_true(run->estimate.torn.wait[0] < run->machine.tmax[CLAIM_LINE].first);
}

static void the_bracket_runs_with_and_without_stretch(void **state)
{
	struct run *run = *state;
	unsigned count[2] = { 0, 0 };

	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++)
		if (strcmp(run->session.done[i].stage, "bracket") == 0)
			count[run->session.done[i].cell.stretch == 0]++;
	assert_true(count[0] >= run->plan.wait_count * CLAIMS * 4);
	assert_int_equal(count[0], count[1]);
}

static double stage_seconds(const struct run *run, const char *stage)
{
	double seconds = 0;

	for (size_t i = 0; i < run->session.count; i++)
		if (strcmp(run->session.done[i].stage, stage) == 0)
			seconds += run->session.done[i].cell.seconds;
	return seconds;
}

/* Cells that would be too short are not made short, but left out. */
static void little_time_is_not_overdrawn(void **state)
{
	static const double budgets[] = { 55, 40, 25 };
	struct run *run = *state;

	seat(run, "pack:2 l3:1 l2:2 core:1 pu:2");
	run->machine.provokers = 1u << PROVOKER_COLD_BACK | 1u << PROVOKER_CHAIN;
	run->machine.raise = 5;
	for (unsigned i = 0; i < 3; i++) {
		run->plan.budget = run->session.budget = budgets[i];
		assert_int_equal(search(run), 0);
		assert_true(stage_seconds(run, "bracket") <=
			    run->plan.bracket * budgets[i] * 1.001);
		assert_true(stage_seconds(run, "provoke") <=
			    run->plan.provoke * budgets[i] * 1.001);
		assert_true(stage_seconds(run, "bracket") >= run->plan.bracket * budgets[i] * 0.8);
	}
}

static unsigned bracket_at(const struct run *run, uint64_t wait, uint64_t stretch)
{
	unsigned count = 0;

	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		count += strcmp(r->stage, "bracket") == 0 && r->cell.stretch == stretch &&
			 r->cell.first_wait == wait && r->cell.second_wait == wait;
	}
	return count;
}

/* The library's way goes first, then the coarser grid. */
static void a_short_bracket_looks_where_it_counts(void **state)
{
	struct run *run = *state;
	const struct plan *plan = &run->plan;

	run->plan.budget = run->session.budget = 15;
	assert_int_equal(search(run), 0);
	for (unsigned i = 0; i < plan->wait_count; i++) {
		assert_true(bracket_at(run, plan->waits[i], plan->stretch) > 0);
		assert_int_equal(bracket_at(run, plan->waits[i], 0), 0);
	}
	run->plan.budget = run->session.budget = 8;
	assert_int_equal(search(run), 0);
	for (unsigned i = 0; i < plan->wait_count; i++)
		assert_int_equal(bracket_at(run, plan->waits[i], plan->stretch) > 0, i % 2 == 0);
}

/* Then the campaign runs without anything, at the usual rhythm. */
static void no_time_to_provoke_is_no_harm(void **state)
{
	struct run *run = *state;
	struct cell usual;

	cell_defaults(&usual);
	run->plan.provoke = 0;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_int_equal(run->estimate.arms.count, 0);
	assert_true(run->estimate.cells > 0);
	for (size_t i = 0; i < run->session.count; i++) {
		assert_int_equal(run->session.done[i].cell.provokers, 0);
		assert_int_equal(run->session.done[i].cell.rest, usual.rest);
		assert_int_equal(run->session.done[i].cell.loop, usual.loop);
	}
}

static void the_fit_proposes(void **state)
{
	struct run *run = *state;

	run->machine.proposed[CLAIM_PAGE] = (struct waits){ 4010, 2510 };
	run->machine.proposed[CLAIM_LINE] = (struct waits){ 300, 200 };
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_int_equal(run->estimate.claim[CLAIM_PAGE].waits.first, 4100);
	assert_int_equal(run->estimate.claim[CLAIM_PAGE].waits.second, 2600);
	/* It does not speak against what was seen to tear. */
	assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 700);
}

static void the_campaign_decides(void **state)
{
	struct run *run = *state;

	run->machine.proposed[CLAIM_LINE] = (struct waits){ 4000, 2500 };
	run->machine.late[CLAIM_LINE].first = 6000;
	assert_int_equal(search(run), 0);
	assert_true(run->estimate.claim[CLAIM_LINE].waits.first >= 6000);
	run->machine.proposed[CLAIM_LINE].first = run->plan.ceiling + 1;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_FAIL, "no wait up to ");
}

static void beyond_the_ceiling_there_is_no_answer(void **state)
{
	struct run *run = *state;

	run->machine.late[CLAIM_LINE].first = UINT64_MAX;
	run->plan.ceiling = 5000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_FAIL, "no wait up to 5000 ticks");
	for (size_t i = 0; i < run->session.count; i++)
		if (in_campaign(&run->session.done[i]))
			assert_true(run->session.done[i].cell.first_wait <= 5000);
}

static void what_never_tears_is_bounded_from_above_only(void **state)
{
	struct run *run = *state;

	memset(run->machine.tmax, 0, sizeof(run->machine.tmax));
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	assert_false(run->estimate.torn.seen[0]);
	assert_false(run->estimate.torn.seen[1]);
	assert_true(run->estimate.waits.first > 0);
	assert_true(run->estimate.waits.second > 0);
}

static void a_blind_oracle_proves_nothing(void **state)
{
	struct run *run = *state;

	for (unsigned blind = 0; blind < 2; blind++) {
		run->machine = ordinary;
		run->machine.standing_seen[blind] = false;
		assert_int_equal(search(run), 0);
		assert_verdict(run, VERDICT_INCONCLUSIVE, "did not see");
	}
}

/* A machine on which a bare store never tears is a good one, not an unseen one. */
static void a_naive_store_need_not_tear(void **state)
{
	struct run *run = *state;

	run->machine.naive_tears = false;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	assert_false(run->estimate.tears_here);
}

static void nothing_holds_where_words_tear(void **state)
{
	struct run *run = *state;

	run->machine.store_tears = CROSSING_NONE;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_FAIL, "8-byte word tore");
}

static void a_store_that_tears_limits_the_window(void **state)
{
	struct run *run = *state;

	run->machine.store_tears = CROSSING_16;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, " tears in ");
	assert_int_equal(run->estimate.window, 16);
}

/* Nothing tore, and still: so few toggles keep no such promise. */
static void too_little_time_is_inconclusive(void **state)
{
	struct run *run = *state;

	run->plan.promise = 1e-9;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, " 0 tears in ");
	assert_verdict(run, VERDICT_INCONCLUSIVE, "(1e-09 wanted)");
}

/* Enough toggles, but not everywhere. */
static void a_campaign_that_is_cut_short_is_inconclusive(void **state)
{
	struct run *run = *state;
	double before;

	run->plan.promise = 0.5;
	memset(run->machine.tmax, 0, sizeof(run->machine.tmax));
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "0 tears in ");
	before = run->spent - stage_seconds(run, "campaign") -
		 START_UP * (double)run->estimate.cells;
	run->session.budget = before + 10 * CELL_MIN;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "too little time");
	assert_true(run->estimate.toggles > 0);
}

static void cells_that_do_not_end_prove_nothing(void **state)
{
	struct run *run = *state;

	run->machine.campaign_ends = OUTCOME_HANG;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, " 0 of ");
}

static unsigned sections_of(const struct estimate *e, unsigned claim)
{
	unsigned count = 0;

	for (unsigned i = 0; i < e->sections; i++)
		count += claim_of(e->section[i].crossing) == (int)claim;
	return count;
}

/* On one more placement each has to be surer. */
static void every_placement_and_crossing_is_a_section(void **state)
{
	static const char *const machines[] = { "pack:1 l3:1 l2:2 core:1 pu:1",
						"pack:2 l3:1 l2:2 core:1 pu:2" };
	static const unsigned placements[] = { 2, 5 };
	struct run *run = *state;
	const struct estimate *e = &run->estimate;

	for (unsigned m = 0; m < 2; m++) {
		seat(run, machines[m]);
		assert_int_equal(search(run), 0);
		assert_int_equal(sections_of(e, CLAIM_LINE), placements[m]);
		assert_int_equal(sections_of(e, CLAIM_PAGE), placements[m]);
		for (unsigned i = 0; i < e->sections; i++) {
			const struct section *s = &e->section[i];

			/* At least that sure; the ways to provoke have to be right, too. */
			assert_true(s->upper_p >= sequential_upper(s->tears, s->toggles,
								   run->plan.promise,
								   (1 - CONFIDENCE) / e->sections));
		}
	}
}

static void an_interrupt_ends_every_stage(void **state)
{
	struct run *run = *state;
	size_t all, last = 0;

	assert_int_equal(search(run), 0);
	all = run->session.count;
	for (size_t at = 1; at <= all; at += 1 + at / 4) {
		run->machine.fails_at = at;
		run->machine.fails_with = -EINTR;
		assert_int_equal(search(run), -EINTR);
		assert_verdict(run, VERDICT_INCONCLUSIVE, "interrupted");
		assert_int_equal(run->session.count, at - 1);
		last = at;
	}
	assert_true(last > all / 2);
}

static void what_fails_is_passed_on(void **state)
{
	struct run *run = *state;

	run->machine.fails_at = 30;
	run->machine.fails_with = -EIO;
	assert_int_equal(search(run), -EIO);
	assert_int_equal(run->session.count, 29);
	assert_int_not_equal(run->estimate.verdict, VERDICT_PASS);
}

/* A resumed run must ask for the same cells, or nothing is found in the journal. */
static void the_way_follows_from_the_records(void **state)
{
	struct run *run = *state;
	struct cell *first;
	size_t count;

	run->machine.late[CLAIM_PAGE].first = 4000;
	assert_int_equal(search(run), 0);
	count = run->session.count;
	first = calloc(count, sizeof(*first));
	for (size_t i = 0; i < count; i++)
		first[i] = run->session.done[i].cell;
	assert_int_equal(search(run), 0);
	assert_int_equal(run->session.count, count);
	for (size_t i = 0; i < count; i++) {
		char command[2][1024];

		cell_command(&first[i], command[0], sizeof(command[0]));
		cell_command(&run->session.done[i].cell, command[1], sizeof(command[1]));
		assert_string_equal(command[0], command[1]);
	}
	free(first);
}

static void no_two_cells_share_a_seed(void **state)
{
	struct run *run = *state;

	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(run->session.done[i].cell.seed,
					     run->session.done[k].cell.seed);
}

static void one_cpu_is_searched_too(void **state)
{
	struct run *run = *state;

	seat(run, "pu:1");
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "only one CPU");
	for (size_t i = 0; i < run->session.count; i++)
		assert_int_equal(run->session.done[i].cell.placement, PLACEMENT_OVERSUBSCRIBED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(waits_that_hold_are_found),
		ON_RUN(the_campaign_begins_above_what_tore),
		ON_RUN(the_second_wait_is_at_least_half_the_first),
		ON_RUN(the_campaign_leaves_nothing_out),
		ON_RUN(tears_in_the_campaign_raise_the_wait),
		ON_RUN(the_second_wait_is_raised_alone),
		ON_RUN(each_claim_waits_for_itself),
		ON_RUN(waits_that_stand_still_raise_nothing),
		ON_RUN(the_bracket_runs_with_and_without_stretch),
		ON_RUN(little_time_is_not_overdrawn),
		ON_RUN(a_short_bracket_looks_where_it_counts),
		ON_RUN(no_time_to_provoke_is_no_harm),
		ON_RUN(the_fit_proposes),
		ON_RUN(the_campaign_decides),
		ON_RUN(beyond_the_ceiling_there_is_no_answer),
		ON_RUN(what_never_tears_is_bounded_from_above_only),
		ON_RUN(a_blind_oracle_proves_nothing),
		ON_RUN(a_naive_store_need_not_tear),
		ON_RUN(nothing_holds_where_words_tear),
		ON_RUN(a_store_that_tears_limits_the_window),
		ON_RUN(too_little_time_is_inconclusive),
		ON_RUN(a_campaign_that_is_cut_short_is_inconclusive),
		ON_RUN(cells_that_do_not_end_prove_nothing),
		ON_RUN(every_placement_and_crossing_is_a_section),
		ON_RUN(an_interrupt_ends_every_stage),
		ON_RUN(what_fails_is_passed_on),
		ON_RUN(the_way_follows_from_the_records),
		ON_RUN(no_two_cells_share_a_seed),
		ON_RUN(one_cpu_is_searched_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
