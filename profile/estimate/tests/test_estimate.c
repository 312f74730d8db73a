/* SPDX-License-Identifier: MIT */
/* Programs with known counts: how many of the intervals hold them. Seeds are fixed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "profile/estimate/estimate.h"

#define TRIALS 400u
#define EPOCHS 150u
#define EPOCH  10000u /* ticks */
#define WANTED 10u

enum calls {
	AT_RANDOM,
	EVENLY,
	IN_PHASES,
	IN_BURSTS,
	RARELY
};
enum stop {
	BY_TIME,
	BY_COUNT,
	BY_COUNT_NAIVE
};

struct program {
	enum calls calls;
	double rate; /* per tick, while it runs */
	uint64_t random;
	double next;   /* call */
	double change; /* of phase or burst */
	bool quiet;
};

struct outcome {
	double covered;	 /* share of the intervals without a problem */
	double problems; /* share with one */
	double bias;
};

static void join_calls(struct call_estimate *sum, const struct call_estimate *other)
{
	struct measured both = { .calls = *sum }, more = { .calls = *other };

	measured_join(&both, &more);
	*sum = both.calls;
}

static double uniform(struct program *program)
{
	return ((double)(random_next(&program->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(struct program *program, double mean)
{
	return -log(uniform(program)) * mean;
}

/* Phases last for a dozen epochs; bursts for a twentieth of one, and come every other epoch. */
static void next_change(struct program *program)
{
	program->quiet = !program->quiet;
	if (program->calls == IN_PHASES)
		program->change += exponential(program, 12 * EPOCH);
	else
		program->change += exponential(program, program->quiet ? EPOCH * 2 : EPOCH / 20);
}

static void next_call(struct program *program)
{
	double slow = program->calls == IN_PHASES ? 0.2 : 1e-9;

	if (program->calls == EVENLY) {
		program->next += 1 / program->rate;
		return;
	}
	for (;;) {
		double rate = program->rate * (program->quiet ? slow : 1);
		double next = program->next + exponential(program, 1 / rate);

		if (program->calls < IN_PHASES || program->calls == RARELY ||
		    next < program->change) {
			program->next = next;
			return;
		}
		program->next = program->change;
		next_change(program);
	}
}

static struct epoch run_epoch(struct program *program, double start, uint64_t length,
			      uint64_t window, uint64_t limit, uint64_t *truth)
{
	struct epoch epoch = { .length = length, .watched = length };

	if (window < length)
		epoch.watched = window;
	for (; program->next < start + (double)length; next_call(program)) {
		uint64_t at = (uint64_t)(program->next - start);

		++*truth;
		if (epoch.full || at >= epoch.watched)
			continue;
		if (!epoch.calls++)
			epoch.first = at;
		if (epoch.calls != limit)
			continue;
		epoch.full = true;
		epoch.watched = at ? at : 1;
	}
	return epoch;
}

static struct interval run(struct program *program, enum stop stop, uint64_t *truth)
{
	struct call_estimate estimate = { 0 };
	double start = uniform(program) * EPOCH;

	*truth = 0;
	next_call(program);
	while (program->next < start)
		next_call(program);
	for (unsigned i = 0; i < EPOCHS; i++) {
		uint64_t length = random_about(&program->random, EPOCH);
		uint64_t window = stop == BY_TIME
					  ? estimate_window(&estimate, length, WANTED, WANTED, 1)
					  : WINDOW_WHOLE;
		struct epoch epoch = run_epoch(program, start, length, window,
					       stop == BY_TIME ? 100 * WANTED : WANTED, truth);

		if (stop == BY_COUNT_NAIVE)
			epoch.full = false;
		estimate_add(&estimate, &epoch);
		start += (double)length;
	}
	return estimate_interval(&estimate);
}

static struct outcome judge(enum calls calls, double rate, enum stop stop)
{
	struct outcome outcome = { 0 };
	unsigned clear = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		struct program program = { .calls = calls, .rate = rate, .random = 1000 + i };
		uint64_t truth;
		struct interval interval = run(&program, stop, &truth);

		outcome.bias += (interval.value - (double)truth) / (double)truth / TRIALS;
		if (interval.problem)
			continue;
		clear++;
		outcome.covered += interval.low <= (double)truth && (double)truth <= interval.high;
	}
	outcome.problems = 1 - (double)clear / TRIALS;
	outcome.covered /= clear ? clear : 1;
	print_message("calls %d rate %g stop %d: %.3f covered, %.3f with a problem, bias %.4f\n",
		      calls, rate, stop, outcome.covered, outcome.problems, outcome.bias);
	return outcome;
}

static void test_windows(void **state)
{
	static const struct {
		enum calls calls;
		double rate;
	} programs[] = {
		{ AT_RANDOM, 0.002 },
		{ AT_RANDOM, 0.02 },
		{ EVENLY, 0.0173 },
		{ IN_PHASES, 0.03 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct outcome outcome = judge(programs[i].calls, programs[i].rate, BY_TIME);

		assert_true(outcome.covered >= 0.93);
		assert_true(outcome.problems <= 0.05);
		assert_true(fabs(outcome.bias) < 0.01);
	}
}

static void test_rare_calls_are_exact(void **state)
{
	struct program program = { .calls = RARELY, .rate = 0.0002, .random = 3 };
	uint64_t truth;
	struct interval interval = run(&program, BY_TIME, &truth);

	(void)state;
	assert_true(truth > 0);
	assert_true(interval.value == (double)truth);
	assert_true(interval.low == interval.high);
	assert_null(interval.problem);
}

/* Either what is said holds, or it is said that it may not. */
static void test_bursts(void **state)
{
	struct outcome outcome = judge(IN_BURSTS, 0.2, BY_TIME);

	(void)state;
	assert_true(outcome.problems > 0.5 || outcome.covered >= 0.93);
	assert_true(fabs(outcome.bias) < 0.05);
	/* Stopping after so many calls sees a burst as ten calls, and says so. */
	outcome = judge(IN_BURSTS, 0.2, BY_COUNT);
	assert_true(outcome.problems > 0.95);
}

static void test_stopping_by_count(void **state)
{
	(void)state;
	assert_true(judge(AT_RANDOM, 0.02, BY_COUNT).covered >= 0.93);
	/* What the n-th of even distances ends is half a distance too long. */
	assert_true(judge(EVENLY, 0.0173, BY_COUNT).bias < -0.03);
}

/* The broken variant: n calls until the n-th. */
static void test_naive_is_caught(void **state)
{
	struct outcome outcome = judge(AT_RANDOM, 0.02, BY_COUNT_NAIVE);

	(void)state;
	assert_true(outcome.covered < 0.5);
	assert_true(outcome.bias > 0.05);
}

/*
 * The program stands still while probes count, and while others are turned off; and behind the
 * opening of a window it is slower than on average. What the estimate is of the truth.
 */
static double of_truth(bool with_spent, uint64_t warm)
{
	struct call_estimate estimate = { 0 };
	uint64_t random = 9;
	double truth = 0;

	for (unsigned i = 0; i < EPOCHS; i++) {
		const double window = 1000, rate = 0.05, price = 4, others = 8;
		double spent = 50 + (double)(random_next(&random) % 200);
		double cold = warm ? 0 : 100;
		/* calls * (1 / rate + price * others) + spent + cold = window */
		double calls = (window - spent - cold) / (1 / rate + price * others);
		double slowed =
			estimate_slowed(calls * others, price, with_spent ? spent : 0, window);
		struct epoch epoch = { .length = EPOCH, .slowed = slowed };

		epoch.calls = (uint64_t)(calls + (double)(random_next(&random) % 1000) / 1000);
		epoch.watched = (uint64_t)(window * (1 - slowed));
		estimate_add(&estimate, &epoch);
		truth += rate * EPOCH;
	}
	return estimate_interval(&estimate).value / truth;
}

static void test_what_slows_a_window(void **state)
{
	(void)state;
	assert_true(fabs(of_truth(true, 200) - 1) < 0.02);
	/* The broken variants count too low. */
	assert_true(of_truth(false, 200) < 0.9);
	assert_true(of_truth(true, 0) < 0.9);
	assert_true(estimate_slowed(1000, 60, 0, 100) < 1);
	assert_true(estimate_slowed(1000, 60, 0, 0) == 0);
}

/*
 * Counting takes most of a window, by a price that is 15 % off: the interval has what there was,
 * and no more than there was time for.
 */
static void test_price_is_off(void **state)
{
	const double apart = 6, price = 65, window = 500000, length = 26000000;

	(void)state;
	for (int off = -1; off <= 1; off++) {
		double calls = window / (apart + price);
		double slowed = estimate_slowed(calls, price * (1 + 0.15 * off), 0, window);
		struct epoch epoch = { .calls = (uint64_t)calls,
				       .length = (uint64_t)length,
				       .used = (uint64_t)length,
				       .slowed = slowed,
				       .watched = (uint64_t)(window * (1 - slowed)) };
		struct call_estimate estimate = { 0 };
		struct interval interval;

		for (int i = 0; i < 20; i++)
			estimate_add(&estimate, &epoch);
		interval = estimate_interval(&estimate);
		assert_true(interval.low <= 20 * length / apart);
		assert_true(interval.high >= 20 * length / apart);
		assert_true(interval.low > 20 * length / apart / 100);
		assert_true(interval.high <= 20 * length);
		assert_non_null(interval.problem);
	}
}

/* A window costs more than to count what few calls come in all of the epoch. */
static void test_few_are_all_counted(void **state)
{
	struct call_estimate estimate = { 0 };
	struct epoch epoch = { .calls = 150, .watched = 1000, .length = 1000 };

	(void)state;
	estimate_add(&estimate, &epoch);
	assert_int_equal(estimate_window(&estimate, 1000, 10, 200, 1), WINDOW_WHOLE);
	assert_in_range(estimate_window(&estimate, 1000, 10, 100, 1), 66, 67);
	assert_in_range(estimate_window(&estimate, 2000, 10, 200, 1), 66, 67);
}

/* One window in all of a program says nothing of how much the rest differs from it. */
static void test_lone_window(void **state)
{
	const struct epoch window = { .calls = 100, .watched = 100, .length = 10000 };
	const struct epoch quiet = { .watched = 100, .length = 10000 };
	struct call_estimate one = { 0 }, two = { 0 }, many = { 0 }, none = { 0 };
	struct interval interval;

	(void)state;
	estimate_add(&one, &window);
	interval = estimate_interval(&one);
	assert_true(interval.value == 10000);
	assert_true(interval.low >= 100 && interval.low < 1000 && interval.high > 100000);
	/* Two processes are no neighbours, either. */
	join_calls(&two, &one);
	join_calls(&two, &one);
	assert_true(estimate_interval(&two).high > 200000);
	/* Nor is a third, in which windows had some. */
	for (int i = 0; i < 3; i++)
		estimate_add(&many, &window);
	assert_true(estimate_interval(&many).high < 100000);
	join_calls(&two, &many);
	assert_true(estimate_interval(&two).high > 200000);
	/* A window without calls takes nothing off those that were counted. */
	none.counted = none.calls = 100;
	estimate_add(&none, &quiet);
	interval = estimate_interval(&none);
	assert_true(interval.low == 100 && interval.high < 102);
}

static void test_nothing(void **state)
{
	struct call_estimate estimate = { 0 };
	struct epoch none = { 0 }, silent = { .length = 10, .watched = 10 };
	struct interval interval;

	(void)state;
	estimate_add(&estimate, &none);
	estimate_add(&estimate, &silent);
	interval = estimate_interval(&estimate);
	assert_true(interval.value == 0 && interval.low == 0 && interval.high == 0);
	assert_int_equal(estimate_window(&estimate, 100, 10, 10, 1), WINDOW_WHOLE);
}

/* What comes behind a sudden end is as the next window; if there is none, it went on, or did not.
 */
static void test_sudden_end(void **state)
{
	struct call_estimate estimate = { 0 }, sum = { 0 }, next_only = { 0 }, late = { 0 };
	struct epoch burst = {
		.calls = 50, .watched = 100, .length = 1100, .full = true, .sudden = true
	};
	struct epoch next = { .calls = 10, .watched = 100, .length = 1000 };

	(void)state;
	estimate_add(&estimate, &burst);
	assert_true(fabs(estimate_interval(&estimate).value - (50 + 0.49 * 1000)) < 1e-6);
	assert_true(estimate_interval(&estimate).low == 50);
	assert_true(estimate_interval(&estimate).high > 50 + 0.5 * 1100);
	assert_non_null(estimate_interval(&estimate).problem);
	/* The quiet before the burst is none of it. */
	burst.first = 51;
	estimate_add(&late, &burst);
	assert_true(fabs(estimate_interval(&late).value - (50 + 1000)) < 1e-6);
	/* Nor are calls that came slowly: the last half of them shows. */
	burst.middle = 75;
	late = (struct call_estimate){ 0 };
	estimate_add(&late, &burst);
	assert_true(fabs(estimate_interval(&late).value - (50 + 1000)) < 1e-6);
	burst.middle = 95;
	late = (struct call_estimate){ 0 };
	estimate_add(&late, &burst);
	assert_true(fabs(estimate_interval(&late).value - (50 + 5 * 1000)) < 1e-6);
	/* It may have gone on some times as fast. */
	assert_true(estimate_interval(&late).high > 50 + 5 * 1000 * 5);
	/* Processes of which one ended so. */
	join_calls(&sum, &next_only);
	join_calls(&sum, &estimate);
	assert_true(fabs(estimate_interval(&sum).value - (50 + 0.49 * 1000)) < 1e-6);
	estimate_add(&estimate, &next);
	assert_true(fabs(estimate_interval(&estimate).value - (250 + 0.39 * 1000 / 2)) < 1e-6);
}

/* A burst that ends at any time before the next window: too much now, too little then. */
static void test_sudden_end_is_not_biased(void **state)
{
	const struct epoch quiet = { .watched = 1000, .length = 1000 };
	double estimated = 0, truth = 0, held = 0;

	(void)state;
	for (unsigned end = 100; end < 1000; end++) {
		struct epoch burst = {
			.calls = 50, .watched = 100, .length = 1000, .full = true, .sudden = true
		};
		struct call_estimate estimate = { 0 };
		struct interval interval;
		double calls = 50 + 0.49 * (end - 100);

		estimate_add(&estimate, &burst);
		estimate_add(&estimate, &quiet);
		interval = estimate_interval(&estimate);
		estimated += interval.value;
		truth += calls;
		held += interval.low <= calls && calls <= interval.high;
	}
	assert_true(fabs(estimated / truth - 1) < 0.01);
	assert_true(held == 900);
}

/* What began suddenly and is over when the next window opens may have gone on for longer. */
static void test_unseen_end(void **state)
{
	struct epoch whole = { .watched = 1000, .length = 1000 };
	struct epoch burst = {
		.calls = 50, .watched = 100, .length = 1000, .full = true, .sudden = true
	};
	struct call_estimate estimate = { 0 };
	struct interval interval;

	(void)state;
	estimate_add(&estimate, &burst);
	estimate_add(&estimate, &whole);
	interval = estimate_interval(&estimate);
	assert_true(fabs(interval.value - (50 + 0.49 * 900 / 2)) < 1e-6 && interval.low == 50);
	assert_true(interval.high >= 50 + 49 * 9);
	assert_non_null(interval.problem);

	/* The clock stood still meanwhile: how long the end was is not known at all. */
	burst.watched = burst.length;
	estimate = (struct call_estimate){ 0 };
	for (int i = 0; i < 3; i++)
		estimate_add(&estimate, &burst);
	interval = estimate_interval(&estimate);
	assert_true(interval.low == 150 && interval.value == 150 && interval.high >= 300);
	assert_non_null(interval.problem);
}

static void test_join(void **state)
{
	struct program program = { .calls = AT_RANDOM, .rate = 0.02, .random = 5 };
	struct call_estimate sum = { 0 }, one = { 0 };
	struct epoch epoch = { .calls = 10, .watched = 100, .length = 1000 };

	(void)state;
	for (int i = 0; i < 50; i++) {
		epoch.calls = 5 + random_next(&program.random) % 10;
		estimate_add(&one, &epoch);
	}
	join_calls(&sum, &one);
	assert_true(estimate_interval(&sum).value == estimate_interval(&one).value);
	join_calls(&sum, &one);
	assert_true(estimate_interval(&sum).value == 2 * estimate_interval(&one).value);
	assert_true(estimate_interval(&sum).low < estimate_interval(&sum).value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_rare_calls_are_exact),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_stopping_by_count),
		cmocka_unit_test(test_naive_is_caught),
		cmocka_unit_test(test_few_are_all_counted),
		cmocka_unit_test(test_lone_window),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_sudden_end),
		cmocka_unit_test(test_sudden_end_is_not_biased),
		cmocka_unit_test(test_unseen_end),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_what_slows_a_window),
		cmocka_unit_test(test_price_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
