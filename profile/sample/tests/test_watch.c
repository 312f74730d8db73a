/* SPDX-License-Identifier: MIT */
/*
 * How long the probe of an entry stays on behind the end of its window: until the calls that are
 * timed have ended, and no longer than five windows. What calls of the probe function take. Ticks
 * are the test's: what reads them is compiled into it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint64_t ticks_now, ticks_step;
#define __builtin_ia32_rdtsc() (ticks_now += ticks_step)
#include "profile/sample/ring.c"
#include "profile/sample/watch.c"

enum {
	ENTRY = 1,
	EXIT = 2,
	PROBES
};

static struct group group = { ENTRY, EXIT };
static unsigned offs[PROBES];
static uint64_t stack[16];

/* In place of the library's. */
int fi_deactivate(uint32_t id)
{
	offs[id]++;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	watch_common =
		(struct watch_common){ .recent = INT64_MAX, .overlong = 1000000, .callers = 10 };
	memset(watches, 0, PROBES * sizeof(*watches));
	memset(offs, 0, sizeof(offs));
	for (uint32_t id = ENTRY; id < PROBES; id++) {
		watches[id].group = &group;
		watches[id].next = NO_PROBE;
		watches[id].entry = ENTRY;
	}
	watches[ENTRY].limit = NEVER;
	watches[ENTRY].window = 2000;
	frames_drop(ring_here() ? ring_here() : ring_make());
	watches[ENTRY].torn = 0;
	return 0;
}

/* A return address lies in that word: the lower, the further in. */
static struct fi_regs at(unsigned word)
{
	return (struct fi_regs){ .rsp = (uint64_t)&stack[word] };
}

static void enter(uint64_t time, unsigned word)
{
	struct fi_regs regs = at(word);

	ticks_now = time;
	watch_call(ENTRY, NULL, &regs, NULL);
}

static void leave(uint64_t time, unsigned word)
{
	struct fi_regs regs = at(word);

	ticks_now = time;
	watch_exit(EXIT, NULL, &regs, NULL);
}

/* The window ends at 2000, while a call is timed. */
static void end_with_one_under_way(void)
{
	enter(1000, 9);
	assert_int_equal(PENDING_CALLS(watches[ENTRY].pending), 1);
	enter(2000, 8);
	assert_int_equal(watches[ENTRY].state, WATCH_OVER | WATCH_WAITS);
	assert_int_equal(offs[ENTRY], 0);
}

static void test_call_ends_in_time(void **state)
{
	(void)state;
	end_with_one_under_way();
	enter(3000, 8);
	assert_int_equal(offs[ENTRY], 0);
	leave(4000, 9);
	assert_int_equal(watches[ENTRY].timed, 1);
	assert_int_equal(watches[ENTRY].time, 3000);
	enter(4001, 9);
	assert_int_equal(offs[ENTRY], 1);
	assert_int_equal(watches[ENTRY].state, WATCH_OVER);
	assert_int_equal(watches[ENTRY].cut, 0);
}

/* A window of a whole epoch is full when no more calls can be afforded. */
static void test_as_many_as_can_be_afforded(void **state)
{
	(void)state;
	watches[ENTRY].limit = 100;
	watches[ENTRY].window = UINT64_MAX;
	watches[ENTRY].group = NULL;
	watch_common.affordable_calls = ring_run() + 1000;
	for (uint64_t i = 1; i <= 2000; i++)
		enter(i, 9);
	assert_int_equal(watches[ENTRY].calls, 800);
	assert_int_equal(watches[ENTRY].limit, 800);
	assert_int_equal(watches[ENTRY].middle, 400);
	assert_int_equal(watches[ENTRY].filled, 800);
	assert_int_equal(offs[ENTRY], 1);
}

static void test_call_goes_on_for_five_windows(void **state)
{
	(void)state;
	end_with_one_under_way();
	enter(10000, 8);
	assert_int_equal(offs[ENTRY], 0);
	assert_int_equal(watches[ENTRY].cut, 0);
	enter(10001, 8);
	assert_int_equal(offs[ENTRY], 1);
	assert_int_equal(watches[ENTRY].state, WATCH_OVER);
	assert_int_equal(watches[ENTRY].cut, 1);
	assert_int_equal(PENDING_CALLS(watches[ENTRY].pending), 0);
	/* Its end comes too late, and a late call does not turn off what is off. */
	leave(10002, 9);
	enter(10003, 8);
	assert_int_equal(watches[ENTRY].timed, 0);
	assert_int_equal(watches[ENTRY].torn, 0);
	assert_int_equal(offs[ENTRY], 1);
}

static void test_nothing_is_under_way(void **state)
{
	(void)state;
	enter(1000, 9);
	leave(1500, 9);
	enter(2000, 9);
	assert_int_equal(offs[ENTRY], 1);
	assert_int_equal(watches[ENTRY].cut, 0);
}

/* Where calls come so often that there are windows, the machine was stopped in it. */
static void test_overlong(void **state)
{
	(void)state;
	enter(1000, 9);
	leave(1001001, 9);
	assert_int_equal(watches[ENTRY].timed, 0);
	assert_int_equal(watches[ENTRY].cut, 1);
	enter(1500, 9);
	leave(1001500, 9);
	assert_int_equal(watches[ENTRY].timed, 1);
	assert_int_equal(watches[ENTRY].cut, 1);
}

static void test_overlong_where_calls_are_rare(void **state)
{
	(void)state;
	watches[ENTRY].wish = WINDOW_WHOLE;
	enter(1000, 9);
	leave(1001001, 9);
	assert_int_equal(watches[ENTRY].timed, 1);
	assert_int_equal(watches[ENTRY].cut, 0);
}

static void setup_meter(void)
{
	struct ring *ring = ring_here();

	store_relaxed(&ring->metered, 0);
	store_relaxed(&ring->meter, 0);
	atomic_store(&ring->run, 0);
	ring->spent = 0;
	watch_common.price = 30;
	watch_common.warm = 200;
	watch_common.callers = 0;
}

static void call_often(unsigned calls, uint64_t step)
{
	ticks_step = step;
	for (unsigned i = 0; i < calls; i++)
		enter(1000, 9);
	ticks_step = 0;
}

static void test_price_in_place(void **state)
{
	struct ring *ring = ring_here();

	(void)state;
	setup_meter();
	assert_true(ring_price() == 30);
	call_often(METERED - 1, 100);
	assert_int_equal(ring->metered, 0);
	call_often(METERED + 1, 100);
	assert_int_equal(ring->metered, 2);
	assert_true(ring_metered() == 100);
	/* No less than what was measured at start. */
	assert_true(ring_price() == 30);
	call_often(2 * METERED, 700);
	assert_int_equal(ring->metered, 4);
	assert_true(ring_metered() == 400);
	assert_true(ring_price() == 60);
	/* Of a thread that had no CPU meanwhile. */
	call_often(METERED, 100001);
	assert_int_equal(ring->metered, 4);
	watch_common.warm = 0;
	assert_true(ring_price() == 30);
}

/* Ticks that are noted as spent are not metered. */
static void test_price_without_spent(void **state)
{
	struct ring *ring = ring_here();

	(void)state;
	setup_meter();
	watch_common.callers = 2 * METERED;
	ticks_step = 100;
	for (unsigned i = 0; i < METERED; i++) {
		atomic_store(&ring->run, i);
		ring->spent = 0;
		enter(1000, 1);
		leave(1500, 1);
	}
	ticks_step = 0;
	/* The end of one call, the start of another. */
	assert_int_equal(ring->metered, 2);
	assert_true(ring->spent >= 300);
	assert_true(ring_metered() <= 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_as_many_as_can_be_afforded, setup),
		cmocka_unit_test_setup(test_call_ends_in_time, setup),
		cmocka_unit_test_setup(test_call_goes_on_for_five_windows, setup),
		cmocka_unit_test_setup(test_nothing_is_under_way, setup),
		cmocka_unit_test_setup(test_overlong, setup),
		cmocka_unit_test_setup(test_overlong_where_calls_are_rare, setup),
		cmocka_unit_test_setup(test_price_in_place, setup),
		cmocka_unit_test_setup(test_price_without_spent, setup),
	};

	if (ring_start())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
