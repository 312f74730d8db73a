/* SPDX-License-Identifier: MIT */
/* Calibrations in which pairs of CPUs store at once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/session/tests/climb_machine.h"
#include "stress/tests/synthetic.h"

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

	start_session(m);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ON_MACHINE(pairs_cover_all_cpus),
		TEST_ON_MACHINE(all_cpus_store_at_once),
		TEST_ON_MACHINE(a_pair_tells_that_it_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
