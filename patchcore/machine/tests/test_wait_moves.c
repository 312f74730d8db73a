/* SPDX-License-Identifier: MIT */
/*
 * Waits of a thread that is moved about, by clocks that are made up here: the TSCs of two
 * CPUs, apart by any offset, and the true time, which no CPU tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct moment;
static struct moment made_up_moment(void);

#define MOMENT_READ() made_up_moment()

#include "patchcore/machine/wait.h"

#define READING 30 /* ticks of true time from one reading to the next, at least */
#define READS	100000

static struct {
	uint64_t time;	    /* the true one */
	uint64_t offset[2]; /* of each CPU's TSC */
	unsigned cpu;
	uint64_t random;
	unsigned moves;	 /* of 256 readings, so many are on another CPU than the last */
	unsigned warps;	 /* ... and so many find the TSC of their CPU set back */
	unsigned pauses; /* ... and so many come late */
	unsigned reads;
} now;

static unsigned draw(unsigned below)
{
	now.random ^= now.random << 13;
	now.random ^= now.random >> 7;
	now.random ^= now.random << 17;
	return (unsigned)(now.random >> 32) % below;
}

static struct moment made_up_moment(void)
{
	if (++now.reads > READS)
		fail_msg("the wait does not end");
	now.time += READING;
	if (draw(256) < now.pauses)
		now.time += draw(5000);
	if (draw(256) < now.moves)
		now.cpu ^= 1;
	if (draw(256) < now.warps)
		now.offset[now.cpu] -= draw(1000000);
	return (struct moment){ now.time + now.offset[now.cpu], now.cpu };
}

static void start_clocks(uint64_t seed, uint64_t ahead)
{
	now.time = 1000000;
	now.cpu = 0;
	now.offset[0] = 0;
	now.offset[1] = ahead;
	now.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	now.moves = now.warps = now.pauses = now.reads = 0;
}

/* Differences that TSCs have had: none, a reset's, a socket's, and what a wrap makes of them. */
static const uint64_t aheads[] = { 0,
				   1,
				   200,
				   20000,
				   999999,
				   UINT64_C(1) << 40,
				   UINT64_C(0) - 200,
				   UINT64_C(0) - 20000,
				   UINT64_C(1) << 63 };

#define AHEADS (sizeof(aheads) / sizeof(aheads[0]))

typedef void wait_fn(struct moment start, uint64_t ticks);

/* True time that a wait took. */
static uint64_t lasted(wait_fn *wait, uint64_t ticks)
{
	struct moment start = made_up_moment();
	uint64_t begin = now.time;

	wait(start, ticks);
	return now.time - begin;
}

/* The broken variant: it takes the TSCs of all CPUs for one clock. */
static void blind_wait(struct moment start, uint64_t ticks)
{
	uint64_t waited = 0;

	do {
		struct moment other = MOMENT_READ();
		int64_t step = (int64_t)(other.ticks - start.ticks);

		waited += step > 0 ? (uint64_t)step : 0;
		start = other;
	} while (waited < ticks);
}

static void plain_wait(struct moment start, uint64_t ticks)
{
	ticks_wait_since(start, ticks);
}

static void wait_from_now(struct moment start, uint64_t ticks)
{
	(void)start;
	ticks_wait(ticks);
}

static unsigned short_waits(wait_fn *wait)
{
	unsigned count = 0;

	for (size_t i = 0; i < AHEADS; i++) {
		for (uint64_t seed = 1; seed <= 500; seed++) {
			uint64_t ticks = 200 + seed * 37 % 20000;

			start_clocks(seed, aheads[i]);
			now.moves = seed % 4 * 20;
			now.pauses = seed % 3 * 4;
			count += lasted(wait, ticks) < ticks;
		}
	}
	return count;
}

/* The oracle of this test sees a wait that is too short. */
static void test_a_blind_wait_is_short(void **state)
{
	(void)state;
	assert_true(short_waits(blind_wait) > 500);
}

static void test_no_wait_is_short(void **state)
{
	(void)state;
	assert_int_equal(short_waits(plain_wait), 0);
	assert_int_equal(short_waits(wait_from_now), 0);
}

/* One move at the worst moment: just behind the start, to a CPU that is ahead by the wait. */
static void test_one_move(void **state)
{
	(void)state;
	for (unsigned at = 1; at < 10; at++) {
		struct moment start;
		uint64_t begin;

		start_clocks(at, 20000);
		start = made_up_moment();
		begin = now.time;
		now.cpu = 1;
		ticks_wait_since(start, 20000);
		assert_true(now.time - begin >= 20000);
		/* By no more than the step that was lost. */
		assert_true(now.time - begin <= 20000 + 3 * READING);
		now.cpu = 0;
		start = made_up_moment();
		now.cpu = 1;
		assert_true(ticks_wait_since(start, 20000) == UINT64_MAX);
	}
}

/* Where it stays, it lasts as long as it should, and no longer than that and a reading. */
static void test_one_cpu(void **state)
{
	(void)state;
	for (size_t i = 0; i < AHEADS; i++) {
		uint64_t ticks = 20000, took;

		start_clocks(1, aheads[i]);
		now.cpu = 1;
		took = lasted(plain_wait, ticks);
		assert_true(took >= ticks && took <= ticks + READING);
		start_clocks(1, aheads[i]);
		now.cpu = 1;
		assert_int_equal(ticks_wait_since(made_up_moment(), ticks), READING);
	}
}

/* A TSC that is set back now and then: its steps are lost, the wait is not. */
static void test_set_back(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		start_clocks(seed, aheads[seed % AHEADS]);
		now.warps = 10;
		now.moves = 5;
		assert_true(lasted(plain_wait, 3000) >= 3000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_blind_wait_is_short),
		cmocka_unit_test(test_no_wait_is_short),
		cmocka_unit_test(test_one_move),
		cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
