/* SPDX-License-Identifier: MIT */
/* What a calibration says of machines whose tears are known. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/session/tests/climb_machine.h"
#include "stress/tests/synthetic.h"

/* Of these slices, on that machine. */
static void assert_each_cpu_patches(const struct session *s, enum placement p, hwloc_topology_t t)
{
	hwloc_bitmap_t patchers = hwloc_bitmap_alloc();
	struct seating seating;
	char reason[160];

	for (size_t i = 0; i < s->count; i++) {
		const struct cell_record *r = &s->done[i];

		if (r->cell.placement != p || strcmp(r->stage, "ladder") != 0)
			continue;
		assert_int_equal(cell_seat(&r->cell, t, &seating, reason, sizeof(reason)), 0);
		hwloc_bitmap_set(patchers, r->cell.swap ? seating.executor[0] : seating.patcher);
	}
	assert_true(hwloc_bitmap_isequal(patchers, hwloc_topology_get_topology_cpuset(t)));
	hwloc_bitmap_free(patchers);
}

static void each_cpu_patches_in_its_turn(void **state)
{
	hwloc_topology_t four = synthetic("pack:1 l3:1 l2:4 core:1 pu:1"), two = synthetic("pu:2");
	struct machine *m = *state;

	assert_climb_returns(m, 0);
	assert_each_cpu_patches(&m->place.session, PLACEMENT_SAME_L3, four);
	assert_each_cpu_patches(&m->place.session, PLACEMENT_OVERSUBSCRIBED, two);
	hwloc_topology_destroy(four);
	hwloc_topology_destroy(two);
}

static void an_ordinary_machine_passes(void **state)
{
	struct machine *m = *state;
	struct estimate *e = &m->estimate;
	int best;

	assert_climb_returns(m, 0);
	assert_int_equal(e->verdict, VERDICT_PASS);
	assert_false(e->blind);
	for (int c = 0; c < CLAIMS; c++) {
		best = estimate_best(e, c, e->require_p);
		assert_true(best > 0);
		assert_true(rate_at(m, e->level[best].rung.first) <= e->require_p);
	}
	assert_true(fabs(e->membarrier_ticks - BARRIER) < 1);
	/* Up to what a membarrier costs, and no further. */
	assert_true(2 * e->level[e->levels - 1].rung.first <= BARRIER);
	assert_int_equal(e->window.bytes, 64);
	assert_int_equal(e->window.waited.toggles, 0);
	assert_int_equal(e->runs, 1);
	assert_false(e->long_run);
}

/* One confidence of all bounds at once: in one run that is drawn here once and for all. */
static void no_bound_is_below_the_truth(void **state)
{
	struct machine *m = *state;

	assert_climb_returns(m, 0);
	for (unsigned i = 0; i < m->estimate.levels; i++) {
		const struct level *level = &m->estimate.level[i];

		assert_true(level->upper_p >= rate_at(m, level->rung.first));
		if (level->ticks > 0)
			assert_true(fabs(level->ticks - STORES - 2 * (double)level->rung.first) <
				    1);
	}
	assert_true(m->estimate.ladder.rested > 0);
	for (unsigned i = 0; i < m->estimate.ladder.rested; i++) {
		const struct level *level = &m->estimate.level[m->estimate.ladder.count + i];

		assert_true(level->claim[CLAIM_LINE].count.toggles > 0);
		assert_true(level->claim[CLAIM_PAGE].count.toggles > 0);
		assert_true(level->upper_p >= rate_at(m, level->rung.first) / AT_REST);
		assert_true(fabs(level->ticks - STORES - 2 * (double)level->rung.first) < 1);
	}
}

static void every_rung_has_slices_everywhere(void **state)
{
	struct machine *m = *state;

	assert_climb_returns(m, 0);
	for (unsigned i = 0; i < m->estimate.levels; i++) {
		for (int c = 0; c < CLAIMS; c++) {
			const struct claim *claim = &m->estimate.level[i].claim[c];

			assert_int_equal(claim->sections, 2);
			for (unsigned k = 0; k < claim->sections; k++)
				assert_true(claim->section[k].count.slices > 0);
		}
	}
	assert_true(m->estimate.paper.known);
}

static void the_window_has_its_share(void **state)
{
	struct machine *m = *state;
	double window = 0, all = 0;

	assert_climb_returns(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++) {
		const struct cell_record *r = &m->place.session.done[i];

		window += strcmp(r->stage, "window") == 0 ? r->result.seconds : 0;
		all += r->result.seconds;
	}
	assert_true(fabs(window / all - m->plan.window) < 0.02);
}

static void most_slices_are_left_alone(void **state)
{
	struct machine *m = *state;
	unsigned provoked = 0, alone = 0;

	assert_climb_returns(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++) {
		const struct cell *cell = &m->place.session.done[i].cell;

		assert_false(provokers_have(cell->provokers, PROVOKER_COLD));
		if (strcmp(m->place.session.done[i].stage, "ladder") != 0)
			continue;
		if (!cell->waits.stretch)
			assert_int_equal(cell->provokers, 0);
		else if (cell->provokers)
			provoked++;
		else
			alone++;
	}
	/* Of the dealt ones two in three, and those that drew a provoker that does not count. */
	assert_true(alone > 3 * provoked && alone < 20 * provoked);
}

static void what_cannot_be_provoked_is_not(void **state)
{
	struct machine *m = *state;

	m->plan.untested[m->plan.untesteds++] = (struct untested){ true, PROVOKER_SIBLING, "" };
	assert_climb_returns(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++)
		assert_false(m->place.session.done[i].cell.provokers & 1u << PROVOKER_SIBLING);
}

/* The top rung tears a hundred times as often as a pass may. */
static void a_machine_that_tears_at_any_wait_fails(void **state)
{
	struct machine *m = *state;

	m->floor = 1e-2;
	assert_climb_returns(m, 0);
	assert_int_equal(m->estimate.verdict, VERDICT_FAIL);
	assert_true(estimate_kept(&m->estimate, 1e-2) > 1e-2);
}

static void a_store_that_tears_fails(void **state)
{
	struct machine *m = *state;

	m->word_tears = true;
	assert_climb_returns(m, 0);
	assert_int_equal(m->estimate.verdict, VERDICT_FAIL);
	assert_true(m->estimate.window.word_tore);
}

/* Where a store across 32 bytes tears, sites there are tried by waits; and these tear, too. */
static void half_lines_are_tried_where_stores_tear_there(void **state)
{
	struct machine *m = *state;

	m->half_tears = true;
	assert_climb_returns(m, 0);
	assert_int_equal(m->estimate.window.bytes, 32);
	assert_int_equal(m->estimate.window.torn, 32);
	assert_true(m->estimate.window.waited.tears > 0);
	assert_true(estimate_best(&m->estimate, CLAIM_LINE, m->estimate.require_p) < 0);
	assert_true(estimate_best(&m->estimate, CLAIM_PAGE, m->estimate.require_p) >= 0);
	/* More time would not help. */
	assert_int_equal(m->estimate.verdict, VERDICT_FAIL);
}

static void who_sees_nothing_says_nothing(void **state)
{
	struct machine *m = *state;

	m->sees = false;
	assert_climb_returns(m, 0);
	assert_true(m->estimate.blind);
	assert_int_equal(m->estimate.window.bytes, 8);
	assert_int_equal(m->estimate.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(m->estimate.reason, "did not see"));
}

static void one_cpu_sees_nothing(void **state)
{
	struct machine *m = *state;

	m->plan.seats = 0;
	m->plan.seat[m->plan.seats++] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 1 };
	assert_climb_returns(m, 0);
	assert_true(m->estimate.blind);
	assert_int_equal(m->estimate.window.bytes, 8);
	assert_non_null(strstr(m->estimate.reason, "only one CPU"));
}

static void what_was_counted_before_a_stop_is_evidence(void **state)
{
	struct machine *m = *state;

	m->stops_at = 100;
	assert_climb_returns(m, -EINTR);
	assert_int_equal(m->runs, 101);
	assert_false(m->estimate.blind);
	assert_true(m->sums.count > 10);
}

static void what_was_counted_before_a_failure_is_evidence(void **state)
{
	struct machine *m = *state;

	m->fails_at = 100;
	assert_climb_returns(m, -EAGAIN);
	assert_false(m->estimate.blind);
	assert_true(m->sums.count > 10);
}

static void a_run_that_tried_no_wait_is_none(void **state)
{
	static const size_t cells[] = { 0, 1, 3 };
	struct machine *m = *state;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ftruncate(m->place.fd, 0), 0);
		start_session(m);
		m->stops_at = cells[i];
		assert_climb_returns(m, -EINTR);
		assert_true(m->estimate.blind);
		assert_non_null(strstr(m->estimate.reason, "broken off"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ON_MACHINE(each_cpu_patches_in_its_turn),
		TEST_ON_MACHINE(an_ordinary_machine_passes),
		TEST_ON_MACHINE(no_bound_is_below_the_truth),
		TEST_ON_MACHINE(every_rung_has_slices_everywhere),
		TEST_ON_MACHINE(the_window_has_its_share),
		TEST_ON_MACHINE(most_slices_are_left_alone),
		TEST_ON_MACHINE(what_cannot_be_provoked_is_not),
		TEST_ON_MACHINE(a_machine_that_tears_at_any_wait_fails),
		TEST_ON_MACHINE(a_store_that_tears_fails),
		TEST_ON_MACHINE(half_lines_are_tried_where_stores_tear_there),
		TEST_ON_MACHINE(who_sees_nothing_says_nothing),
		TEST_ON_MACHINE(one_cpu_sees_nothing),
		TEST_ON_MACHINE(what_was_counted_before_a_stop_is_evidence),
		TEST_ON_MACHINE(what_was_counted_before_a_failure_is_evidence),
		TEST_ON_MACHINE(a_run_that_tried_no_wait_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
