/* SPDX-License-Identifier: MIT */
/* What verify runs. The session is made up here in place of session.c, with a clock of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/exit_status.h"
#include "calibrate/tests/verify_sample.h"
#include "calibrate/verify/verify.h"
#include "stress/tests/synthetic.h"

/* --- what is run --- */

#define RUNS_MAX 1000
#define RATE	 300000.0 /* toggles per second */

static struct {
	double spent;
	uint64_t tears;	   /* of each cell at the waits */
	bool blind;	   /* controls do not tear */
	bool rested;	   /* the library would take a level at rest for lines */
	unsigned noisy;	   /* so many runs at the waits, the first ones */
	unsigned fails_at; /* number of the run, 0: never */
	int fails_with;
	struct cell ran[RUNS_MAX];
	unsigned runs;
	struct cell_record kept[RUNS_MAX];
	volatile sig_atomic_t stop;
} world;

double __wrap_session_left(const struct session *s);
int __wrap_session_run(struct session *s, const char *stage, unsigned round,
		       const struct cell *cell, const struct cell_record **record);

double __wrap_session_left(const struct session *s)
{
	return s->budget - world.spent;
}

int __wrap_session_run(struct session *s, const char *stage, unsigned round,
		       const struct cell *cell, const struct cell_record **record)
{
	struct cell_record *r = &world.kept[s->count];

	(void)round;
	assert_string_equal(stage, "verify");
	assert_true(world.runs < LENGTH(world.ran));
	world.ran[world.runs++] = *cell;
	s->done = world.kept;
	if (world.runs == world.fails_at)
		return world.fails_with;
	*r = record_of((uint64_t)(cell->seconds * RATE), 0, OUTCOME_DONE);
	r->cell = *cell;
	r->result.seating.executor[0] = 1;
	r->result.seconds = cell->seconds;
	if (cell->protocol == PROTOCOL_WAIT && world.noisy) {
		world.noisy--;
		r->noisy = true;
		strcpy(s->noise, "steal 9 %");
	}
	if (cell->protocol == PROTOCOL_WAIT)
		r->result.tears[TEAR_OLD_FRONT] = r->result.torn = world.tears;
	else if (cell->protocol != PROTOCOL_ATOMIC)
		r->result.tears[TEAR_OLD_FRONT] = !world.blind;
	world.spent += cell->seconds / 0.95;
	s->count++;
	*record = r;
	return 0;
}

/* Plan and run for so long, on two cores that share an L3. */
static void run_for(double budget, unsigned window)
{
	hwloc_topology_t topology = synthetic("pack:1 l3:1 l2:2 core:1 pu:1");
	struct session session = { .budget = budget, .stop = &world.stop };

	v = (struct verify){ .have_conf = true, .budget = budget, .seed = 5 };
	v.conf = (struct machine_conf){
		.levels = 1,
		.level = { { .waits.first = 1100,
			     .waits.second = 900,
			     .waits.stretch = 3,
			     .line.upper_p = P,
			     .page.upper_p = P } },
		.window = window,
	};
	if (world.rested) {
		v.conf.rested = 1;
		v.conf.level[1] = v.conf.level[0];
		v.conf.level[1].rest = CELL_RESTED;
		v.conf.level[1].line.upper_p = P / 10;
		v.accept_p = P / 2;
	}
	progress_open(&session.progress, true, 0);
	verify_plan(&v, topology);
	verify_run(&v, &session, 0);
	verify_judge(&v);
	hwloc_topology_destroy(topology);
}

static void reset(void)
{
	memset(&world, 0, sizeof(world));
}

/* Beside each other, and more threads than CPUs, once and twice as many executors. */
#define SEATS 3

static void test_run_waits(void **state)
{
	static const enum placement places[SEATS] = { PLACEMENT_SAME_L3, PLACEMENT_OVERSUBSCRIBED,
						      PLACEMENT_OVERSUBSCRIBED };
	static const unsigned executors[SEATS] = { 1, 2, 4 };
	unsigned waits = 0;

	(void)state;
	reset();
	run_for(60, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	for (unsigned i = 0; i < world.runs; i++) {
		const struct cell *c = &world.ran[i];

		if (c->protocol != PROTOCOL_WAIT)
			continue;
		assert_int_equal(c->placement, places[waits / 2 % SEATS]);
		assert_int_equal(c->executors, executors[waits / 2 % SEATS]);
		assert_int_equal(c->crossing, waits % 2 ? CROSSING_PAGE : CROSSING_LINE);
		waits++;
		assert_int_equal(c->waits.first, 1100);
		assert_int_equal(c->waits.second, 900);
		assert_int_equal(c->waits.stretch, 3);
		assert_int_equal(c->oracle, ORACLE_COUNT);
		assert_int_equal(c->stop_tears, 0);
		assert_int_equal(c->toggles, CELL_TOGGLES_MAX);
	}
	/* In turn, and more than once, so that all see the same weather. */
	assert_true(waits >= 4 * SEATS && waits % (2 * SEATS) == 0);
	assert_true(world.spent > 0.8 * 60 && world.spent < 61);
}

/* Where the library would take a level at rest, sites rest; pages have none that is accepted. */
static void test_run_rested(void **state)
{
	(void)state;
	reset();
	world.rested = true;
	run_for(60, 8);
	for (unsigned i = 0; i < world.runs; i++) {
		const struct cell *c = &world.ran[i];
		bool rests = c->protocol == PROTOCOL_WAIT && c->crossing == CROSSING_LINE;

		assert_int_equal(c->rest == CELL_RESTED, rests);
		assert_true(rests || c->rest <= CELL_HOT);
	}
}

static void test_run_seeds(void **state)
{
	uint64_t first;

	(void)state;
	reset();
	run_for(30, 8);
	for (unsigned i = 0; i < world.runs; i++) {
		assert_true(world.ran[i].seed <= INT64_MAX);
		for (unsigned k = 0; k < i; k++)
			assert_true(world.ran[i].seed != world.ran[k].seed);
	}
	first = world.ran[0].seed;
	reset();
	run_for(30, 8);
	assert_true(world.ran[0].seed == first);
}

/* Repeats for noise may have used up all the time: each cell is run all the same. */
static void test_run_late(void **state)
{
	(void)state;
	reset();
	world.spent = 5;
	run_for(2, 8);
	assert_int_equal(world.runs, 2 + 4 + 2 * SEATS);
}

static unsigned ran(enum protocol protocol, enum crossing crossing)
{
	unsigned count = 0;

	for (unsigned i = 0; i < world.runs; i++)
		count += world.ran[i].protocol == protocol && world.ran[i].crossing == crossing;
	return count;
}

/* Boundaries inside the window that the config claims, and no others. */
static void test_run_window(void **state)
{
	(void)state;
	for (unsigned window = 8; window <= 64; window *= 2) {
		reset();
		run_for(10, window);
		assert_int_equal(v.verdict, VERIFY_HOLDS);
		assert_true(ran(PROTOCOL_ATOMIC, CROSSING_NONE) >= 4);
		assert_int_equal(ran(PROTOCOL_ATOMIC, CROSSING_8) >= 4, window > 8);
		assert_int_equal(ran(PROTOCOL_ATOMIC, CROSSING_16) >= 4, window > 16);
		assert_int_equal(ran(PROTOCOL_ATOMIC, CROSSING_32) >= 4, window > 32);
	}
}

static void test_run_controls(void **state)
{
	(void)state;
	reset();
	world.blind = true;
	run_for(10, 8);
	assert_int_equal(v.verdict, VERIFY_INCONCLUSIVE);
	assert_true(ran(PROTOCOL_NO_INT3, CROSSING_LINE) >= 1);
	/* One tear will do. */
	assert_int_equal(world.ran[0].protocol, PROTOCOL_NO_INT3);
	assert_int_equal(world.ran[0].stop_tears, 1);
	assert_true(ran(PROTOCOL_FRONT_FIRST, CROSSING_LINE) >= 1);
}

static void test_run_tears(void **state)
{
	(void)state;
	reset();
	world.tears = 30;
	run_for(10, 8);
	assert_int_equal(v.verdict, VERIFY_BROKEN);
}

static void test_run_noise(void **state)
{
	(void)state;
	reset();
	world.noisy = 1000;
	run_for(30, 8);
	assert_int_equal(v.status, EXIT_INCONCLUSIVE);
	assert_non_null(strstr(v.reason, "too noisy: steal 9 %"));
	/* Only at first: then there is an answer, and nothing to complain of. */
	reset();
	world.noisy = 2 * SEATS;
	run_for(60, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[v.cells - 1].noisy, 1);
	assert_string_equal(v.cell[v.cells - 1].reason, "");
}

static void run_failing(int error)
{
	reset();
	world.fails_at = 2 + 4 + 1; /* the first at the waits */
	world.fails_with = error;
	run_for(8, 8);
}

static void test_run_failures(void **state)
{
	unsigned cells;

	(void)state;
	run_failing(-EINTR);
	assert_int_equal(v.status, EXIT_INTERRUPTED);
	assert_int_equal(world.runs, world.fails_at);
	run_failing(-EIO);
	assert_int_equal(v.status, EXIT_CANNOT_WRITE);
	assert_int_equal(world.runs, world.fails_at);
	/* A seat that is no longer there. */
	run_failing(-ENOENT);
	cells = v.cells;
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[cells - 2 * SEATS].status, STATUS_SKIPPED);
	run_failing(-ENOMEM);
	assert_int_equal(v.status, EXIT_INCONCLUSIVE);
	assert_int_equal(v.cell[cells - 2 * SEATS].status, STATUS_UNCLEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_rested),   cmocka_unit_test(test_run_waits),
		cmocka_unit_test(test_run_seeds),    cmocka_unit_test(test_run_late),
		cmocka_unit_test(test_run_window),   cmocka_unit_test(test_run_controls),
		cmocka_unit_test(test_run_tears),    cmocka_unit_test(test_run_noise),
		cmocka_unit_test(test_run_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
