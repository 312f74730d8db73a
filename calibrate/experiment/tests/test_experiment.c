/* SPDX-License-Identifier: MIT */
/*
 * Experiments on a machine made up here in place of stress/run/run.c.
 */
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

#include "calibrate/experiment/paper_run.h"
#include "calibrate/experiment/tail_run.h"
#include "calibrate/tests/session_place.h"
#include "stress/base/clock.h"
#include "stress/witness/witness.h"

#define RUNS_MAX 1000

struct machine {
	struct cell ran[RUNS_MAX];
	unsigned runs;
	unsigned cannot; /* provokers that are missing here */
	unsigned stop_after;
	uint64_t hangs_at; /* wait */
	bool noisy;
	double seconds; /* that a cell takes of the session's budget */
	struct session session;
	volatile sig_atomic_t stop;
	char path[SESSION_PATH];
	int fd;
};

static struct machine *here;

static const struct seat seat = { PLACEMENT_SAME_L3, 1 };
static const struct shard whole = { 1, 1 };

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
	here->stop = here->stop_after && here->runs >= here->stop_after;
	if (cell->oracle == ORACLE_CRASH && cell->first_wait == here->hangs_at)
		result->outcome = OUTCOME_HANG;
	witness_clear(&result->witness);
	if (here->noisy)
		result->witness.steal = 0.5;
	here->session.budget -= here->seconds;
	return 0;
}

static void start(struct machine *m)
{
	session_start(&m->session, m->path, &m->stop);
	m->stop = 0;
	m->stop_after = 0;
	m->runs = 0;
}

static void restart(struct machine *m)
{
	session_free(&m->session);
	start(m);
}

static int new_machine(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	*state = here = m;
	m->fd = session_file(m->path);
	m->hangs_at = UINT64_MAX;
	start(m);
	return 0;
}

static int end_machine(void **state)
{
	struct machine *m = *state;

	session_free(&m->session);
	close(m->fd);
	free(m);
	return 0;
}

/* --- The paper's grid ------------------------------------------------------------------ */

static struct paper small_grid(void)
{
	struct paper paper;

	paper_defaults(&paper);
	paper.repetitions = 1;
	paper.toggles = 1000;
	assert_int_equal(paper_executors(&paper, "2"), 0);
	return paper;
}

static unsigned count_grid(const struct machine *m)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->runs; i++)
		count += m->ran[i].oracle == ORACLE_CRASH;
	return count;
}

static void test_estimate_times_both_ends(void **state)
{
	struct machine *m = *state;
	struct paper paper = small_grid();

	assert_int_equal(paper_run(&m->session, &paper, &whole), 0);
	assert_int_equal(m->runs, 102);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(m->ran[i].oracle, ORACLE_COUNT);
		assert_int_equal(m->ran[i].first_wait, i ? 2400 : 0);
	}
	assert_int_equal(count_grid(m), 100);
}

static void test_resumed_grid(void **state)
{
	struct machine *m = *state;
	struct paper paper = small_grid();
	struct journal_data all = { 0 };
	struct paper_there there;

	m->stop_after = 42;
	assert_int_equal(paper_run(&m->session, &paper, &whole), -EINTR);
	assert_int_equal(count_grid(m), 40);
	restart(m);
	assert_int_equal(paper_run(&m->session, &paper, &whole), 0);
	assert_int_equal(count_grid(m), 60);
	assert_int_equal(journal_read(m->path, &all), 0);
	assert_int_equal(paper_look(&paper, &all, NULL, &there), 0);
	assert_true(there.missing == 0 && there.doubled == 0);
	journal_free(&all);
	/* Nothing to run is nothing to time. */
	restart(m);
	assert_int_equal(paper_run(&m->session, &paper, &whole), 0);
	assert_int_equal(m->runs, 0);
}

static void test_hangs_are_no_answer(void **state)
{
	struct machine *m = *state;
	struct paper paper = small_grid();

	m->hangs_at = 700;
	assert_int_equal(paper_run(&m->session, &paper, &whole), 1);
	assert_int_equal(count_grid(m), 100);
	m->hangs_at = UINT64_MAX;
	restart(m);
	assert_int_equal(paper_run(&m->session, &paper, &whole), 0);
	assert_int_equal(count_grid(m), 4);
}

/* The list of cells is the experiment: three of one and one of another is another. */
static void test_noise_repeats_nothing(void **state)
{
	struct machine *m = *state;
	struct paper paper = small_grid();

	m->noisy = true;
	assert_int_equal(paper_run(&m->session, &paper, &whole), 0);
	assert_int_equal(count_grid(m), 100);
	assert_true(m->session.done[m->session.count - 1].noisy);
}

/* --- The tail ---------------------------------------------------------------------------- */

/* Without the gap oracle, which has a machine of its own. */
static void make_plan(struct tail_plan *plan)
{
	tail_plan_make(plan, TAIL_BUDGET, false);
	while (plan->arm[plan->arms - 1].gaps)
		plan->arms--;
}

static void test_tail_lasts_as_long_as_the_budget(void **state)
{
	struct machine *m = *state;
	struct tail_plan plan;

	make_plan(&plan);
	m->session.budget = 1000;
	m->seconds = 10;
	m->noisy = true;
	assert_int_equal(tail_run(&m->session, &plan, &seat), 0);
	assert_int_equal(m->runs, 100);
	for (unsigned i = 0; i < plan.arms; i++)
		assert_int_equal(m->ran[i].provokers, plan.arm[i].provokers);
}

static void test_missing_provokers_are_left_out(void **state)
{
	struct machine *m = *state;
	struct tail_plan plan;
	unsigned arms;

	make_plan(&plan);
	arms = plan.arms;
	m->cannot = 1u << PROVOKER_SHOOTDOWN;
	m->session.budget = 100;
	m->seconds = 1;
	assert_int_equal(tail_run(&m->session, &plan, &seat), 0);
	assert_int_equal(plan.arms, arms - 1);
	for (unsigned i = 0; i < plan.arms; i++)
		assert_int_not_equal(plan.arm[i].provokers, m->cannot);
	assert_true(m->runs > 90);
}

static void test_no_arm_left(void **state)
{
	struct machine *m = *state;
	struct tail_plan plan;

	make_plan(&plan);
	plan.arm[0] = plan.arm[plan.arms - 1];
	plan.arms = 1;
	m->cannot = plan.arm[0].provokers;
	assert_int_not_equal(m->cannot, 0);
	assert_int_equal(tail_run(&m->session, &plan, &seat), -ENOENT);
	assert_int_equal(plan.arms, 0);
}

static void test_resumed_tail(void **state)
{
	struct machine *m = *state;
	struct tail_plan plan;
	uint64_t last;

	make_plan(&plan);
	m->stop_after = 30;
	assert_int_equal(tail_run(&m->session, &plan, &seat), -EINTR);
	last = m->ran[29].seed;
	restart(m);
	make_plan(&plan);
	m->stop_after = 1;
	assert_int_equal(tail_run(&m->session, &plan, &seat), -EINTR);
	assert_int_equal(m->session.count, 31);
	assert_int_equal(m->session.done[29].cell.seed, last);
	assert_int_equal(m->runs, 1);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MACHINE(test_estimate_times_both_ends),
		ON_MACHINE(test_resumed_grid),
		ON_MACHINE(test_hangs_are_no_answer),
		ON_MACHINE(test_noise_repeats_nothing),
		ON_MACHINE(test_tail_lasts_as_long_as_the_budget),
		ON_MACHINE(test_missing_provokers_are_left_out),
		ON_MACHINE(test_no_arm_left),
		ON_MACHINE(test_resumed_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
