/* SPDX-License-Identifier: MIT */
/*
 * The search on machines whose T_max is known: made up here in place of
 * session.c, with a clock of their own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/search.h"

#define RATE	    400000.0 /* toggles per second */
#define RECORDS_MAX 5000

/* What this machine does. */
struct machine {
	uint64_t first; /* waits below these tear */
	uint64_t second;
	bool standing_seen[2]; /* no-int3 and front-first are seen to tear */
	bool naive_tears;
	enum crossing store_tears; /* across this boundary; CROSSING_COUNT: across none */
	enum outcome campaign_ends;
	size_t fails_at; /* number of the record, 0: never */
	int fails_with;
	uint64_t late_first; /* in the campaign: a rare long stall */
	uint64_t late_second;
};

static const struct machine ordinary = {
	.first = 700,
	.second = 350,
	.standing_seen = { true, true },
	.naive_tears = true,
	.store_tears = CROSSING_COUNT,
};

struct run {
	struct machine machine;
	struct plan plan;
	struct session session;
	struct estimate estimate;
	double spent;
	volatile sig_atomic_t stop;
};

static struct run *running; /* for the stand-ins of session.c */

double session_left(const struct session *s)
{
	return s->budget - running->spent;
}

static void tear(struct cell_record *r, const struct machine *m)
{
	const struct cell *c = &r->cell;
	bool campaign = strcmp(r->stage, "campaign") == 0;
	uint64_t first = campaign && m->late_first ? m->late_first : m->first;
	uint64_t second = campaign && m->late_second ? m->late_second : m->second;

	switch (c->protocol) {
	case PROTOCOL_WAIT:
		r->result.tears[TEAR_OLD_FRONT] = c->first_wait < first;
		r->result.tears[TEAR_NEW_FRONT] = c->second_wait < second;
		break;
	case PROTOCOL_ATOMIC:
		r->result.tears[TEAR_OTHER] = c->crossing == m->store_tears;
		break;
	case PROTOCOL_NAIVE:
		r->result.tears[TEAR_OLD_FRONT] = m->naive_tears;
		break;
	default:
		r->result.tears[TEAR_NEW_FRONT] =
			m->standing_seen[c->protocol == PROTOCOL_FRONT_FIRST];
	}
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
{
	const struct machine *m = &running->machine;
	struct cell_record *r = &s->done[s->count];
	char reason[160] = "";

	assert_true(s->count < RECORDS_MAX);
	if (cell_check(cell, reason, sizeof(reason)) < 0)
		fail_msg("%s: %s", stage, reason);
	*r = (struct cell_record){ .cell = *cell,
				   .result.toggles = (uint64_t)(RATE * cell->seconds) };
	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	snprintf(r->key, sizeof(r->key), "%s %u #%zu", stage, round, s->count);
	if (m->fails_at && s->count + 1 == m->fails_at) {
		running->stop = m->fails_with == -EINTR;
		return m->fails_with;
	}
	if (strcmp(stage, "campaign") == 0)
		r->result.outcome = m->campaign_ends;
	tear(r, m);
	running->spent += cell->seconds;
	s->count++;
	*record = r;
	return 0;
}

static void seat(struct plan *plan, const char *description)
{
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_synthetic(t, description), 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	plan_seat(plan, t);
	hwloc_topology_destroy(t);
}

static int new_run(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	*state = running = run;
	run->machine = ordinary;
	run->plan = *plan_find("quick");
	seat(&run->plan, "pack:1 l3:1 l2:2 core:1 pu:1");
	run->session.done = calloc(RECORDS_MAX, sizeof(*run->session.done));
	run->session.stop = &run->stop;
	run->session.budget = run->plan.budget;
	run->session.seed = 1;
	progress_open(&run->session.progress, true);
	return run->session.done == NULL;
}

static int end_run(void **state)
{
	struct run *run = *state;

	free(run->session.done);
	free(run);
	return 0;
}

static int search(struct run *run)
{
	return search_run(&run->session, &run->plan, &run->estimate);
}

static void assert_verdict(const struct run *run, enum verdict verdict, const char *words)
{
	assert_string_equal(verdict_name(run->estimate.verdict), verdict_name(verdict));
	if (!strstr(run->estimate.reason, words))
		fail_msg("the reason is \"%s\"", run->estimate.reason);
}

static void waits_that_hold_are_found(void **state)
{
	struct run *run = *state;
	const struct estimate *e = &run->estimate;

	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "no tear in ");
	assert_true(e->first_wait >= run->machine.first);
	assert_true(e->second_wait >= run->machine.second);
	/* Not far off either: what one waits for nothing is paid at every change. */
	assert_true(e->first_wait <= 2 * run->machine.first);
	assert_true(e->second_wait <= e->first_wait);
	assert_int_equal(e->tears, 0);
	assert_true(e->toggles >= run->plan.min_toggles);
	assert_true(e->torn.seen[0] && e->torn.wait[0] < run->machine.first);
	assert_true(e->torn.seen[1] && e->torn.wait[1] < run->machine.second);
	assert_true(e->margin >= 1.5);
	assert_true(e->tears_here);
	assert_int_equal(e->window, 64);
	assert_true(run->spent <= run->plan.budget * 1.1);
}

static bool tried(const struct run *run, const struct seat *where, enum crossing crossing,
		  unsigned split)
{
	const struct estimate *e = &run->estimate;

	for (size_t i = 0; i < run->session.count; i++) {
		const struct cell_record *r = &run->session.done[i];

		if (strcmp(r->stage, "campaign") == 0 && r->cell.first_wait == e->first_wait &&
		    r->cell.second_wait == e->second_wait &&
		    r->cell.placement == where->placement &&
		    r->cell.executors == where->executors && r->cell.crossing == crossing &&
		    r->cell.split == split)
			return true;
	}
	return false;
}

static void the_campaign_leaves_nothing_out(void **state)
{
	struct run *run = *state;

	assert_int_equal(search(run), 0);
	for (unsigned i = 0; i < run->plan.seats; i++) {
		for (unsigned split = 1; split <= 4; split++) {
			assert_true(tried(run, &run->plan.seat[i], CROSSING_LINE, split));
			assert_true(tried(run, &run->plan.seat[i], CROSSING_PAGE, split));
		}
	}
}

static void a_tear_in_the_campaign_raises_the_wait(void **state)
{
	struct run *run = *state;

	run->machine.late_first = 9000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "no tear in ");
	assert_true(run->estimate.first_wait >= 9000);
	assert_int_equal(run->estimate.tears, 0);
	assert_true(run->estimate.torn.wait[0] >= 1000);
}

static void the_second_wait_is_raised_alone(void **state)
{
	struct run *run = *state;

	run->machine.late_second = 5000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "no tear in ");
	assert_true(run->estimate.second_wait >= 5000);
	assert_true(run->estimate.first_wait <= 2 * run->machine.first);
}

static void beyond_the_ceiling_there_is_no_answer(void **state)
{
	struct run *run = *state;

	run->machine.late_first = UINT64_MAX;
	run->plan.ceiling = 5000;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_FAIL, "no wait up to 5000 ticks");
	for (size_t i = 0; i < run->session.count; i++)
		if (strcmp(run->session.done[i].stage, "campaign") == 0)
			assert_true(run->session.done[i].cell.first_wait <= 5000);
}

static void what_never_tears_is_bounded_from_above_only(void **state)
{
	struct run *run = *state;

	run->machine.first = run->machine.second = 0;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_PASS, "no tear in ");
	assert_false(run->estimate.torn.seen[0]);
	assert_false(run->estimate.torn.seen[1]);
	assert_true(run->estimate.first_wait > 0);
	assert_true(run->estimate.second_wait > 0);
	assert_true(run->estimate.margin == 0);
}

static void a_blind_oracle_proves_nothing(void **state)
{
	struct run *run = *state;

	for (unsigned blind = 0; blind < 2; blind++) {
		run->session.count = 0;
		run->spent = 0;
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
	assert_verdict(run, VERDICT_PASS, "no tear in ");
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
	assert_verdict(run, VERDICT_PASS, "no tear in ");
	assert_int_equal(run->estimate.window, 16);
}

static void too_little_time_is_inconclusive(void **state)
{
	struct run *run = *state;

	run->plan.min_toggles = UINT64_C(1) << 40;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "too little time");
}

/* Enough toggles, but not everywhere. */
static void a_campaign_that_is_cut_short_is_inconclusive(void **state)
{
	struct run *run = *state;

	run->plan.min_toggles = 1;
	run->session.budget = run->plan.budget * 0.46;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, "too little time");
	assert_true(run->estimate.toggles > 0);
}

static void cells_that_do_not_end_prove_nothing(void **state)
{
	struct run *run = *state;

	run->plan.min_toggles = 1;
	run->machine.campaign_ends = OUTCOME_HANG;
	assert_int_equal(search(run), 0);
	assert_verdict(run, VERDICT_INCONCLUSIVE, " 0 of ");
}

static void an_interrupt_ends_every_stage(void **state)
{
	struct run *run = *state;
	size_t all, last = 0;

	assert_int_equal(search(run), 0);
	all = run->session.count;
	for (size_t at = 1; at <= all; at += 1 + at / 4) {
		run->session.count = 0;
		run->spent = 0;
		run->stop = 0;
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

	assert_int_equal(search(run), 0);
	count = run->session.count;
	first = calloc(count, sizeof(*first));
	for (size_t i = 0; i < count; i++)
		first[i] = run->session.done[i].cell;
	run->session.count = 0;
	run->spent = 0;
	assert_int_equal(search(run), 0);
	assert_int_equal(run->session.count, count);
	for (size_t i = 0; i < count; i++) {
		char command[2][512];

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

	run->plan = *plan_find("quick");
	seat(&run->plan, "pu:1");
	assert_int_equal(search(run), 0);
	for (size_t i = 0; i < run->session.count; i++)
		assert_int_equal(run->session.done[i].cell.placement, PLACEMENT_OVERSUBSCRIBED);
}

#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, new_run, end_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(waits_that_hold_are_found),
		ON_RUN(the_campaign_leaves_nothing_out),
		ON_RUN(a_tear_in_the_campaign_raises_the_wait),
		ON_RUN(the_second_wait_is_raised_alone),
		ON_RUN(beyond_the_ceiling_there_is_no_answer),
		ON_RUN(what_never_tears_is_bounded_from_above_only),
		ON_RUN(a_blind_oracle_proves_nothing),
		ON_RUN(a_naive_store_need_not_tear),
		ON_RUN(nothing_holds_where_words_tear),
		ON_RUN(a_store_that_tears_limits_the_window),
		ON_RUN(too_little_time_is_inconclusive),
		ON_RUN(a_campaign_that_is_cut_short_is_inconclusive),
		ON_RUN(cells_that_do_not_end_prove_nothing),
		ON_RUN(an_interrupt_ends_every_stage),
		ON_RUN(what_fails_is_passed_on),
		ON_RUN(the_way_follows_from_the_records),
		ON_RUN(no_two_cells_share_a_seed),
		ON_RUN(one_cpu_is_searched_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
