/* SPDX-License-Identifier: MIT */
/*
 * Entries and exits as programs have them: which exit belongs to which entry. Where what a thread
 * left by longjmp() is not cleared by the next entry, the exit of a call that was not seen to begin
 * is taken for its end: the same question sees it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/sample/sample.h"

#define A 1u
#define B 2u

static struct ring ring;

static int setup(void **state)
{
	(void)state;
	watch_common =
		(struct watch_common){ .ticks_per_4s = UINT64_C(1) << 32, .recent = UINT64_MAX };
	memset(watches, 0, 4 * sizeof(*watches));
	memset(&ring, 0, sizeof(ring));
	return 0;
}

static struct activation at(uint32_t id, uint64_t slot)
{
	return (struct activation){ id, slot, 0x1000 };
}

/* A call that is counted. */
static void enter(uint32_t id, uint64_t slot)
{
	struct activation activation = at(id, slot);

	frames_clear(&ring, &activation, watches[id].hooks);
	frames_enter(&ring, id, watches[id].state, &activation);
}

/* One that is not, but the probe is on. */
static void pass(uint32_t id, uint64_t slot)
{
	struct activation activation = at(id, slot);

	frames_clear(&ring, &activation, watches[id].hooks);
}

static bool leave(uint32_t id, uint64_t slot)
{
	struct activation activation = at(id, slot);
	struct frame frame;

	return frames_leave(&ring, &activation, watches[id].hooks, &frame) && frame.id == id;
}

static uint32_t pending(uint32_t id)
{
	return PENDING_CALLS(watches[id].pending);
}

/* A machine that was stopped goes on with clocks that have run meanwhile, those of threads, too. */
static void test_overlong(void **state)
{
	(void)state;
	watch_common.overlong = 1000;
	watches[A].wish = 100;
	assert_false(frames_is_overlong(&watches[A], 1000));
	assert_true(frames_is_overlong(&watches[A], 1001));
	/* What is rare is timed however long it takes. */
	watches[A].wish = UINT64_MAX;
	assert_false(frames_is_overlong(&watches[A], 1001));
}

static void test_nested(void **state)
{
	(void)state;
	enter(A, 900);
	enter(B, 800);
	enter(B, 700);
	assert_int_equal(pending(B), 2);
	assert_true(leave(B, 700));
	assert_true(leave(B, 800));
	assert_false(leave(B, 600));
	assert_true(leave(A, 900));
	assert_int_equal(watches[A].torn + watches[B].torn, 0);
	assert_int_equal(pending(A) + pending(B), 0);
}

/* An exit of the outer one says that the inner ones are over; also if that was not timed. */
static void test_exception(void **state)
{
	(void)state;
	enter(A, 900);
	enter(B, 800);
	enter(B, 700);
	assert_true(leave(A, 900));
	assert_int_equal(watches[B].torn, 2);
	enter(B, 700);
	assert_false(leave(A, 800));
	assert_int_equal(watches[B].torn, 3);
	assert_int_equal(pending(B), 0);
}

static void test_tail_call(void **state)
{
	(void)state;
	enter(A, 900);
	enter(B, 900);
	assert_int_equal(watches[A].torn, 1);
	assert_true(leave(B, 900));
	enter(A, 900);
	/* B was not timed. */
	assert_false(leave(B, 900));
	assert_int_equal(watches[A].torn, 2);
}

/* longjmp() out of A, and its next call is one that is not timed: the exit is that one's. */
static void test_left_and_called_again(void **state)
{
	(void)state;
	enter(A, 900);
	pass(A, 900);
	assert_false(leave(A, 900));
	assert_int_equal(watches[A].torn, 1);
}

static void test_an_entry_that_is_passed_over_is_seen(void **state)
{
	(void)state;
	enter(A, 900);
	assert_true(leave(A, 900));
	assert_int_equal(watches[A].torn, 0);
}

/* So before the entry is turned off, what is timed is cut. */
static void test_cut(void **state)
{
	(void)state;
	enter(A, 900);
	enter(A, 800);
	frames_cut(&watches[A]);
	assert_int_equal(pending(A), 0);
	assert_false(leave(A, 800));
	enter(A, 700);
	assert_true(leave(A, 700));
	assert_false(leave(A, 900));
	assert_int_equal(watches[A].cut, 2);
	assert_int_equal(watches[A].torn, 0);
	frames_cut(&watches[A]);
	assert_int_equal(watches[A].cut, 2);
}

/* The window has ended since the call saw that it was open. */
static void test_window_over(void **state)
{
	struct activation activation = at(A, 900);

	(void)state;
	watches[A].state = WATCH_OVER;
	frames_enter(&ring, A, 0, &activation);
	assert_int_equal(ring.depth, 0);
	assert_int_equal(pending(A), 0);
}

/* A function that is inlined has the return address of the one that it is in. */
static void test_hooks(void **state)
{
	(void)state;
	watches[A].hooks = watches[B].hooks = watches[3].hooks = true;
	enter(A, 900);
	enter(B, 900);
	assert_false(leave(3, 900));
	assert_true(leave(B, 900));
	assert_true(leave(A, 900));
	enter(A, 900);
	enter(B, 900);
	assert_true(leave(A, 900));
	assert_int_equal(watches[B].torn, 1);
}

static void test_return_address_is_found(void **state)
{
	uint64_t stack[8] = { 1, 2, 3, 0x1234, 5, 0x1234 };
	struct fi_regs regs = { .rdi = 77, .rsi = 0x1234, .rsp = (uint64_t)stack };
	struct activation activation;

	(void)state;
	watches[A].hooks = true;
	assert_true(frames_find_activation(&activation, A, &regs));
	assert_int_equal(activation.slot, (uint64_t)&stack[3]);
	assert_int_equal(activation.function, 77);
	assert_int_equal(activation.from, 0x1234);
	watches[A].hooks = false;
	regs.rsp = (uint64_t)&stack[3];
	assert_true(frames_find_activation(&activation, A, &regs));
	assert_int_equal(activation.slot, (uint64_t)&stack[3]);
	assert_int_equal(activation.function, A);
	assert_int_equal(activation.from, 0x1234);
}

static void test_room(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < FRAMES + 10; i++)
		enter(A, 100000 - i);
	assert_int_equal(ring.depth, FRAMES);
	assert_int_equal(pending(A), FRAMES);
	frames_drop(&ring);
	assert_int_equal(pending(A), 0);
	assert_int_equal(watches[A].torn, FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_overlong, setup),
		cmocka_unit_test_setup(test_nested, setup),
		cmocka_unit_test_setup(test_exception, setup),
		cmocka_unit_test_setup(test_tail_call, setup),
		cmocka_unit_test_setup(test_left_and_called_again, setup),
		cmocka_unit_test_setup(test_an_entry_that_is_passed_over_is_seen, setup),
		cmocka_unit_test_setup(test_cut, setup),
		cmocka_unit_test_setup(test_window_over, setup),
		cmocka_unit_test_setup(test_hooks, setup),
		cmocka_unit_test_setup(test_return_address_is_found, setup),
		cmocka_unit_test_setup(test_room, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
