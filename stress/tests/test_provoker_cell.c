/* SPDX-License-Identifier: MIT */
/*
 * Every provoker in a cell: it is asked when it should be, and the cell ends as any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress/child.h"
#include "stress/tests/provoker_place.h"

static void every_provoker_lets_its_cell_end(void **state)
{
	(void)state;
	for (int i = 0; i < PROVOKER_COUNT; i++) {
		struct cell_result r;
		struct seating seating;
		struct cell cell;
		char reason[160];

		seat(&cell, &seating, 1u << i);
		cell.toggles = 3000;
		assert_int_equal(cell_run(&cell, &how, &r), 0);
		if (provokers_possible(&cell, how.topology, &seating, reason, sizeof(reason)) < 0) {
			assert_int_equal(r.outcome, OUTCOME_ERROR);
			assert_int_equal(r.error, -ENOTSUP);
			continue;
		}
		assert_int_equal(r.outcome, OUTCOME_DONE);
		assert_int_equal(r.toggles, cell.toggles);
		assert_int_equal(r.old_new[0] + r.old_new[1] + cell_result_tears(&r), r.executions);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

/* Runs the inside of a cell, to see what it leaves in the memory that it shares with us. */
static struct shared *run_inside(unsigned provokers)
{
	size_t size = sizeof(struct shared) + sizeof(struct executor_counts);
	struct shared *shared =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cell cell;
	int status;
	pid_t pid;

	assert_ptr_not_equal(shared, MAP_FAILED);
	seat(&cell, &shared->result.seating, provokers);
	cell.toggles = 3000;
	pid = fork();
	if (pid == 0)
		child_run(&cell, how.topology, shared);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(shared->result.outcome, OUTCOME_DONE);
	assert_int_equal(shared->result.toggles, cell.toggles);
	return shared;
}

/* Once for each toggle, and for each that found the site busy and was tried again. */
static void the_patcher_provokes_before_each_toggle(void **state)
{
	struct shared *shared = run_inside(1u << PROVOKER_COLD_FRONT);
	struct cell_result *r = &shared->result;

	(void)state;
	assert_int_equal(shared->provoked.flushes, r->toggles + r->retries);
	assert_int_equal(shared->stirred, 0);
}

static void the_patcher_rewrites_the_extra_sites(void **state)
{
	struct shared *shared = run_inside(1u << PROVOKER_SITES);

	(void)state;
	assert_int_equal(shared->stirred, CODE_EXTRA * shared->result.toggles);
	assert_int_equal(shared->provoked.flushes, 0);
}

static void the_executors_provoke_after_each_round(void **state)
{
	struct seating seating;
	struct shared *shared;
	struct cell cell;
	char reason[160];

	(void)state;
	seat(&cell, &seating, 1u << PROVOKER_WIDE);
	if (provokers_possible(&cell, how.topology, &seating, reason, sizeof(reason)) < 0)
		skip();
	shared = run_inside(cell.provokers);
	assert_int_equal(shared->provoked.wide, shared->result.executions / 1000);
}

static uint64_t involuntary(unsigned provokers)
{
	struct cell_result r;
	struct seating seating;
	struct cell cell;

	seat(&cell, &seating, provokers);
	cell.toggles = CELL_TOGGLES_MAX;
	cell.seconds = 0.5;
	assert_int_equal(cell_run(&cell, &how, &r), 0);
	assert_int_equal(r.outcome, OUTCOME_DONE);
	assert_true(r.witness.involuntary != WITNESS_UNKNOWN);
	return r.witness.involuntary;
}

/* 0.5 s of bursts of 0.2 ms with as long a rest; a scheduler's slice is some 4 ms at most. */
static void load_takes_the_cpu_from_executors(void **state)
{
	(void)state;
	assert_true(involuntary(1u << PROVOKER_LOAD) >= 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_takes_the_cpu_from_executors),
		cmocka_unit_test(every_provoker_lets_its_cell_end),
		cmocka_unit_test(the_patcher_provokes_before_each_toggle),
		cmocka_unit_test(the_patcher_rewrites_the_extra_sites),
		cmocka_unit_test(the_executors_provoke_after_each_round),
	};

	return open_place() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
