/* SPDX-License-Identifier: MIT */
/* Experiments on a machine made up here in place of stress/run/child.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "calibrate/tests/experiment_place.h"
#include "calibrate/tests/session_place.h"
#include "stress/witness/witness.h"

#define RUNS_MAX 1000

struct machine {
	struct session_place place;
	struct cell ran[RUNS_MAX];
	unsigned runs;
	unsigned cannot; /* provokers that are missing here */
	unsigned stop_after;
	uint64_t hangs_at; /* wait */
	bool noisy;
};

static struct machine *here;

static const char arms_text[] =
	"one: tmax stress --first-wait 1000 --toggles 1000\n"
	"two: tmax stress --first-wait 2000 --provoker shootdown --toggles 1000\n"
	"two: tmax stress --first-wait 2000 --provoker shootdown --toggles 1000\n"
	"three: tmax stress --crossing page --toggles 1000\n";

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	(void)options;
	assert_true(here->runs < RUNS_MAX);
	*result = (struct cell_result){ .toggles = 1000, .seconds = 1 };
	if (cell->provokers & here->cannot) {
		result->outcome = OUTCOME_ERROR;
		result->error = -ENOTSUP;
		return 0;
	}
	here->ran[here->runs++] = *cell;
	here->place.stop = here->stop_after && here->runs >= here->stop_after;
	if (cell->oracle == ORACLE_CRASH && cell->waits.first == here->hangs_at)
		result->outcome = OUTCOME_HANG;
	witness_clear(&result->witness);
	if (here->noisy)
		result->witness.steal = 0.5;
	return 0;
}

static void start(struct machine *m)
{
	session_begin(&m->place);
	m->stop_after = 0;
	m->runs = 0;
}

static int new_machine(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	*state = here = m;
	m->hangs_at = UINT64_MAX;
	session_open(&m->place);
	start(m);
	return 0;
}

static int end_machine(void **state)
{
	struct machine *m = *state;

	session_close(&m->place);
	free(m);
	return 0;
}

/* --- The paper's grid ------------------------------------------------------------------ */

/* Its lines of two executors, short. */
static struct experiment small_grid(struct machine *m)
{
	struct experiment e = list_as_shipped("paper.cells", 1);
	size_t kept = 0;

	e.journal = m->place.path;
	for (size_t i = 0; i < e.cells.count; i++) {
		e.cells.at[i].cell.toggles = 1000;
		if (e.cells.at[i].cell.executors == 2)
			e.cells.at[kept++] = e.cells.at[i];
	}
	e.cells.count = kept;
	return e;
}

static void test_resumed_grid(void **state)
{
	struct machine *m = *state;
	struct experiment e = small_grid(m);

	m->stop_after = 40;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INTERRUPTED);
	assert_int_equal(m->runs, 40);
	start(m);
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 60);
	start(m);
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 0);
	cells_free(&e.cells);
}

static void test_hangs_are_no_answer(void **state)
{
	struct machine *m = *state;
	struct experiment e = small_grid(m);

	m->hangs_at = 700;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INCONCLUSIVE);
	assert_int_equal(m->runs, 100);
	m->hangs_at = UINT64_MAX;
	start(m);
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 4);
	cells_free(&e.cells);
}

/* The list of cells is the experiment: three of one and one of another is another. */
static void test_noise_repeats_nothing(void **state)
{
	struct machine *m = *state;
	struct experiment e = small_grid(m);

	m->noisy = true;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 100);
	assert_true(m->place.session.done[m->place.session.count - 1].noisy);
	cells_free(&e.cells);
}

/* --- Round after round ------------------------------------------------------------------- */

/* Without the gap oracle, which has a machine of its own. */
static struct experiment arms(struct machine *m)
{
	struct experiment e = { .list = "arms",
				.name = "arms",
				.repetitions = 1,
				.shard = { 1, 1 },
				.seed = 1,
				.journal = m->place.path };
	char why[CELLS_WHY];
	FILE *stream = fmemopen((void *)(uintptr_t)arms_text, strlen(arms_text), "r");

	assert_int_equal(cells_read(stream, &e.cells, why), 0);
	fclose(stream);
	e.cells.at[1].copies = e.cells.at[2].copies = 2;
	e.cells.at[0].copies = e.cells.at[3].copies = e.cells.at[2].copy = 1;
	return e;
}

/* The progress shows the time that the others take. */
static void test_rounds_come_to_their_end(void **state)
{
	struct machine *m = *state;
	struct experiment e = arms(m);

	e.repetitions = 25;
	m->noisy = true;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 100);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(m->ran[i].provokers, e.cells.at[i].cell.provokers);
	cells_free(&e.cells);
}

static void test_missing_provokers_are_left_out(void **state)
{
	struct machine *m = *state;
	struct experiment e = arms(m);

	e.repetitions = 50;
	m->cannot = 1u << PROVOKER_SHOOTDOWN;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INCONCLUSIVE);
	assert_true(e.cells.at[1].left_out && e.cells.at[2].left_out);
	assert_false(e.cells.at[0].left_out || e.cells.at[3].left_out);
	assert_int_equal(m->runs, 100);
	cells_free(&e.cells);
}

/* A list that ends has an answer to all of it, or not. */
static void test_what_is_left_out_is_missing(void **state)
{
	struct machine *m = *state;
	struct experiment e = arms(m);

	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_PASS);
	assert_int_equal(m->runs, 4);
	cells_free(&e.cells);
	e = arms(m);
	e.seed = 2;
	m->cannot = 1u << PROVOKER_SHOOTDOWN;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INCONCLUSIVE);
	assert_int_equal(m->runs, 6);
	cells_free(&e.cells);
}

static void test_no_arm_left(void **state)
{
	struct machine *m = *state;
	struct experiment e = arms(m);

	e.cells.at[0] = e.cells.at[1];
	e.cells.at[3] = e.cells.at[1];
	m->cannot = 1u << PROVOKER_SHOOTDOWN;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_MISSING);
	assert_int_equal(m->runs, 0);
	cells_free(&e.cells);
}

static void test_resumed_rounds(void **state)
{
	struct machine *m = *state;
	struct experiment e = arms(m);
	uint64_t last;

	e.repetitions = 10;
	m->stop_after = 30;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INTERRUPTED);
	last = m->ran[29].seed;
	start(m);
	m->stop_after = 1;
	assert_int_equal(experiment_run(&e, &m->place.session), EXIT_INTERRUPTED);
	assert_int_equal(m->place.session.count, 31);
	assert_int_equal(m->place.session.done[29].cell.seed, last);
	assert_int_equal(m->runs, 1);
	cells_free(&e.cells);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MACHINE(test_resumed_grid),
		ON_MACHINE(test_hangs_are_no_answer),
		ON_MACHINE(test_noise_repeats_nothing),
		ON_MACHINE(test_rounds_come_to_their_end),
		ON_MACHINE(test_missing_provokers_are_left_out),
		ON_MACHINE(test_what_is_left_out_is_missing),
		ON_MACHINE(test_no_arm_left),
		ON_MACHINE(test_resumed_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
