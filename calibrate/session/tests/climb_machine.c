/* SPDX-License-Identifier: MIT */
/* The cells of a made-up machine, and sessions on it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/session/tests/climb_machine.h"
#include "stress/witness/witness.h"

static struct machine *here; /* for the stand-in of stress/run/child.c */

double rate_at(const struct machine *m, uint64_t wait)
{
	return m->steep * exp(-(double)wait / m->fade) + m->floor;
}

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

void start_session(struct machine *m)
{
	sums_free(&m->sums);
	session_begin(&m->place);
	m->place.session.budget = 60;
	m->place.session.seed = 1;
	m->runs = m->gap_runs = 0;
}

int new_machine(void **state)
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
	start_session(m);
	return 0;
}

int end_machine(void **state)
{
	struct machine *m = *state;

	session_close(&m->place);
	sums_free(&m->sums);
	free(m);
	return 0;
}

void assert_climb_returns(struct machine *m, int ret)
{
	m->plan.budget = m->place.session.budget;
	assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), ret);
}
