/* SPDX-License-Identifier: MIT */
/*
 * Calls with known durations, of which some are timed in each epoch: how many of the intervals hold
 * what all took. The mean of what was timed, without weights, shows that it can fail. Seeds are
 * fixed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "profile/estimate/estimate.h"

#define TRIALS 400u
#define EPOCHS 100u
#define TIMED  10u

static double wall;

static double uniform(uint64_t *random)
{
	return ((double)(random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

struct program {
	uint64_t random;
	double calls, truth; /* of all epochs */
	double timed, plain; /* by the mean of what was timed */
	struct duration duration;
};

/* In busy epochs there are twenty times as many calls, and each is a quarter as long. */
static void run_epoch(struct program *program, bool busy)
{
	double calls = busy ? 2000 : 100, mean = busy ? 25 : 100;
	struct timed timed = { .calls = calls, .timed = TIMED };

	program->calls += calls;
	program->truth += calls * mean;
	for (unsigned i = 0; i < TIMED; i++)
		timed.time -= log(uniform(&program->random)) * mean;
	timed.wall = timed.time * 2;
	program->timed += TIMED;
	program->plain += timed.time;
	duration_add(&program->duration, &timed);
}

static void run(struct program *program, unsigned seed)
{
	*program = (struct program){ .random = 1000 + seed };
	for (unsigned i = 0; i < EPOCHS; i++)
		run_epoch(program, i % 20 < 10);
}

static void test_epochs_weigh_by_their_calls(void **state)
{
	unsigned held = 0, plain_held = 0;
	double bias = 0;

	(void)state;
	for (unsigned i = 0; i < TRIALS; i++) {
		struct program program;
		struct interval calls;
		struct interval spell;
		double plain;

		run(&program, i);
		calls = (struct interval){ program.calls, program.calls, program.calls, NULL };
		spell = duration_interval(&program.duration, &calls, &wall);
		plain = program.plain / program.timed * program.calls;
		assert_null(spell.problem);
		assert_true(fabs(wall / spell.value - 2) < 1e-9);
		bias += (spell.value / program.truth - 1) / TRIALS;
		held += spell.low <= program.truth && program.truth <= spell.high;
		plain_held += spell.low * plain / spell.value <= program.truth &&
			      program.truth <= spell.high * plain / spell.value;
	}
	print_message("%u of %u hold, %u without weights; bias %g\n", held, TRIALS, plain_held,
		      bias);
	assert_true(held > TRIALS * 0.92);
	assert_true(fabs(bias) < 0.01);
	assert_true(plain_held < TRIALS / 2);
}

static void test_all_timed_is_exact(void **state)
{
	struct duration duration = { 0 };
	struct interval calls = { 3, 3, 3, NULL };
	struct interval spell;

	(void)state;
	duration_add(&duration, &(struct timed){ 1, 1, 100, 100, 0 });
	duration_add(&duration, &(struct timed){ 2, 2, 7, 7, 0 });
	spell = duration_interval(&duration, &calls, &wall);
	assert_null(spell.problem);
	assert_true(fabs(spell.value - 107) < 1e-9);
	assert_true(fabs(spell.high - spell.low) < 1e-9);
}

/* A call that ends in a later epoch than it began in is one of that epoch's. */
static void test_ended_later(void **state)
{
	struct duration duration = { 0 };
	struct interval calls = { 1, 1, 1, NULL };

	(void)state;
	duration_add(&duration, &(struct timed){ 1, 0, 0, 0, 0 });
	duration_add(&duration, &(struct timed){ 0, 1, 500, 500, 0 });
	assert_true(fabs(duration_interval(&duration, &calls, &wall).value - 500) < 1e-9);
}

static void expect_problem(const struct duration *duration)
{
	struct interval calls = { 100, 100, 100, NULL };

	assert_non_null(duration_interval(duration, &calls, &wall).problem);
}

static void test_doubts(void **state)
{
	struct duration none = { 0 }, good = { 0 }, bad;

	(void)state;
	expect_problem(&none);
	for (unsigned i = 0; i < 20; i++)
		duration_add(&good, &(struct timed){ 5, 5, 100, 100, 1 });
	assert_null(
		duration_interval(&good, &(struct interval){ 100, 100, 100, NULL }, &wall).problem);
	bad = good;
	bad.cut = 20;
	expect_problem(&bad);
	bad = good;
	bad.torn = 20;
	expect_problem(&bad);
	bad = good;
	bad.blur = bad.time / 2;
	expect_problem(&bad);
}

/* What is left of a call when its probes are taken off may be next to nothing, by chance. */
static void test_next_to_nothing(void **state)
{
	struct duration duration = { 0 };
	struct interval calls = { 400, 400, 400, NULL };
	struct interval spell;

	(void)state;
	/* Per call -3 to 3.1, and the probes are known within 5. */
	for (unsigned i = 0; i < 20; i++)
		duration_add(&duration, &(struct timed){ 20, 10, i % 2 ? 31 : -30, 31, 5 });
	spell = duration_interval(&duration, &calls, &wall);
	assert_non_null(spell.problem);
	assert_true(spell.low == 0);
	assert_true(spell.high > 400 * 5);
	assert_true(spell.high < 400 * 10);
}

static void test_join(void **state)
{
	struct measured one = { 0 }, other = { 0 };
	struct interval calls = { 30, 30, 30, NULL };

	(void)state;
	duration_add(&one.time, &(struct timed){ 10, 5, 50, 60, 0 });
	duration_add(&other.time, &(struct timed){ 20, 5, 100, 100, 0 });
	measured_join(&one, &other);
	assert_true(fabs(duration_interval(&one.time, &calls, &wall).value - 500) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs_weigh_by_their_calls),
		cmocka_unit_test(test_all_timed_is_exact),
		cmocka_unit_test(test_ended_later),
		cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_next_to_nothing),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
