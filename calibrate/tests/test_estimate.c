/* SPDX-License-Identifier: MIT */
/* What is summed up, for what, and what it speaks against. */
#include "calibrate/tests/estimate_run.h"

#define assert_p(value, tears, toggles)                                                            \
	assert_true((value) == bound_upper((tears), (toggles), CONFIDENCE))

static void add_store(struct run *run, enum crossing crossing, uint64_t toggles, uint64_t tears)
{
	struct cell_record *r = add(run, toggles);

	strcpy(r->stage, "window");
	r->cell.protocol = PROTOCOL_ATOMIC;
	r->cell.crossing = crossing;
	r->result.tears[TEAR_OTHER] = tears;
}

static void nothing_measured_is_nothing_known(void **state)
{
	const struct estimate *e = make(*state);

	assert_int_equal(e->stretch, STRETCH);
	assert_int_equal(e->toggles, 0);
	assert_int_equal(e->tears, 0);
	assert_true(e->upper_p == 1);
	assert_true(e->pooled_p == 1);
	assert_torn(&e->torn, -1, -1);
	for (unsigned i = 0; i < CLAIMS; i++) {
		assert_int_equal(e->claim[i].toggles, 0);
		assert_true(e->claim[i].upper_p == 1);
		assert_true(e->claim[i].drift_p == 1);
		assert_false(e->claim[i].drifted);
		assert_torn(&e->claim[i].torn, -1, -1);
	}
	assert_false(e->tears_here);
	assert_false(e->word_tore);
	assert_false(e->have_torn_cell);
	assert_int_equal(e->window, 8);
	assert_int_equal(e->window_toggles, 0);
	assert_true(e->window_p == 1);
	assert_int_equal(e->sections, 0);
	assert_int_equal(e->worsts, 0);
	assert_int_equal(e->cells, 0);
	assert_int_equal(e->noisy, 0);
	assert_int_equal(e->arms.count, 0);
}

static void the_machine_waits_as_long_as_either_claim_wants(void **state)
{
	const struct estimate *e = make(*state);

	assert_int_equal(e->claim[CLAIM_LINE].crossing, CROSSING_LINE);
	assert_int_equal(e->claim[CLAIM_LINE].waits.first, FIRST);
	assert_int_equal(e->claim[CLAIM_LINE].waits.second, SECOND);
	assert_int_equal(e->claim[CLAIM_PAGE].crossing, CROSSING_PAGE);
	assert_int_equal(e->claim[CLAIM_PAGE].waits.first, PAGE_FIRST);
	assert_int_equal(e->claim[CLAIM_PAGE].waits.second, PAGE_SECOND);
	assert_int_equal(e->waits.first, PAGE_FIRST);
	assert_int_equal(e->waits.second, SECOND);
}

static void only_the_campaign_at_the_final_waits_counts(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct cell_record *r;

	add(run, 100)->result.tears[TEAR_OLD_FRONT] = 1;
	add(run, 20);
	add_waits(run, "bracket", FIRST, SECOND);
	add_waits(run, "proof", FIRST, SECOND);
	add_waits(run, "provoke", FIRST, SECOND);
	add_waits(run, "campaign", FIRST - 1, SECOND);
	add_waits(run, "campaign", FIRST, SECOND + 1);
	/* The waits of the other claim are none of this one's. */
	add_waits(run, "campaign", PAGE_FIRST, PAGE_SECOND);
	add(run, 3000)->cell.protocol = PROTOCOL_MEMBARRIER;
	add(run, 3000)->cell.protocol = PROTOCOL_NO_INT3;
	add(run, 3000)->cell.protocol = PROTOCOL_FRONT_FIRST;
	/* Nothing is claimed for what crosses neither line nor page. */
	r = add(run, 3000);
	r->cell.crossing = CROSSING_16;
	r->result.tears[TEAR_OTHER] = 7;
	e = make(run);
	assert_int_equal(e->toggles, 120);
	assert_int_equal(e->tears, 1);
	assert_int_equal(e->claim[CLAIM_LINE].toggles, 120);
	assert_int_equal(e->claim[CLAIM_LINE].tears, 1);
	assert_int_equal(e->claim[CLAIM_PAGE].toggles, 0);
	assert_int_equal(e->sections, 1);
	assert_int_equal(e->section[0].toggles, 120);
	assert_int_equal(e->section[0].tears, 1);
	assert_int_equal(e->cells, 5);
	assert_torn(&e->torn, FIRST, -1);
}

/* The library stretches its waits; waits that stand still are another protocol. */
static void only_cells_with_the_stretch_of_the_plan_speak_for_the_waits(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 100);
	add(run, 5000)->cell.stretch = 0;
	add(run, 5000)->cell.stretch = STRETCH + 1;
	run->record[1].result.tears[TEAR_OLD_FRONT] = 3;
	run->record[2].result.tears[TEAR_NEW_FRONT] = 3;
	run->record[2].cell.placement = PLACEMENT_SAME_CORE;
	e = make(run);
	assert_int_equal(e->toggles, 100);
	assert_int_equal(e->tears, 0);
	assert_int_equal(e->cells, 1);
	assert_int_equal(e->sections, 1);
	assert_torn(&e->torn, -1, -1);
	assert_torn(&e->claim[CLAIM_LINE].torn, -1, -1);
	assert_false(e->have_torn_cell);
	run->plan.stretch = 0;
	assert_int_equal(make(run)->toggles, 5000);
	assert_int_equal(run->estimate.tears, 3);
}

static void a_cell_that_did_not_end_proves_nothing(void **state)
{
	static const enum outcome broken[] = { OUTCOME_KILLED, OUTCOME_HANG };
	struct run *run = *state;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		run->count = 0;
		add(run, 100);
		add(run, 5000)->result.outcome = broken[i];
		assert_int_equal(make(run)->toggles, 100);
		assert_true(run->estimate.section[0].upper_p == bound(0, 100, 2));
		/* Its tears are real all the same. */
		run->record[1].result.tears[TEAR_OLD_FRONT] = 1;
		assert_torn(&make(run)->torn, FIRST, -1);
		assert_int_equal(run->estimate.tears, 1);
		assert_true(run->estimate.section[0].upper_p == bound(1, 100, 2));
		assert_true(run->estimate.have_torn_cell);
	}
}

/* A tear in company is a tear; toggles without one in company are no proof. */
static void a_noisy_cell_counts_for_its_tears_only(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 100);
	add(run, 5000)->noisy = true;
	e = make(run);
	assert_int_equal(e->toggles, 100);
	assert_true(e->section[0].upper_p == bound(0, 100, 2));
	assert_int_equal(e->cells, 2);
	assert_int_equal(e->noisy, 1);
	run->record[1].result.tears[TEAR_NEW_FRONT] = 2;
	e = make(run);
	assert_int_equal(e->toggles, 100);
	assert_int_equal(e->tears, 2);
	assert_int_equal(e->claim[CLAIM_LINE].tears, 2);
	assert_true(e->section[0].upper_p == bound(2, 100, 2));
	assert_torn(&e->torn, -1, SECOND);
	assert_true(e->have_torn_cell);
	assert_string_equal(e->torn_cell.key, "record 2");
}

/* Noise elsewhere is no reason to doubt the campaign. */
static void only_the_campaign_has_noise_counted(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", 100, 100)->noisy = true;
	add_waits(run, "provoke", 200, 200)->noisy = true;
	add(run, 100);
	add_waits(run, "campaign", FIRST + 1, SECOND)->noisy = true;
	assert_int_equal(make(run)->cells, 2);
	assert_int_equal(run->estimate.noisy, 1);
}

static void a_section_seen_only_in_the_bracket_is_unproved(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct cell_record *r;

	add(run, 1000000);
	r = add_waits(run, "bracket", 100, 100);
	r->cell.placement = PLACEMENT_SAME_CORE;
	e = make(run);
	assert_int_equal(e->sections, 2);
	assert_int_equal(e->section[1].toggles, 0);
	assert_true(e->section[1].upper_p == 1);
	assert_true(e->claim[CLAIM_LINE].upper_p == 1);
	assert_true(e->upper_p == 1);
	assert_true(e->pooled_p == bound(0, 1000000, 1));
}

static void tears_blame_the_wait_of_their_kind(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_waits(run, "bracket", 700, 750)->result.tears[TEAR_OLD_FRONT] = 1;
	add_waits(run, "bracket", 400, 450)->result.tears[TEAR_NEW_FRONT] = 1;
	/* Lower waits that tore later change nothing. */
	add_waits(run, "campaign", 100, 150)->result.tears[TEAR_OLD_FRONT] = 9;
	add_waits(run, "campaign", 100, 150)->result.tears[TEAR_NEW_FRONT] = 9;
	/* Higher ones that did not tear neither. */
	add_waits(run, "campaign", 900, 950);
	e = make(run);
	assert_torn(&e->torn, 700, 450);
	assert_torn(&e->section[0].torn, 700, 450);
}

static void tears_of_no_known_kind_blame_both(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", 700, 750)->result.tears[TEAR_OTHER] = 1;
	assert_torn(&make(run)->torn, 700, 750);
}

static void both_kinds_in_one_cell(void **state)
{
	struct run *run = *state;
	struct cell_record *r = add_waits(run, "bracket", 700, 750);

	r->result.tears[TEAR_OLD_FRONT] = 1;
	r->result.tears[TEAR_NEW_FRONT] = 2;
	assert_torn(&make(run)->torn, 700, 750);
}

static void other_protocols_say_nothing_of_waits(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct torn torn = { 0 };

	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		struct cell_record *r = add(run, 1000);

		if (p == PROTOCOL_WAIT)
			continue;
		r->cell.protocol = (enum protocol)p;
		r->result.tears[TEAR_OTHER] = 5;
		torn_add(&torn, r);
	}
	assert_torn(&torn, -1, -1);
	e = make(run);
	assert_torn(&e->torn, -1, -1);
	assert_false(e->have_torn_cell);
	assert_int_equal(e->tears, 0);
}

static void a_wait_of_nothing_can_tear(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", 0, 0)->result.tears[TEAR_OLD_FRONT] = 1;
	assert_torn(&make(run)->torn, 0, -1);
	assert_int_equal(torn_highest(&run->estimate.torn), 0);
}

static void the_highest_of_both_waits(void **state)
{
	const struct torn first = { { true, true }, { 700, 600 } },
			  second = { { true, true }, { 600, 800 } },
			  none = { { false, false }, { 0, 0 } };

	(void)state;
	assert_int_equal(torn_highest(&first), 700);
	assert_int_equal(torn_highest(&second), 800);
	assert_int_equal(torn_highest(&none), 0);
}

static void lines_and_pages_tear_apart(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_waits(run, "bracket", 700, 750)->result.tears[TEAR_OLD_FRONT] = 1;
	add_waits(run, "bracket", 900, 950)->result.tears[TEAR_NEW_FRONT] = 1;
	run->record[1].cell.crossing = CROSSING_PAGE;
	add(run, 500);
	add_across(run, CROSSING_PAGE, 700)->result.tears[TEAR_OLD_FRONT] = 2;
	e = make(run);
	assert_torn(&e->claim[CLAIM_LINE].torn, 700, -1);
	assert_torn(&e->claim[CLAIM_PAGE].torn, PAGE_FIRST, 950);
	assert_torn(&e->torn, PAGE_FIRST, 950);
	assert_int_equal(e->claim[CLAIM_LINE].toggles, 500);
	assert_int_equal(e->claim[CLAIM_LINE].tears, 0);
	assert_int_equal(e->claim[CLAIM_PAGE].toggles, 700);
	assert_int_equal(e->claim[CLAIM_PAGE].tears, 2);
	assert_int_equal(e->toggles, 1200);
	assert_int_equal(e->tears, 2);
}

static void nothing_is_claimed_inside_a_line(void **state)
{
	(void)state;
	assert_int_equal(claim_of(CROSSING_LINE), CLAIM_LINE);
	assert_int_equal(claim_of(CROSSING_PAGE), CLAIM_PAGE);
	for (int c = CROSSING_NONE; c <= CROSSING_32; c++)
		assert_int_equal(claim_of((enum crossing)c), -1);
}

static void sections_keep_to_themselves(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct cell_record *r;

	add(run, 1000);
	add_across(run, CROSSING_PAGE, 300);
	r = add(run, 50);
	r->cell.placement = PLACEMENT_SAME_CORE;
	r->result.tears[TEAR_NEW_FRONT] = 2;
	r = add(run, 7);
	r->cell.split = 1;
	r->cell.executors = 2;
	r->cell.pair = PAIR_WORD;
	r->cell.provokers = 1u << PROVOKER_COLD_BACK;
	e = make(run);
	assert_int_equal(e->sections, 3);
	assert_int_equal(e->section[0].crossing, CROSSING_LINE);
	assert_int_equal(e->section[0].toggles, 1007);
	assert_int_equal(e->section[0].tears, 0);
	assert_int_equal(e->section[1].crossing, CROSSING_PAGE);
	assert_int_equal(e->section[1].toggles, 300);
	assert_int_equal(e->section[2].placement, PLACEMENT_SAME_CORE);
	assert_int_equal(e->section[2].toggles, 50);
	assert_int_equal(e->section[2].tears, 2);
	assert_torn(&e->section[0].torn, -1, -1);
	assert_torn(&e->section[2].torn, -1, SECOND);
}

static void every_section_has_room(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	for (unsigned i = 0; i < PLACEMENT_COUNT * CLAIMS; i++)
		add_across(run, i % CLAIMS ? CROSSING_PAGE : CROSSING_LINE, 1 + i)->cell.placement =
			(enum placement)(i / CLAIMS);
	e = make(run);
	assert_int_equal(e->sections, PLACEMENT_COUNT * CLAIMS);
	assert_true(e->sections <= SECTIONS_MAX);
	for (unsigned i = 0; i < e->sections; i++)
		assert_int_equal(e->section[i].toggles, 1 + i);
}

static void the_window_ends_at_the_first_crossing_that_tears(void **state)
{
	static const struct {
		uint64_t tears[4]; /* none, 8, 16, 32 */
		unsigned window;
		uint64_t toggles, least;
	} cases[] = {
		{ { 0, 0, 0, 0 }, 64, 200 + 300 + 400, 200 },
		{ { 0, 0, 0, 1 }, 32, 200 + 300, 200 },
		{ { 0, 0, 1, 0 }, 16, 200, 200 },
		{ { 0, 1, 0, 0 }, 8, 1000, 1000 },
	};
	struct run *run = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct estimate *e;

		run->count = 0;
		add_store(run, CROSSING_NONE, 1000, cases[i].tears[0]);
		add_store(run, CROSSING_32, 400, cases[i].tears[3]);
		add_store(run, CROSSING_16, 300, cases[i].tears[2]);
		add_store(run, CROSSING_8, 150, 0);
		add_store(run, CROSSING_8, 50, cases[i].tears[1]);
		e = make(run);
		assert_int_equal(e->window, cases[i].window);
		assert_int_equal(e->window_toggles, cases[i].toggles);
		assert_p(e->window_p, 0, cases[i].least);
		assert_false(e->word_tore);
	}
}

static void a_crossing_that_was_not_tried_ends_the_window(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_store(run, CROSSING_NONE, 1000, 0);
	add_store(run, CROSSING_8, 500, 0);
	add_store(run, CROSSING_16, 0, 0);
	add_store(run, CROSSING_32, 500, 0);
	e = make(run);
	assert_int_equal(e->window, 16);
	assert_p(e->window_p, 0, 500);
}

static void a_word_that_tears_is_told(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_store(run, CROSSING_NONE, 1000, 1);
	add_store(run, CROSSING_8, 500, 0);
	e = make(run);
	assert_true(e->word_tore);
	assert_int_equal(e->window, 8);
	assert_p(e->window_p, 1, 1000);
}

static void only_a_naive_store_shows_that_fetches_tear(void **state)
{
	struct run *run = *state;

	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		struct cell_record *r;

		run->count = 0;
		r = add(run, 1000);
		r->cell.protocol = (enum protocol)p;
		assert_false(make(run)->tears_here);
		r->result.tears[TEAR_OLD_FRONT] = 1;
		assert_int_equal(make(run)->tears_here, p == PROTOCOL_NAIVE);
	}
}

static void the_torn_cell_has_the_highest_wait_then_the_highest_rate(void **state)
{
	struct run *run = *state;
	struct cell_record *r;

	add_waits(run, "bracket", 500, 500)->result.tears[TEAR_OLD_FRONT] = 900;
	assert_string_equal(make(run)->torn_cell.key, "record 1");
	add_waits(run, "bracket", 600, 600)->result.tears[TEAR_NEW_FRONT] = 1;
	assert_string_equal(make(run)->torn_cell.key, "record 2");
	/* A long first wait is no excuse for the second. */
	add_waits(run, "bracket", 9000, 100)->result.tears[TEAR_NEW_FRONT] = 5;
	assert_string_equal(make(run)->torn_cell.key, "record 2");
	r = add_waits(run, "bracket", 600, 100);
	r->result.tears[TEAR_OLD_FRONT] = 3;
	r->result.toggles = 4000;
	assert_string_equal(make(run)->torn_cell.key, "record 2");
	r->result.toggles = 2000;
	assert_string_equal(make(run)->torn_cell.key, "record 4");
	add_waits(run, "campaign", 9000, 9000);
	assert_string_equal(make(run)->torn_cell.key, "record 4");
}

static void verdicts_have_names(void **state)
{
	(void)state;
	assert_string_equal(verdict_name(VERDICT_PASS), "pass");
	assert_string_equal(verdict_name(VERDICT_FAIL), "fail");
	assert_string_equal(verdict_name(VERDICT_INCONCLUSIVE), "inconclusive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(nothing_measured_is_nothing_known),
		ON_RUN(the_machine_waits_as_long_as_either_claim_wants),
		ON_RUN(only_the_campaign_at_the_final_waits_counts),
		ON_RUN(only_cells_with_the_stretch_of_the_plan_speak_for_the_waits),
		ON_RUN(a_cell_that_did_not_end_proves_nothing),
		ON_RUN(a_noisy_cell_counts_for_its_tears_only),
		ON_RUN(only_the_campaign_has_noise_counted),
		ON_RUN(a_section_seen_only_in_the_bracket_is_unproved),
		ON_RUN(tears_blame_the_wait_of_their_kind),
		ON_RUN(tears_of_no_known_kind_blame_both),
		ON_RUN(both_kinds_in_one_cell),
		ON_RUN(other_protocols_say_nothing_of_waits),
		ON_RUN(a_wait_of_nothing_can_tear),
		cmocka_unit_test(the_highest_of_both_waits),
		ON_RUN(lines_and_pages_tear_apart),
		cmocka_unit_test(nothing_is_claimed_inside_a_line),
		ON_RUN(sections_keep_to_themselves),
		ON_RUN(every_section_has_room),
		ON_RUN(the_window_ends_at_the_first_crossing_that_tears),
		ON_RUN(a_crossing_that_was_not_tried_ends_the_window),
		ON_RUN(a_word_that_tears_is_told),
		ON_RUN(only_a_naive_store_shows_that_fetches_tear),
		ON_RUN(the_torn_cell_has_the_highest_wait_then_the_highest_rate),
		cmocka_unit_test(verdicts_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
