/* SPDX-License-Identifier: MIT */
/*
 * What verify reads from a config, and what it runs. The session is made up here
 * in place of session.c, with a clock of its own.
 */
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

/* --- the config's cells --- */

static struct cell worst[VERIFY_WORST_MAX];
static char why[400];

static int read_text(const char *text, unsigned max)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret;

	assert_non_null(f);
	ret = verify_conf_cells(f, worst, max, why, sizeof(why));
	fclose(f);
	return ret;
}

/* By what they are told by: a struct may have padding. */
static void expect_same(const struct cell *cell, const struct cell *expected)
{
	char command[2][1024];

	assert_true(cell_command(cell, command[0], sizeof(command[0])) > 0);
	assert_true(cell_command(expected, command[1], sizeof(command[1])) > 0);
	assert_string_equal(command[0], command[1]);
}

/* As conf_write() has it; inih by itself gives up after 200 bytes. */
static void test_conf_long_command(void **state)
{
	struct cell cell, other;
	char text[4096], command[1024];

	(void)state;
	cell_defaults(&cell);
	cell.crossing = CROSSING_PAGE;
	cell.provokers = PROVOKERS_ALL;
	cell.loop = 77;
	cell.waits.first = 123456;
	cell.seed = 987654321;
	assert_true(cell_command(&cell, command, sizeof(command)) > 300);
	other = cell;
	other.split = 2;
	other.place = 77;
	other.swap = true;
	snprintf(text, sizeof(text),
		 "[wait]\nfirst = 1\n\n[cell 1]\ntoggles = 5\ntears = 0\ncommand = %s\n", command);
	cell_command(&other, command, sizeof(command));
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
		 "[cell 2]\ncommand=%s ; a comment\n[untested]\ncommand = none\n", command);
	assert_int_equal(read_text(text, VERIFY_WORST_MAX), 2);
	expect_same(&worst[0], &cell);
	expect_same(&worst[1], &other);
	assert_int_equal(read_text(text, 1), -E2BIG);
	assert_non_null(strstr(why, "more than 1"));
}

static void test_conf_none(void **state)
{
	(void)state;
	assert_int_equal(read_text("[wait]\ncommand = tmax stress\n[cell 1]\ntears = 1\n", 4), 0);
	assert_int_equal(read_text("[cell 1]\ncommand", 4), 0);
}

/* As inih has it: behind a key it goes on with that, else it is a line like others. */
static void test_conf_indented(void **state)
{
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.split = 2;
	assert_int_equal(read_text("[cell 1]\n\tcommand = tmax stress --split 2\n", 4), 1);
	expect_same(&worst[0], &cell);
	assert_int_equal(read_text("[wait]\nfirst = 1\n  [cell 1]\ncommand = none\n", 4), 0);
	assert_int_equal(read_text("[cell 1]\ntears = 1\n command = none\n", 4), 0);
	assert_int_equal(
		read_text("[cell 1]\n# none\n ; none\n\n command = tmax stress --split 2\n", 4), 1);
	expect_same(&worst[0], &cell);
}

/* The end of a comment that inih cut is no key of its own. */
static void test_conf_long_comment(void **state)
{
	char text[512];

	(void)state;
	for (int blanks = 180; blanks < 220; blanks++) {
		snprintf(text, sizeof(text), "[cell 1]\n;%*scommand = tmax bench\n", blanks, "");
		assert_int_equal(read_text(text, 4), 0);
	}
}

static void test_conf_refused(void **state)
{
	static const struct {
		const char *command, *words;
	} cases[] = {
		{ "", "no command line" },
		{ "tmax", "no command line" },
		{ "tmax bench toggle", "no command line" },
		{ "stress --split 2", "no command line" },
		{ "dtmax stress --split 2", "no command line" },
		{ "tmax stress --split 9", "9" },
		{ "tmax stress --split", "describes no cell" },
		{ "tmax stress --journal /x", "describes no cell" },
		{ "tmax stress --help", "describes no cell" },
		{ "tmax stress extra", "extra" },
		{ "tmax stress --protocol naive", "naive" },
		{ "tmax stress --crossing none", "crossing none" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		snprintf(text, sizeof(text), "[cell 7]\ncommand = %s\n", cases[i].command);
		assert_int_equal(read_text(text, 4), -EINVAL);
		assert_non_null(strstr(why, "[cell 7]"));
		assert_non_null(strstr(why, cases[i].words));
	}
	assert_int_equal(read_text("[cell 1]\ncommand = tmax stress\ncommand = tmax stress\n", 4),
			 -EINVAL);
	assert_non_null(strstr(why, "twice"));
	assert_int_equal(read_text("[cell 1]\ncommand = tmax stress\n --split 2\n", 4), -EINVAL);
}

/* --- what is run --- */

#define RUNS_MAX 400
#define RATE	 300000.0 /* toggles per second */

static struct {
	double spent;
	uint64_t tears;	   /* of each cell at the waits */
	bool blind;	   /* controls do not tear */
	unsigned noisy;	   /* so many runs at the waits, the first ones */
	unsigned fails_at; /* number of the run, 0: never */
	int fails_with;
	struct cell ran[RUNS_MAX];
	unsigned runs;
	struct cell_record kept[RUNS_MAX];
	volatile sig_atomic_t stop;
} world;

double session_left(const struct session *s)
{
	return s->budget - world.spent;
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
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
		r->result.tears[TEAR_OLD_FRONT] = world.tears;
	else if (cell->protocol != PROTOCOL_ATOMIC)
		r->result.tears[TEAR_OLD_FRONT] = !world.blind;
	world.spent += cell->seconds / 0.95;
	s->count++;
	*record = r;
	return 0;
}

/* Plan and run for so long with a config's cells, on two cores that share an L3. */
static void run_for(double budget, unsigned count, unsigned window)
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
	progress_open(&session.progress, true);
	verify_plan(&v, topology, worst, count);
	verify_run(&v, &session, 0);
	verify_judge(&v);
	hwloc_topology_destroy(topology);
}

static void reset(void)
{
	memset(&world, 0, sizeof(world));
	for (unsigned i = 0; i < 3; i++) {
		cell_defaults(&worst[i]);
		worst[i].split = i + 1;
		worst[i].provokers = 1u << PROVOKER_COLD_BACK;
		worst[i].rest = 777;
		worst[i].loop = 9;
		worst[i].oracle = ORACLE_CRASH;
		worst[i].waits.first = 5;
		worst[i].stop_tears = 4;
		worst[i].toggles = 10;
		worst[i].seed = 1;
	}
}

static void test_run_waits(void **state)
{
	unsigned waits = 0;

	(void)state;
	reset();
	run_for(30, 3, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_false(v.fallback);
	for (unsigned i = 0; i < world.runs; i++) {
		const struct cell *c = &world.ran[i];

		if (c->protocol != PROTOCOL_WAIT)
			continue;
		waits++;
		assert_int_equal(c->waits.first, 1100);
		assert_int_equal(c->waits.second, 900);
		assert_int_equal(c->waits.stretch, 3);
		assert_int_equal(c->provokers, 1u << PROVOKER_COLD_BACK);
		assert_int_equal(c->rest, 777);
		assert_int_equal(c->loop, 9);
		assert_int_equal(c->oracle, ORACLE_COUNT);
		assert_int_equal(c->stop_tears, 0);
		assert_int_equal(c->toggles, CELL_TOGGLES_MAX);
	}
	/* In turn, and more than once, so that all see the same weather. */
	assert_true(waits >= 6 && waits % 3 == 0);
	assert_true(world.spent > 0.8 * 30 && world.spent < 31);
}

static void test_run_seeds(void **state)
{
	uint64_t first;

	(void)state;
	reset();
	run_for(30, 3, 8);
	for (unsigned i = 0; i < world.runs; i++) {
		assert_true(world.ran[i].seed <= INT64_MAX);
		for (unsigned k = 0; k < i; k++)
			assert_true(world.ran[i].seed != world.ran[k].seed);
	}
	first = world.ran[0].seed;
	reset();
	run_for(30, 3, 8);
	assert_true(world.ran[0].seed == first);
}

/* Repeats for noise may have used up all the time: each cell is run all the same. */
static void test_run_late(void **state)
{
	(void)state;
	reset();
	world.spent = 5;
	run_for(2, 3, 8);
	assert_int_equal(world.runs, 2 + 4 + 3);
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
		run_for(10, 1, window);
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
	run_for(10, 1, 8);
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
	run_for(10, 3, 8);
	assert_int_equal(v.verdict, VERIFY_BROKEN);
}

static void test_run_noise(void **state)
{
	(void)state;
	reset();
	world.noisy = 1000;
	run_for(30, 3, 8);
	assert_int_equal(v.status, EXIT_INCONCLUSIVE);
	assert_non_null(strstr(v.reason, "too noisy: steal 9 %"));
	/* Only at first: then there is an answer, and nothing to complain of. */
	reset();
	world.noisy = 3;
	run_for(30, 3, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[v.cells - 1].noisy, 1);
	assert_string_equal(v.cell[v.cells - 1].reason, "");
}

static void test_run_fallback(void **state)
{
	(void)state;
	reset();
	run_for(30, 0, 8);
	assert_true(v.fallback);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_true(ran(PROTOCOL_WAIT, CROSSING_LINE) >= 4);
	assert_true(ran(PROTOCOL_WAIT, CROSSING_PAGE) >= 4);
}

static void test_run_unseated(void **state)
{
	(void)state;
	reset();
	worst[0].placement = PLACEMENT_CROSS_SOCKET;
	run_for(10, 2, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[v.cells - 2].status, STATUS_SKIPPED);
	assert_non_null(strstr(v.cell[v.cells - 2].reason, "packages"));
	worst[1].placement = PLACEMENT_SAME_CORE;
	world.runs = 0;
	run_for(10, 2, 8);
	assert_int_equal(v.status, EXIT_INCONCLUSIVE);
	assert_int_equal(ran(PROTOCOL_WAIT, CROSSING_LINE), 0);
}

/* There is no SMT sibling on these two cores. */
static void test_run_unprovoked(void **state)
{
	(void)state;
	reset();
	worst[0].provokers = 1u << PROVOKER_SIBLING;
	run_for(10, 2, 8);
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[v.cells - 2].status, STATUS_SKIPPED);
	assert_true(v.cell[v.cells - 2].reason[0] != '\0');
	assert_int_equal(v.cell[v.cells - 2].runs, 0);
}

static void run_failing(int error)
{
	reset();
	world.fails_at = 2 + 4 + 1; /* the first at the waits */
	world.fails_with = error;
	run_for(4, 3, 8);
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
	/* A provoker that this machine does not have. */
	run_failing(-ENOTSUP);
	cells = v.cells;
	assert_int_equal(v.verdict, VERIFY_HOLDS);
	assert_int_equal(v.cell[cells - 3].status, STATUS_SKIPPED);
	run_failing(-ENOMEM);
	assert_int_equal(v.status, EXIT_INCONCLUSIVE);
	assert_int_equal(v.cell[cells - 3].status, STATUS_UNCLEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conf_long_command), cmocka_unit_test(test_conf_none),
		cmocka_unit_test(test_conf_indented),	  cmocka_unit_test(test_conf_long_comment),
		cmocka_unit_test(test_conf_refused),	  cmocka_unit_test(test_run_waits),
		cmocka_unit_test(test_run_seeds),	  cmocka_unit_test(test_run_late),
		cmocka_unit_test(test_run_window),	  cmocka_unit_test(test_run_controls),
		cmocka_unit_test(test_run_tears),	  cmocka_unit_test(test_run_noise),
		cmocka_unit_test(test_run_fallback),	  cmocka_unit_test(test_run_unseated),
		cmocka_unit_test(test_run_unprovoked),	  cmocka_unit_test(test_run_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
