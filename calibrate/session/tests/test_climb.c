/* SPDX-License-Identifier: MIT */
/*
 * Calibrations of machines that are made up here, in place of stress/run/child.c: how they tear is
 * known, and their time passes as they say.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/session/session.h"
#include "calibrate/tests/session_place.h"
#include "stress/tests/synthetic.h"
#include "stress/witness/witness.h"

#define START_UP   0.02	 /* seconds that a cell takes beside its own */
#define TICKS	   2.6e9 /* a second */
#define STORES	   500	 /* ticks that a change takes beside its waits */
#define BARRIER	   26000 /* ticks that a change by membarrier takes */
#define NO_FAILURE SIZE_MAX

struct machine {
	struct session_place place;
	double steep;	 /* tears per toggle without a wait */
	double fade;	 /* ticks by which it becomes e times less */
	double floor;	 /* and never less than this */
	bool sees;	 /* the broken protocols tear */
	bool word_tears; /* a store inside a word */
	bool half_tears; /* a store across 32 bytes of a line; and changes there by waits */
	size_t stops_at; /* the user asks to stop in this cell */
	size_t fails_at; /* and this one fails */
	size_t runs;
	size_t gap_runs;
	size_t gap_fails_at; /* and this run of the gap oracle fails */
	struct plan plan;
	struct sums sums;
	struct estimate estimate;
};

static struct machine *here; /* for the stand-in of stress/run/child.c */

static double rate_at(const struct machine *m, uint64_t wait)
{
	return m->steep * exp(-(double)wait / m->fade) + m->floor;
}

/* A site at rest tears less by this factor. */
#define AT_REST 40

static double rate_of(const struct cell *cell)
{
	switch (cell->protocol) {
	case PROTOCOL_NO_INT3:
	case PROTOCOL_FRONT_FIRST:
		return here->sees;
	case PROTOCOL_ATOMIC:
		if (cell->crossing == CROSSING_INSIDE)
			return here->half_tears ? 1e-3 : 0;
		return here->word_tears && cell->crossing == CROSSING_NONE ? 1e-3 : 0;
	case PROTOCOL_WAIT:
		if (cell->crossing == CROSSING_32)
			return here->half_tears ? 1e-2 : 0;
		return rate_at(here, cell->waits.first) / (cell->rest == CELL_RESTED ? AT_REST : 1);
	default:
		return 0;
	}
}

static double ticks_of(const struct cell *cell)
{
	double waits = (double)(cell->waits.first + cell->waits.second);

	return cell->protocol == PROTOCOL_MEMBARRIER ? BARRIER : STORES + waits;
}

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	double each = ticks_of(cell) + (double)cell->rest;
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	(void)options;
	*result = (struct cell_result){ .outcome = OUTCOME_DONE, .seconds = cell->seconds };
	gsl_rng_set(rng, (unsigned long)cell->seed);
	result->toggles = (uint64_t)(cell->seconds * TICKS / each);
	result->ticks = (uint64_t)((double)result->toggles * each);
	result->torn = gsl_ran_binomial(rng, rate_of(cell), (unsigned)result->toggles);
	result->tears[TEAR_NEW_FRONT] = 3 * result->torn;
	result->exposed = result->toggles;
	if (cell->crossing == CROSSING_INSIDE)
		result->torn_inside[2] = result->torn;
	gsl_rng_free(rng);
	witness_clear(&result->witness);
	/* Far in a quarter of the slices, for no longer than one. */
	result->witness.offset_error = result->witness.error_after = cell->seed % 4 ? 150 : 400;
	/* No other time passes, or a busy computer would change how many cells there are. */
	here->place.session.budget -= cell->seconds + START_UP;
	here->place.session.begin = seconds_now();
	if (here->runs == here->stops_at) {
		here->place.stop = 1;
		result->outcome = OUTCOME_INTERRUPTED;
	}
	return here->runs++ == here->fails_at ? -EAGAIN : 0;
}

int __wrap_gap_run(const struct cell *cell, const struct run_options *options,
		   struct gap_result *result);

int __wrap_gap_run(const struct cell *cell, const struct run_options *options,
		   struct gap_result *result)
{
	(void)options;
	*result = (struct gap_result){ .outcome = OUTCOME_DONE,
				       .seconds = cell->seconds,
				       .stores = 1000000 };
	witness_clear(&result->witness);
	gap_tally_add(&result->kind[0], 40000, 0);
	here->place.session.budget -= cell->seconds + START_UP;
	here->place.session.begin = seconds_now();
	return here->gap_runs++ == here->gap_fails_at ? -EAGAIN : 0;
}

/* A core with one thread beside another, and as many threads as there are CPUs. */
static void make_plan(struct plan *plan)
{
	*plan = *plan_find("quick");
	plan->seat[plan->seats++] = (struct seat){ PLACEMENT_SAME_L3, 1 };
	plan->seat[plan->seats++] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 2 };
	plan->seat[plan->seats++] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 4 };
	/* The gap oracle has tests of its own below. */
	plan->fetch_gaps = 0;
}

static void start(struct machine *m)
{
	sums_free(&m->sums);
	session_begin(&m->place);
	m->place.session.budget = 60;
	m->place.session.seed = 1;
	m->runs = m->gap_runs = 0;
}

static int new_machine(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	*state = here = m;
	*m = (struct machine){ .steep = 0.1,
			       .fade = 100,
			       .sees = true,
			       .fails_at = NO_FAILURE,
			       .gap_fails_at = NO_FAILURE,
			       .stops_at = NO_FAILURE };
	make_plan(&m->plan);
	session_open(&m->place);
	start(m);
	return 0;
}

static int end_machine(void **state)
{
	struct machine *m = *state;

	session_close(&m->place);
	sums_free(&m->sums);
	free(m);
	return 0;
}

static void climb_to(struct machine *m, int ret)
{
	m->plan.budget = m->place.session.budget;
	assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), ret);
}

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

	climb_to(m, 0);
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

	climb_to(m, 0);
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

	climb_to(m, 0);
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

	climb_to(m, 0);
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

	climb_to(m, 0);
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

	climb_to(m, 0);
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
	climb_to(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++)
		assert_false(m->place.session.done[i].cell.provokers & 1u << PROVOKER_SIBLING);
}

/* The top rung tears a hundred times as often as a pass may. */
static void a_machine_that_tears_at_any_wait_fails(void **state)
{
	struct machine *m = *state;

	m->floor = 1e-2;
	climb_to(m, 0);
	assert_int_equal(m->estimate.verdict, VERDICT_FAIL);
	assert_true(estimate_kept(&m->estimate, 1e-2) > 1e-2);
}

static void a_store_that_tears_fails(void **state)
{
	struct machine *m = *state;

	m->word_tears = true;
	climb_to(m, 0);
	assert_int_equal(m->estimate.verdict, VERDICT_FAIL);
	assert_true(m->estimate.window.word_tore);
}

/* Where a store across 32 bytes tears, sites there are tried by waits; and these tear, too. */
static void half_lines_are_tried_where_stores_tear_there(void **state)
{
	struct machine *m = *state;

	m->half_tears = true;
	climb_to(m, 0);
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
	climb_to(m, 0);
	assert_true(m->estimate.blind);
	assert_int_equal(m->estimate.window.bytes, 8);
	assert_int_equal(m->estimate.verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(m->estimate.reason, "did not see"));
}

/* --- Pairs ------------------------------------------------------------------------------------ */

/* In one round none is in two pairs, and in all rounds each meets each other once. */
static void pairs_cover_all_cpus(void **state)
{
	(void)state;
	for (unsigned cpus = 2; cpus <= 17; cpus++) {
		unsigned met[17][17] = { 0 }, rounds = cpus - 1 + cpus % 2, pair[2];

		for (unsigned round = 0; round < rounds; round++) {
			unsigned seated[17] = { 0 }, pairs = 0;

			for (unsigned i = 0; i < (cpus + 1) / 2; i++) {
				if (!pair_of_round(cpus, round, i, pair))
					continue;
				assert_true(pair[0] < cpus && pair[1] < cpus);
				assert_int_equal(seated[pair[0]]++ + seated[pair[1]]++, 0);
				met[pair[0]][pair[1]]++;
				met[pair[1]][pair[0]]++;
				pairs++;
			}
			assert_int_equal(pairs, cpus / 2);
		}
		for (unsigned i = 0; i < cpus * cpus; i++)
			assert_int_equal(met[i / cpus][i % cpus], i / cpus != i % cpus);
	}
}

/* Stores inside a line alone, on a machine with these CPUs. Returns how many there were. */
static uint64_t climb_window(struct machine *m, const char *cpus)
{
	struct sum like = { .kind = SUM_STORE, .crossing = CROSSING_8 };

	start(m);
	m->plan.only = true;
	m->plan.window = 1;
	m->place.session.topology = synthetic(cpus);
	m->place.session.progress.quiet = true;
	m->plan.budget = m->place.session.budget;
	assert_int_equal(climb_pairs(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
	m->estimate.runs = 1;
	return estimate_count(&m->estimate, &m->sums, &like,
			      ANY_RUNG | ANY_PLACEMENT | ANY_EXECUTORS)
		.toggles;
}

static void all_cpus_store_at_once(void **state)
{
	struct machine *m = *state;
	uint64_t two = climb_window(m, "core:2 pu:1"), five = climb_window(m, "core:5 pu:1"), many;

	assert_true(five > two * 3 / 2);
	many = climb_window(m, "pack:1 l3:1 core:8 pu:2");
	assert_true(many > five * 3 && m->estimate.window.bytes == 64);
	assert_false(m->estimate.blind);
	/* Nothing of waits: so it is no run among others for these. */
	assert_int_equal(m->estimate.wait_runs, 0);
	m->half_tears = true;
	climb_window(m, "core:4 pu:1");
	assert_int_equal(m->estimate.window.bytes, 32);
	assert_true(m->estimate.window.stored.tears > 0);
	m->sees = false;
	climb_window(m, "core:4 pu:1");
	assert_true(m->estimate.blind && m->estimate.window.bytes == 8);
	assert_non_null(strstr(m->estimate.reason, "no pair of CPUs"));
	assert_int_equal(m->sums.count, 0);
}

/* A cell that fails, or is stopped, in a pair is told, and what pairs counted stays counted. */
static void a_pair_tells_that_it_failed(void **state)
{
	struct machine *m = *state;

	m->fails_at = 6;	     /* behind the controls and the membarriers */
	m->place.session.budget = 5; /* as short as a run can be */
	m->plan.only = true;
	m->plan.window = 1;
	m->place.session.topology = synthetic("core:4 pu:1");
	m->place.session.progress.quiet = true;
	assert_int_equal(climb_pairs(&m->place.session, &m->plan, &m->sums, &m->estimate), -EAGAIN);
	assert_true(m->sums.count > 0);
	assert_false(m->estimate.blind);
}

static void one_cpu_sees_nothing(void **state)
{
	struct machine *m = *state;

	m->plan.seats = 0;
	m->plan.seat[m->plan.seats++] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 1 };
	climb_to(m, 0);
	assert_true(m->estimate.blind);
	assert_int_equal(m->estimate.window.bytes, 8);
	assert_non_null(strstr(m->estimate.reason, "only one CPU"));
}

static void what_was_counted_before_a_stop_is_evidence(void **state)
{
	struct machine *m = *state;

	m->stops_at = 100;
	climb_to(m, -EINTR);
	assert_int_equal(m->runs, 101);
	assert_false(m->estimate.blind);
	assert_true(m->sums.count > 10);
}

static void what_was_counted_before_a_failure_is_evidence(void **state)
{
	struct machine *m = *state;

	m->fails_at = 100;
	climb_to(m, -EAGAIN);
	assert_false(m->estimate.blind);
	assert_true(m->sums.count > 10);
}

static void a_run_that_tried_no_wait_is_none(void **state)
{
	static const size_t cells[] = { 0, 1, 3 };
	struct machine *m = *state;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ftruncate(m->place.fd, 0), 0);
		start(m);
		m->stops_at = cells[i];
		climb_to(m, -EINTR);
		assert_true(m->estimate.blind);
		assert_non_null(strstr(m->estimate.reason, "broken off"));
	}
}

/* --- Resuming --------------------------------------------------------------------------------- */

#define LINES 2 /* of a cell: it begins, and it ends */

static off_t end_of_line(int fd, size_t lines)
{
	off_t at = 0;
	char c;

	while (lines && pread(fd, &c, 1, at++) == 1)
		lines -= c == '\n';
	return at;
}

/* Killed after any cell, it goes on as if nothing had been, and counts the same. */
static void a_resumed_run_takes_the_same_way(void **state)
{
	static const size_t kept[] = { 1, 2, 5, 6, 40, 150 };
	struct machine *m = *state;
	struct cell_record *whole;
	struct sums sums;
	size_t count;

	m->place.session.budget = 40;
	climb_to(m, 0);
	whole = m->place.session.done;
	count = m->place.session.count;
	sums = m->sums;
	m->place.session.done = NULL;
	m->place.session.count = 0;
	m->sums = (struct sums){ 0 };
	assert_true(count > 150);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		assert_int_equal(ftruncate(m->place.fd, end_of_line(m->place.fd, LINES * kept[i])),
				 0);
		start(m);
		m->place.session.budget = 40 - START_UP * (double)kept[i];
		/* A busy computer may take long over what is known: until the first cell that is
		 * run. */
		m->place.session.begin = seconds_now() + 3600;
		m->plan.budget = 40;
		assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
		assert_int_equal(m->place.session.count, count);
		assert_int_equal(m->runs, count - kept[i]);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(m->place.session.done[k].key, whole[k].key);
		assert_int_equal(m->sums.count, sums.count);
		for (size_t k = 0; k < sums.count; k++)
			assert_memory_equal(&m->sums.sum[k].count, &sums.sum[k].count,
					    sizeof(struct count));
	}
	sums_free(&sums);
	free(whole);
}

/* How many lines of that type the journal has, and where the n-th ends. */
static size_t lines_of(const struct machine *m, const char *type, size_t n, off_t *end)
{
	FILE *file = fopen(m->place.path, "re");
	char *line = NULL, start[64];
	size_t room = 0, count = 0;

	assert_non_null(file);
	snprintf(start, sizeof(start), "{\"type\":\"%s\"", type);
	while (getline(&line, &room, file) >= 0) {
		if (strncmp(line, start, strlen(start)) != 0)
			continue;
		if (++count == n)
			*end = ftello(file);
	}
	free(line);
	fclose(file);
	return count;
}

/* So it does with slices of the gap oracle in between, which are not run again. */
static void gaps_of_a_resumed_run_have_their_turn(void **state)
{
	static const size_t kept[] = { 8, 5, 3, 1 };
	struct machine *m = *state;
	struct cell_record *whole;
	size_t count, gap_runs;
	struct sums sums;
	off_t end = 0;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	climb_to(m, 0);
	whole = m->place.session.done;
	count = m->place.session.count;
	gap_runs = m->gap_runs;
	sums = m->sums;
	m->place.session.done = NULL;
	m->place.session.count = 0;
	m->sums = (struct sums){ 0 };
	assert_true(gap_runs > 8);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		size_t slices = lines_of(m, "gaps", kept[i], &end);

		assert_int_equal(ftruncate(m->place.fd, end), 0);
		slices = kept[i] + lines_of(m, "cell", 0, &end);
		start(m);
		m->place.session.budget = 40 - START_UP * (double)slices;
		m->place.session.begin = seconds_now() + 3600;
		m->plan.budget = 40;
		assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
		assert_int_equal(m->gap_runs, gap_runs - kept[i]);
		assert_int_equal(m->place.session.count, count);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(m->place.session.done[k].key, whole[k].key);
		assert_int_equal(m->sums.count, sums.count);
		for (size_t k = 0; k < sums.count; k++)
			assert_memory_equal(&m->sums.sum[k].count, &sums.sum[k].count,
					    sizeof(struct count));
	}
	sums_free(&sums);
	free(whole);
}

static void keep_whole(struct machine *m, struct cell_record **whole, size_t *count)
{
	*whole = m->place.session.done;
	*count = m->place.session.count;
	m->place.session.done = NULL;
	m->place.session.count = 0;
}

static void assert_same_way(const struct machine *m, const struct cell_record *whole, size_t count)
{
	assert_int_equal(m->place.session.count, count);
	for (size_t k = 0; k < count; k++)
		assert_string_equal(m->place.session.done[k].key, whole[k].key);
}

static uint64_t gap_slices_counted(const struct machine *m)
{
	uint64_t slices = 0;

	for (size_t i = 0; i < m->sums.count; i++)
		if (m->sums.sum[i].kind == SUM_GAP && m->sums.sum[i].rung.first == 32000)
			slices += m->sums.sum[i].count.slices;
	return slices;
}

/* A run of other draws was killed as well. Its gaps are counted, and no turn is theirs. */
static void gaps_of_another_run_have_no_turn(void **state)
{
	struct machine *m = *state;
	double slice = m->plan.slice;
	struct cell_record *whole;
	size_t count, gap_runs, others;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	climb_to(m, 0);
	keep_whole(m, &whole, &count);
	gap_runs = m->gap_runs;
	assert_true(gap_runs > 8);
	assert_int_equal(gap_slices_counted(m), gap_runs);

	assert_int_equal(ftruncate(m->place.fd, 0), 0);
	start(m);
	m->place.session.budget = 20;
	m->place.session.seed = 2;
	m->plan.slice = slice * 1.25;
	climb_to(m, 0);
	others = m->gap_runs;
	assert_true(others >= 3);

	start(m);
	m->place.session.budget = 40;
	m->plan.slice = slice;
	climb_to(m, 0);
	assert_same_way(m, whole, count);
	assert_int_equal(m->gap_runs, gap_runs);
	assert_int_equal(gap_slices_counted(m), gap_runs + others);
	free(whole);
}

/* A run of the gap oracle that failed has no line. It is tried again, and no other one. */
static void gaps_that_failed_have_their_turn(void **state)
{
	struct machine *m = *state;
	struct journal_data data = { 0 };
	struct cell_record *whole;
	size_t count, gap_runs, kept = 4, slices;
	off_t end = 0;
	const json_t *a, *b;
	size_t i, k;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	m->gap_fails_at = 2;
	climb_to(m, 0);
	keep_whole(m, &whole, &count);
	gap_runs = m->gap_runs;

	/* Soon after it: what is known takes time of the clock until a slice is run. */
	lines_of(m, "gaps", kept, &end);
	assert_int_equal(ftruncate(m->place.fd, end), 0);
	slices = kept + lines_of(m, "cell", 0, &end);
	start(m);
	m->gap_fails_at = NO_FAILURE;
	m->place.session.budget = 40 - START_UP * (double)slices;
	m->place.session.begin = seconds_now() + 3600;
	m->plan.budget = 40;
	assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
	assert_same_way(m, whole, count);
	assert_int_equal(m->gap_runs, gap_runs - kept);
	assert_int_equal(gap_slices_counted(m), gap_runs);

	assert_int_equal(journal_read(m->place.path, &data), 0);
	json_array_foreach(data.others, i, a)
	{
		if (strcmp(json_text_of(a, "type"), "gaps") != 0)
			continue;
		json_array_foreach(data.others, k, b)
			assert_true(k == i || strcmp(json_text_of(a, "command"),
						     json_text_of(b, "command")) != 0);
	}
	journal_free(&data);
	free(whole);
}

static uint64_t tears_counted(const struct machine *m)
{
	uint64_t tears = 0;

	for (size_t i = 0; i < m->sums.count; i++)
		tears += m->sums.sum[i].count.tears;
	return tears;
}

/* What an interrupted slice has seen tear is in the sums of the run that goes on, besides its own.
 */
static void what_was_seen_before_a_stop_stays_counted(void **state)
{
	const struct cell_record *cut;
	struct machine *m = *state;
	uint64_t seen = 0;

	m->fade = 1e9;
	m->stops_at = 20;
	climb_to(m, -EINTR);
	cut = &m->place.session.done[m->place.session.count - 1];
	assert_int_equal(cut->result.outcome, OUTCOME_INTERRUPTED);
	assert_true(cut->result.torn > 0);
	start(m);
	m->stops_at = NO_FAILURE;
	climb_to(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++)
		if (sum_kind_of(&m->place.session.done[i].cell) >= 0)
			seen += m->place.session.done[i].result.torn;
	assert_true(seen > 0);
	assert_int_equal(tears_counted(m), seen);
}

/* They are the resumed run's, also where their turn does not come. */
static void gaps_of_a_resumed_run_are_counted(void **state)
{
	const struct sum sum = { .kind = SUM_GAP,
				 .rung = { .first = 400 },
				 .crossing = CROSSING_LINE,
				 .placement = PLACEMENT_SAME_L3,
				 .executors = 1,
				 .count = { .slices = 1, .toggles = 1000, .tears = 7 } };
	struct machine *m = *state;
	struct sums sums = { 0 };
	json_t *body;

	assert_int_equal(sums_add(&sums, &sum), 0);
	body = json_pack("{s:{s:f}, s:o}", "cell", "seconds", 50.0, "sums", sums_to_json(&sums));
	assert_int_equal(journal_write_line(m->place.session.journal, "gaps", body), 0);
	json_decref(body);
	sums_free(&sums);
	start(m);
	climb_to(m, 0);
	assert_non_null(sums_find(&m->sums, &sum));
	assert_int_equal(sums_find(&m->sums, &sum)->count.tears, 7);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_cpu_patches_in_its_turn),
		TEST(an_ordinary_machine_passes),
		TEST(no_bound_is_below_the_truth),
		TEST(every_rung_has_slices_everywhere),
		TEST(the_window_has_its_share),
		TEST(most_slices_are_left_alone),
		TEST(what_cannot_be_provoked_is_not),
		TEST(a_machine_that_tears_at_any_wait_fails),
		TEST(a_store_that_tears_fails),
		TEST(half_lines_are_tried_where_stores_tear_there),
		TEST(who_sees_nothing_says_nothing),
		TEST(pairs_cover_all_cpus),
		TEST(all_cpus_store_at_once),
		TEST(a_pair_tells_that_it_failed),
		TEST(one_cpu_sees_nothing),
		TEST(what_was_counted_before_a_stop_is_evidence),
		TEST(what_was_counted_before_a_failure_is_evidence),
		TEST(a_run_that_tried_no_wait_is_none),
		TEST(a_resumed_run_takes_the_same_way),
		TEST(what_was_seen_before_a_stop_stays_counted),
		TEST(gaps_of_a_resumed_run_have_their_turn),
		TEST(gaps_of_another_run_have_no_turn),
		TEST(gaps_that_failed_have_their_turn),
		TEST(gaps_of_a_resumed_run_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
