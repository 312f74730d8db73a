/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stress/witness/witness.h"

/* A cell of ten seconds on a machine that had nothing else to do. */
struct quiet {
	struct cell cell;
	struct seating seating;
	struct witness witness;
	struct noise_case noise;
	char reason[NOISE_REASON_MAX];
};

static void make_quiet(struct quiet *q)
{
	*q = (struct quiet){ .seating = { .patcher = 0, .executors = 1, .executor = { 1 } } };
	cell_defaults(&q->cell);
	witness_clear(&q->witness);
	/* As an idle virtual machine with two CPUs showed. */
	q->witness.involuntary = 450;
	q->witness.steal = 0.001;
	q->witness.load = 1;
	q->witness.interrupts = 5480;
	q->witness.smis = 0;
	q->witness.throttles = 0;
	q->witness.offset = -13;
	q->witness.offset_error = 169;
	q->witness.clock[0] = 1.4099;
	q->witness.clock[1] = 1.4230;
	q->witness.longest_step = 9000;
	q->noise = (struct noise_case){ &q->cell, &q->seating, &q->witness, 10, 2 };
}

static bool judge(struct quiet *q)
{
	bool noisy = noise_judge(&q->noise, q->reason, sizeof(q->reason));

	assert_true(noisy == (q->reason[0] != '\0'));
	return noisy;
}

static void expect_noise(struct quiet *q, const char *reason)
{
	assert_true(judge(q));
	assert_string_equal(q->reason, reason);
}

static void expect_quiet(struct quiet *q)
{
	if (judge(q))
		fail_msg("noisy: %s", q->reason);
}

static int new_quiet(void **state)
{
	static struct quiet quiet;

	make_quiet(&quiet);
	*state = &quiet;
	return 0;
}

static void an_idle_machine_is_quiet(void **state)
{
	expect_quiet(*state);
}

static void what_is_not_known_is_no_noise(void **state)
{
	struct quiet *q = *state;

	witness_clear(&q->witness);
	witness_threads_lost(&q->witness);
	expect_quiet(q);
}

static void stolen_time_is_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.steal = 0.0204;
	expect_quiet(q);
	q->witness.steal = 0.0206;
	expect_noise(q, "steal 2.1 %");
}

/* What one tick of the counter is in so short a cell. */
static void one_tick_of_steal_is_not(void **state)
{
	struct quiet *q = *state;

	q->noise.seconds = 0.05;
	q->witness.involuntary = 0;
	q->witness.steal = 0.01 / 0.05 / 2;
	expect_quiet(q);
	q->witness.steal *= 2;
	expect_noise(q, "steal 20.0 %");
}

static void switches_are_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.involuntary = 10 + 2 * 50 * 10;
	expect_quiet(q);
	q->witness.involuntary++;
	expect_noise(q, "1011 involuntary switches in 10 s");
	/* Four threads are switched as often as four. */
	q->seating.executors = 3;
	q->seating.executor[1] = 2;
	q->seating.executor[2] = 3;
	q->noise.online = 4;
	expect_quiet(q);
}

static void a_short_cell_may_see_a_few(void **state)
{
	struct quiet *q = *state;

	q->noise.seconds = 0.01;
	q->witness.involuntary = 11;
	expect_quiet(q);
	q->witness.involuntary = 12;
	expect_noise(q, "12 involuntary switches in 0.01 s");
}

static void where_cpus_are_shared_switches_are_the_point(void **state)
{
	static const enum provoker sharing[] = { PROVOKER_LOAD, PROVOKER_SHOOTDOWN,
						 PROVOKER_BANDWIDTH, PROVOKER_SIBLING };
	struct quiet *q = *state;

	q->witness.involuntary = 100000;
	q->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	expect_quiet(q);
	q->cell.placement = PLACEMENT_SPREAD;
	assert_true(judge(q));
	for (unsigned i = 0; i < sizeof(sharing) / sizeof(*sharing); i++) {
		q->cell.provokers = 1u << sharing[i] | 1u << PROVOKER_CHAIN;
		expect_quiet(q);
	}
	q->cell.provokers = 1u << PROVOKER_CHAIN | 1u << PROVOKER_COLD_BACK;
	assert_true(judge(q));
	/* Time taken by other machines is not the provoker's doing. */
	q->cell.provokers = 1u << PROVOKER_LOAD;
	q->witness.steal = 0.1;
	expect_noise(q, "steal 10.0 %");
}

static void strangers_are_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.load = 2;
	expect_noise(q, "1 other task runnable");
	q->witness.load = 5;
	expect_noise(q, "4 other tasks runnable");
}

static void strangers_elsewhere_are_not(void **state)
{
	struct quiet *q = *state;

	q->noise.online = 6;
	q->witness.load = 5;
	expect_quiet(q);
	q->witness.load = 6;
	expect_noise(q, "5 other tasks runnable");
	/* Two threads on one CPU use one. */
	q->seating.executors = 4;
	q->seating.executor[1] = 1;
	q->seating.executor[2] = 0;
	q->seating.executor[3] = 0;
	q->witness.load = 5;
	expect_quiet(q);
	/* CPUs taken offline meanwhile. */
	q->noise.online = 0;
	q->witness.load = 1;
	expect_quiet(q);
}

static void a_changed_clock_is_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.clock[0] = 1;
	q->witness.clock[1] = 1.09;
	expect_quiet(q);
	q->witness.clock[1] = 0.91;
	expect_quiet(q);
	q->witness.clock[1] = 1.11;
	expect_noise(q, "clock rate from 1.00 to 1.11 cycles per tick");
	q->witness.clock[1] = 0.89;
	expect_noise(q, "clock rate from 1.00 to 0.89 cycles per tick");
	q->cell.provokers = 1u << PROVOKER_WIDE;
	expect_quiet(q);
}

static void a_clock_known_once_says_nothing(void **state)
{
	struct quiet *q = *state;

	q->witness.clock[0] = -1;
	expect_quiet(q);
	q->witness.clock[0] = 1.4;
	q->witness.clock[1] = -1;
	expect_quiet(q);
}

static void a_tsc_that_goes_backwards_is_noise(void **state)
{
	struct quiet *q = *state;

	/* Pre-empted for a tenth of a second: that is what switches and steal are for. */
	witness_step(&q->witness, 260000000);
	expect_quiet(q);
	witness_step(&q->witness, (uint64_t)-1);
	expect_noise(q, "the TSC went backwards");
}

static void tscs_far_apart_are_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.offset_error = 200;
	q->witness.offset = -1200;
	expect_quiet(q);
	q->witness.offset = -1201;
	expect_noise(q, "TSCs 1201 ticks apart");
	q->witness.offset = 5000;
	expect_noise(q, "TSCs 5000 ticks apart");
	q->witness.offset_error = 4000;
	expect_quiet(q);
	q->witness.offset = INT64_MIN;
	assert_true(judge(q));
	q->witness.offset_error = WITNESS_UNKNOWN;
	expect_quiet(q);
}

static void throttling_is_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.throttles = 1;
	expect_noise(q, "throttled 1 time");
	q->witness.throttles = 2;
	expect_noise(q, "throttled 2 times");
}

static void frequent_smis_are_noise(void **state)
{
	struct quiet *q = *state;

	q->witness.smis = 10;
	expect_quiet(q);
	q->witness.smis = 11;
	expect_noise(q, "11 SMIs in 10 s");
	q->noise.seconds = 0.1;
	q->witness.involuntary = 0;
	q->witness.smis = 1;
	expect_quiet(q);
	q->witness.smis = 2;
	expect_noise(q, "2 SMIs in 0.1 s");
}

static void all_reasons_that_have_room_are_told(void **state)
{
	struct quiet *q = *state;
	char little[40];

	q->witness.steal = 0.071;
	q->witness.load = 3;
	q->witness.throttles = 4;
	expect_noise(q, "steal 7.1 %, 2 other tasks runnable, throttled 4 times");
	assert_true(noise_judge(&q->noise, little, sizeof(little)));
	assert_string_equal(little, "steal 7.1 %, 2 other tasks runnable");
	assert_true(noise_judge(&q->noise, little, 6));
	assert_string_equal(little, "steal");
	assert_true(noise_judge(&q->noise, NULL, 0));
}

static void a_cell_is_judged_by_its_own_result(void **state)
{
	struct quiet *q = *state;
	struct cell_result result = { .seconds = 10, .seating = q->seating };

	result.witness = q->witness;
	assert_false(noise_of_cell(&q->cell, &result, q->reason, sizeof(q->reason)));
	result.witness.steal = 0.5;
	assert_true(noise_of_cell(&q->cell, &result, q->reason, sizeof(q->reason)));
	assert_string_equal(q->reason, "steal 50.0 %");
	result.witness.steal = 0;
	result.witness.load = 1e6;
	assert_true(noise_of_cell(&q->cell, &result, q->reason, sizeof(q->reason)));
	result.witness.load = 1;
	result.seconds = 1;
	assert_true(noise_of_cell(&q->cell, &result, q->reason, sizeof(q->reason)));
	assert_string_equal(q->reason, "450 involuntary switches in 1 s");
}

#define TEST(test) cmocka_unit_test_setup(test, new_quiet)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_idle_machine_is_quiet),
		TEST(what_is_not_known_is_no_noise),
		TEST(stolen_time_is_noise),
		TEST(one_tick_of_steal_is_not),
		TEST(switches_are_noise),
		TEST(a_short_cell_may_see_a_few),
		TEST(where_cpus_are_shared_switches_are_the_point),
		TEST(strangers_are_noise),
		TEST(strangers_elsewhere_are_not),
		TEST(a_changed_clock_is_noise),
		TEST(a_clock_known_once_says_nothing),
		TEST(a_tsc_that_goes_backwards_is_noise),
		TEST(tscs_far_apart_are_noise),
		TEST(throttling_is_noise),
		TEST(frequent_smis_are_noise),
		TEST(all_reasons_that_have_room_are_told),
		TEST(a_cell_is_judged_by_its_own_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
