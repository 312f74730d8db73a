/* SPDX-License-Identifier: MIT */
/* A cell is a test only if each thread was on its CPU and the executor ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conform/child.h"
#include "conform/rounds.h"

#define NO_CPU (CPUS_MAX - 1)

static struct conform_request all;

static int read_cpus(void **state)
{
	struct cpus allowed;

	(void)state;
	return cpus_allowed(&allowed) < 0 ? -1 : conform_request_all(&all, &allowed);
}

static struct conform_result run_cell(const struct guarantee *g, unsigned executor, int load)
{
	const struct conform_cell cell = {
		.guarantee = g,
		.writer = all.cpu[0],
		.executor = executor,
		.seconds = 0.05,
		.seed = 1,
		.loaded = load != LOAD_NONE,
		.load_on = (unsigned)load,
	};
	struct run_options options = { 0 };
	struct conform_result result;

	assert_int_equal(conform_run(&cell, &options, &result), 0);
	return result;
}

static void count_trials(struct conform_child *c)
{
	for (uint64_t trial = 0; child_goes_on(c); trial++)
		child_count(c, trial + 1);
}

static void run_nothing(struct conform_child *c)
{
	(void)c;
}

static void run_twice(struct conform_child *c)
{
	child_write(c, c->arena, 1, 0, EXECUTOR);
	for (unsigned i = 0; i < 2; i++)
		child_call(c, c->arena, EXECUTOR);
}

static void each_promise_is_tried(void **state)
{
	(void)state;
	for (const struct guarantee *g = guarantees; g->name; g++) {
		struct conform_result r = run_cell(g, all.cpu[all.cpus - 1], (int)all.cpu[0]);

		/* A kernel may lack membarrier. */
		assert_true(r.error == 0 ? r.trials > 0 : r.error != CONFORM_UNSEATED);
		assert_int_equal(r.failures, 0);
	}
}

static void a_cpu_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	for (const struct guarantee *g = guarantees; g->name; g++) {
		if (g->threads > 1)
			assert_int_equal(run_cell(g, NO_CPU, LOAD_NONE).error, CONFORM_UNSEATED);
		assert_int_equal(run_cell(g, all.cpu[0], NO_CPU).error, CONFORM_UNSEATED);
	}
}

static void an_executor_that_never_ran_is_an_error(void **state)
{
	const struct guarantee idle = {
		.name = "idle", .threads = 2, .write = count_trials, .execute = run_nothing
	};

	(void)state;
	assert_int_equal(run_cell(&idle, all.cpu[all.cpus - 1], LOAD_NONE).error, CONFORM_IDLE);
}

static void trials_are_no_more_than_executions(void **state)
{
	const struct guarantee twice = {
		.name = "twice", .threads = 2, .write = count_trials, .execute = run_twice
	};
	struct conform_result r;

	(void)state;
	r = run_cell(&twice, all.cpu[all.cpus - 1], LOAD_NONE);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.trials, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_promise_is_tried),
		cmocka_unit_test(a_cpu_that_is_not_there_is_an_error),
		cmocka_unit_test(an_executor_that_never_ran_is_an_error),
		cmocka_unit_test(trials_are_no_more_than_executions),
	};

	return cmocka_run_group_tests(tests, read_cpus, NULL);
}
