/* SPDX-License-Identifier: MIT */
/*
 * A machine that is made up: how it tears is known. It stands in for session.c,
 * with a clock of its own, for the provokers' probe and for the gap oracle.
 */
#ifndef CALIBRATE_TESTS_MADE_UP_H
#define CALIBRATE_TESTS_MADE_UP_H

#include <errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/search.h"
#include "calibrate/search_state.h"
#include "stress/provoker.h"

#define TOGGLES_PER_SECOND 400000.0
#define START_UP	   0.01 /* seconds that a cell takes beside its own */
#define STEEP		   1e-4 /* tears per toggle at waits that are too short */
#define RECORDS_MAX	   6000

/* What this machine does. */
struct machine {
	struct waits tmax[CLAIMS]; /* shorter waits tear, always */
	struct waits late[CLAIMS]; /* the same in the campaign, if it is not 0 */
	double tail[CLAIMS];	   /* tears per toggle in the campaign, whatever the wait */
	uint64_t tail_ends;	   /* but not at first waits from here on; 0: at all */
	double storm[2]; /* the tail only between these shares of the budget, unless both are 0 */
	int tail_placement;    /* and only there; -1: everywhere */
	unsigned provokers;    /* each one of this set raises all rates */
	double raise;	       /* by so much */
	double calm;	       /* the tail without any of them, as a share of its rate */
	uint64_t still;	       /* waits that are not stretched tear below this one */
	double noisy;	       /* share of the tries that have company */
	double noisy_tail;     /* tears per toggle in these, in all stages, up to the same wait */
	bool standing_seen[2]; /* no-int3 and front-first are seen to tear */
	bool naive_tears;
	enum crossing store_tears; /* across this boundary; CROSSING_COUNT: across none */
	enum outcome campaign_ends;
	size_t fails_at; /* number of the record, 0: never */
	int fails_with;
	struct waits proposed[CLAIMS]; /* by the fit of the tail */
};

static const struct machine ordinary = {
	.tmax = { { 700, 350 }, { 700, 350 } },
	.tail_placement = -1,
	.raise = 1,
	.calm = 1,
	.standing_seen = { true, true },
	.naive_tears = true,
	.store_tears = CROSSING_COUNT,
};

struct run {
	struct machine machine;
	struct plan plan;
	struct session session;
	struct estimate estimate;
	hwloc_topology_t topology;
	gsl_rng *rng;
	double spent;
	volatile sig_atomic_t stop;
};

static struct run *running; /* for the stand-ins */

double session_left(const struct session *s)
{
	return s->budget - running->spent;
}

int provokers_possible(const struct cell *cell, hwloc_topology_t topology,
		       const struct seating *seating, char *reason, size_t size)
{
	(void)topology;
	(void)seating;
	snprintf(reason, size, "no two threads share a core");
	return cell->provokers & 1u << PROVOKER_SIBLING ? -ENOTSUP : 0;
}

int provoker_possible(enum provoker p, hwloc_topology_t topology, const struct seating *seating,
		      char *reason, size_t size)
{
	const struct cell cell = { .provokers = 1u << p };

	return provokers_possible(&cell, topology, seating, reason, size);
}

int stage_gaps(struct search *s)
{
	running->spent += s->plan->budget * s->plan->fetch_gaps;
	memcpy(s->proposed, running->machine.proposed, sizeof(s->proposed));
	return 0;
}

static bool in_campaign(const struct cell_record *r)
{
	return strcmp(r->stage, "campaign") == 0;
}

/* Each of the machine's provokers raises the rate again. */
static double raised(const struct machine *m, const struct cell *c)
{
	return pow(m->raise, __builtin_popcount(c->provokers & m->provokers));
}

/* Tears that always come: no draw, so what follows from them is the same in each run. */
static uint64_t steep_tears(const struct machine *m, const struct cell_record *r, bool second)
{
	const struct cell *c = &r->cell;
	int claim = claim_of(c->crossing);
	const struct waits *tmax = &m->tmax[claim < 0 ? 0 : claim];
	const struct waits *late = &m->late[claim < 0 ? 0 : claim];
	uint64_t wait = second ? c->second_wait : c->first_wait;
	uint64_t least = second ? tmax->second : tmax->first;
	uint64_t then = second ? late->second : late->first;

	if (in_campaign(r) && then)
		least = then;
	if (c->stretch == 0 && m->still > least)
		least = m->still;
	if (wait >= least)
		return 0;
	return 1 + (uint64_t)(STEEP * raised(m, c) * (double)r->result.toggles);
}

static bool has_tail(const struct machine *m, const struct cell_record *r)
{
	double now = running->spent / running->plan.budget;

	if (!in_campaign(r) || (m->tail_ends && r->cell.first_wait >= m->tail_ends))
		return false;
	if (m->tail_placement >= 0 && (int)r->cell.placement != m->tail_placement)
		return false;
	return m->storm[1] <= 0 || (now >= m->storm[0] && now < m->storm[1]);
}

static uint64_t tail_tears(const struct machine *m, const struct cell_record *r)
{
	int claim = claim_of(r->cell.crossing);
	double rate = claim >= 0 && has_tail(m, r) ? m->tail[claim] : 0;

	rate *= raised(m, &r->cell);
	if (!(r->cell.provokers & m->provokers))
		rate *= m->calm;
	if (r->noisy && !(m->tail_ends && r->cell.first_wait >= m->tail_ends))
		rate += m->noisy_tail;
	if (rate <= 0)
		return 0;
	return gsl_ran_poisson(running->rng, rate * (double)r->result.toggles);
}

static void tear(struct cell_record *r, const struct machine *m)
{
	uint64_t *tears = r->result.tears;

	switch (r->cell.protocol) {
	case PROTOCOL_WAIT:
		tears[TEAR_OLD_FRONT] = steep_tears(m, r, false) + tail_tears(m, r);
		tears[TEAR_NEW_FRONT] = steep_tears(m, r, true);
		break;
	case PROTOCOL_ATOMIC:
		tears[TEAR_OTHER] = r->cell.crossing == m->store_tears;
		break;
	case PROTOCOL_NAIVE:
		tears[TEAR_OLD_FRONT] = m->naive_tears;
		break;
	default:
		tears[TEAR_NEW_FRONT] = m->standing_seen[r->cell.protocol == PROTOCOL_FRONT_FIRST];
	}
}

static int try_cell(struct session *s, const char *stage, unsigned round, const struct cell *cell)
{
	const struct machine *m = &running->machine;
	struct cell_record *r = &s->done[s->count];

	assert_true(s->count < RECORDS_MAX);
	*r = (struct cell_record){ .cell = *cell, .result.seconds = cell->seconds };
	r->result.toggles = (uint64_t)(TOGGLES_PER_SECOND * cell->seconds);
	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	snprintf(r->key, sizeof(r->key), "%s %u #%zu", stage, round, s->count);
	if (m->fails_at && s->count + 1 == m->fails_at) {
		running->stop = m->fails_with == -EINTR;
		return m->fails_with;
	}
	if (in_campaign(r))
		r->result.outcome = m->campaign_ends;
	r->noisy = gsl_rng_uniform(running->rng) < m->noisy;
	tear(r, m);
	running->spent += cell->seconds + START_UP;
	s->count++;
	return 0;
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
{
	char reason[160] = "";
	int ret = 0;

	if (cell_check(cell, reason, sizeof(reason)) < 0)
		fail_msg("%s: %s", stage, reason);
	for (unsigned i = 0; i <= SESSION_REPEATS && ret == 0; i++) {
		struct cell repeat = *cell;

		repeat.seed += i;
		ret = try_cell(s, stage, round, &repeat);
		if (ret == 0)
			*record = &s->done[s->count - 1];
		if (ret == 0 && !(*record)->noisy)
			break;
	}
	if (ret < 0)
		return ret;
	s->noise.cells++;
	s->noise.stayed += (*record)->noisy;
	snprintf(s->noise.reason, sizeof(s->noise.reason), "steal 9 %%");
	return 0;
}

static void seat(struct run *run, const char *description)
{
	if (run->topology)
		hwloc_topology_destroy(run->topology);
	assert_int_equal(hwloc_topology_init(&run->topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(run->topology, description), 0);
	assert_int_equal(hwloc_topology_load(run->topology), 0);
	run->session.topology = run->topology;
	run->plan.seats = run->plan.gaps = 0;
	plan_seat(&run->plan, run->topology);
}

static void choose_plan(struct run *run, const char *name)
{
	run->plan = *plan_find(name);
	seat(run, "pack:1 l3:1 l2:2 core:1 pu:1");
	run->session.budget = run->plan.budget;
}

static int new_run(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	*state = running = run;
	run->machine = ordinary;
	run->rng = gsl_rng_alloc(gsl_rng_taus2);
	run->session.done = calloc(RECORDS_MAX, sizeof(*run->session.done));
	run->session.stop = &run->stop;
	run->session.seed = 1;
	progress_open(&run->session.progress, true);
	choose_plan(run, "quick");
	return run->rng == NULL || run->session.done == NULL;
}

static int end_run(void **state)
{
	struct run *run = *state;

	hwloc_topology_destroy(run->topology);
	gsl_rng_free(run->rng);
	free(run->session.done);
	free(run);
	return 0;
}

/* Everything from the start, with other luck for another seed. */
static int search_with(struct run *run, unsigned long seed)
{
	run->session.count = 0;
	run->session.seed = 1 + seed;
	run->session.noise = (struct session_noise){ 0 };
	run->spent = 0;
	run->stop = 0;
	gsl_rng_set(run->rng, seed);
	return search_run(&run->session, &run->plan, &run->estimate);
}

static inline int search(struct run *run)
{
	return search_with(run, 0);
}

static inline void assert_verdict(const struct run *run, enum verdict verdict, const char *words)
{
	if (run->estimate.verdict != verdict || !strstr(run->estimate.reason, words))
		fail_msg("the verdict is %s: %s", verdict_name(run->estimate.verdict),
			 run->estimate.reason);
}

#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, new_run, end_run)

#endif
