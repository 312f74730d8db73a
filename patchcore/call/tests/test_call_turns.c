/* SPDX-License-Identifier: MIT */
/*
 * Calls turned on and off one instruction at a time, with others at it in
 * between: a signal handler, or a thread that comes at any moment.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/call/stub.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/step.h"

/* --- Getting ready --------------------------------------------------------------- */

static const struct place *place;
static struct pc_call call;

static void renew(void)
{
	MUST(!call.addr || pc_call_fini(&call) == 0);
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
}

static void start(const void *arg)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	step_install();
	MUST(pc_init() == 0);
	call_pages();
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
	place = arg;
	renew();
}

/* From here on all of its stubs are there, and no target needs another one. */
static void give_stubs(void)
{
	MUST(pc_activate_call(&call, two) == 0 && pc_activate_call(&call, far_away) == 0);
	MUST(pc_activate_call(&call, two) == 0);
}

static void start_membarrier(const void *arg)
{
	conf_use_none();
	start(arg);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
}

/* --- What is run in steps ---------------------------------------------------------- */

static void *target;
static int result;

static void activate(void)
{
	result = pc_activate_call(&call, target);
}

static void deactivate(void)
{
	result = pc_deactivate_call(&call);
}

static uint32_t run_now(void)
{
	return call_run(call.addr);
}

/* --- INT3, and whole ---------------------------------------------------------------- */

static uint8_t allowed[3][CALL_MAX];
static unsigned allowed_count;
static unsigned long int3_seen; /* steps */

static void allow_now(void)
{
	memcpy(allowed[allowed_count++], call.addr, CALL_MAX);
}

/* After each instruction the code is one of those that were allowed. */
static bool look_whole(void)
{
	bool is = false;

	if (*(volatile uint8_t *)call.addr == CODE_INT3)
		int3_seen++;
	for (unsigned i = 0; i < allowed_count; i++)
		is |= memcmp(call.addr, allowed[i], CALL_MAX) == 0;
	MUST(is);
	return true;
}

static void must_stay_whole(void *to)
{
	uint32_t number = to == two ? TWO : to == far_away ? FAR : ONE;

	target = to;
	for (int i = 0; i < 2; i++) {
		step_run(activate, look_whole);
		MUST(result == 0 && run_now() == number);
		step_run(deactivate, look_whole);
		MUST(result == 0 && run_now() == OFF);
	}
}

static void whole(const void *arg)
{
	start_membarrier(arg);
	allow_now();
	MUST(pc_deactivate_call(&call) == 0);
	allow_now();
	must_stay_whole(NULL);
	MUST(pc_activate_call(&call, two) == 0 && pc_deactivate_call(&call) == 0);
	/* Now with a target of its own. */
	allowed_count = 0;
	allow_now();
	MUST(pc_activate_call(&call, two) == 0);
	allow_now();
	must_stay_whole(two);
	/* And with another one. */
	MUST(pc_activate_call(&call, far_away) == 0);
	allowed_count = 0;
	allow_now();
	MUST(pc_deactivate_call(&call) == 0);
	allow_now();
	must_stay_whole(far_away);
}

static bool look_for_int3(void)
{
	if (*(volatile uint8_t *)call.addr == CODE_INT3)
		int3_seen++;
	return true;
}

/* What was a NOP is patched once, at the beginning; from the first activation on, never again. */
static void adopted(const void *arg)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	start_membarrier(arg);
	MUST(pc_call_fini(&call) == 0);
	memcpy(place_at(place), nop, sizeof(nop));
	MUST(pc_call_init(&call, place_at(place)) == 0);
	target = two;
	step_run(activate, look_for_int3);
	MUST(result == 0 && run_now() == TWO);
	step_run(deactivate, look_for_int3);
	MUST(result == 0 && run_now() == OFF && int3_seen == 0);
}

/* --- A window that is larger ----------------------------------------------------------- */

static void int3_when_moving(unsigned window, bool expected)
{
	static const struct place inside = { CALL_NEAR, 3 };
	struct machine_conf conf = conf_here();
	struct pc_call_info info;

	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf.window = window;
	conf.level[0].waits.stretch = 0;
	conf_use(&conf);
	start(&inside);
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	/* Across a word, and not across 32 bytes, which are one store everywhere. */
	for (int i = 0; i < 2; i++) {
		MUST(pc_call_fini(&call) == 0);
		MUST(pc_call_init(&call, put_call(code + CODE_PAGE / 2 + 16 - 3, CALL_NEAR)) == 0);
		/* Another call first, so that no pages are mapped while stepping. */
		if (i == 0)
			MUST(pc_activate_call(&call, two) == 0);
	}
	target = two;
	step_run(activate, look_for_int3);
	MUST(result == 0 && run_now() == TWO);
	MUST((int3_seen > 0) == expected);
	MUST(pc_call_get(&call, &info) == 0 && info.split == 3 && info.way == PC_CALL_FRONT);
}

static void small_window(const void *arg)
{
	(void)arg;
	int3_when_moving(8, true);
}

static void large_window(const void *arg)
{
	(void)arg;
	int3_when_moving(32, false);
}

/* Only a move uses a word patch, and only where the window in use makes it one. */
static void test_windows(void **state)
{
	(void)state;
	child_must_pass(small_window, NULL);
	child_must_pass(large_window, NULL);
}

/* --- A signal handler that does the same ------------------------------------------------ */

/*
 * Instructions from one look to the next. Each place begins at another one, and there are three
 * places of every way, so that each instruction has its turn; in short runs one of 27.
 * With the sanitizer there are many more instructions.
 */
#define STRIDE (CHILD_ASAN ? 601 : test_scale() < 1 ? 81 : 3)

static unsigned long at_step; /* do something else after this one */
static bool done;

static unsigned long first_step(void)
{
	return 1 + (unsigned long)(place - places) % (unsigned long)STRIDE;
}

static bool toggle_here(void)
{
	if (step_now.count != at_step)
		return true;
	done = true;
	MUST(pc_deactivate_call(&call) == 0 && run_now() == OFF);
	MUST(pc_activate_call(&call, two) == 0 && run_now() == TWO);
	MUST(pc_activate_call(&call, NULL) == 0 && run_now() == ONE);
	MUST(pc_deactivate_call(&call) == 0 && run_now() == OFF);
	MUST(pc_activate_call(&call, far_away) == 0 && run_now() == FAR);
	return false;
}

/* After each instruction in turn. The interrupted change comes last, or it was already made. */
static void must_allow_handler(void (*run)(void), void *to, bool off_before)
{
	for (at_step = first_step(), done = true; done; at_step += STRIDE) {
		if (off_before)
			MUST(pc_deactivate_call(&call) == 0);
		else
			MUST(pc_activate_call(&call, NULL) == 0);
		target = to;
		done = false;
		step_run(run, toggle_here);
		MUST(result == 0);
		if (run == deactivate)
			MUST(run_now() == OFF || (done && run_now() == FAR));
		else
			MUST(run_now() == TWO || (done && run_now() == FAR));
	}
	MUST(at_step > 30);
}

static void handler(const void *arg)
{
	start_membarrier(arg);
	give_stubs();
	must_allow_handler(activate, two, true);
	must_allow_handler(activate, two, false);
	must_allow_handler(deactivate, NULL, false);
}

/* --- A thread that was held up while the call moved ----------------------------------------- */

static bool off_after; /* leave it off */
static uint8_t *moved_to;

static bool move_here(void)
{
	if (step_now.count != at_step)
		return true;
	done = true;
	MUST(pc_activate_call(&call, moved_to) == 0);
	if (off_after)
		MUST(pc_deactivate_call(&call) == 0);
	return false;
}

/*
 * A call after the move back runs one of the three. A front that was read before the move and
 * stored after it would be a jump into nowhere.
 */
static void must_survive_move(void (*run)(void), bool is_second, bool off_before, bool off_then)
{
	uint32_t number = is_second ? TWO : ONE, moved = is_second ? FAR : TWO;

	off_after = off_then;
	moved_to = is_second ? far_away : two;
	for (at_step = first_step(), done = true; done; at_step += STRIDE) {
		renew();
		if (is_second)
			MUST(pc_activate_call(&call, two) == 0);
		if (off_before)
			MUST(pc_deactivate_call(&call) == 0);
		target = is_second ? two : NULL;
		done = false;
		step_run(run, move_here);
		MUST(result == 0 || result == -EAGAIN);
		if (run == deactivate)
			MUST(run_now() == OFF || (done && !off_then && run_now() == moved));
		else
			MUST(run_now() == number || (done && run_now() == moved) ||
			     (done && off_then && run_now() == OFF));
		MUST(pc_activate_call(&call, target) == 0 && run_now() == number);
		MUST(pc_deactivate_call(&call) == 0 && run_now() == OFF);
	}
	MUST(at_step > 30);
}

static void moved_meanwhile(const void *arg)
{
	start_membarrier(arg);
	for (int i = 0; i < 4; i++) {
		must_survive_move(activate, i & 1, true, i & 2);
		must_survive_move(deactivate, i & 1, false, i & 2);
	}
}

/* --- The target comes first ----------------------------------------------------------------- */

static uint32_t before, after;
static bool turned;

static bool look_at_target(void)
{
	uint32_t number = run_now();

	MUST(number == before || number == after);
	MUST(!turned || number == after);
	turned |= number == after;
	return true;
}

static void must_go_over(void (*run)(void), void *to, uint32_t number)
{
	before = run_now();
	after = number;
	turned = before == after;
	target = to;
	step_run(run, look_at_target);
	MUST(result == 0 && run_now() == number);
}

/* The old target, the new one, and no other in between. */
static void no_other_target(const void *arg)
{
	start_membarrier(arg);
	/* Its way through a stub may take INT3, which is not to be run here. */
	give_stubs();
	must_go_over(deactivate, NULL, OFF);
	must_go_over(activate, far_away, FAR);
	must_go_over(activate, NULL, ONE);
	must_go_over(deactivate, NULL, OFF);
	must_go_over(activate, two, TWO);
	must_go_over(activate, far_away, FAR);
	must_go_over(deactivate, NULL, OFF);
	must_go_over(activate, NULL, ONE);
}

/* --- INT3 of another program ------------------------------------------------------------------ */

static uint8_t under_int3;

static bool put_int3(void)
{
	if (step_now.count != at_step)
		return true;
	done = true;
	under_int3 = *call.addr;
	*call.addr = CODE_INT3;
	return false;
}

/* It comes after one instruction after the other, and stays. */
static void must_leave_int3(void (*run)(void), void *to)
{
	for (at_step = first_step(), done = true; done; at_step += STRIDE) {
		uint32_t number = run_now();

		target = to;
		done = false;
		step_run(run, put_int3);
		if (!done)
			break;
		MUST(*call.addr == CODE_INT3);
		*call.addr = under_int3;
		MUST(result == 0 || result == -EAGAIN);
		MUST(result == 0 || run_now() == number);
		MUST(pc_activate_call(&call, two) == 0);
		if (run == activate)
			MUST(pc_deactivate_call(&call) == 0);
	}
	MUST(at_step > 30);
}

static void int3_stays(const void *arg)
{
	start_membarrier(arg);
	give_stubs();
	must_leave_int3(deactivate, NULL);
	MUST(pc_deactivate_call(&call) == 0);
	must_leave_int3(activate, far_away);
	must_leave_int3(activate, NULL);
}

/* An activation that fails gives the target back that it has stored. */
static void failed_quietly(const void *arg)
{
	struct stub *own;

	start_membarrier(arg);
	give_stubs();
	MUST(pc_deactivate_call(&call) == 0);
	own = call.own;
	MUST(own && atomic_load(&own->target) == two);
	for (at_step = 1, done = true; done; at_step++) {
		target = far_away;
		done = false;
		step_run(activate, put_int3);
		if (done)
			*call.addr = under_int3;
		MUST(result == 0 || atomic_load(&own->target) == two);
		MUST(pc_activate_call(&call, two) == 0 && pc_deactivate_call(&call) == 0);
	}
	MUST(at_step > 30);
}

/* --- Wait-free ------------------------------------------------------------------------------- */

#define STEPS_ENOUGH 2000

static uint8_t on_off[2][CALL_MAX];

/* Another caller has turned it on or off after every single instruction. */
static bool change_always(void)
{
	MUST(step_now.count < STEPS_ENOUGH);
	memcpy(call.addr, on_off[step_now.count % 2], call_shapes[place->form].len);
	return true;
}

static void must_end(void (*run)(void))
{
	for (int i = 0; i < 2; i++) {
		uint8_t swap[CALL_MAX];

		step_run(run, change_always);
		MUST(result == 0);
		memcpy(swap, on_off[0], CALL_MAX);
		memcpy(on_off[0], on_off[1], CALL_MAX);
		memcpy(on_off[1], swap, CALL_MAX);
	}
}

static void wait_free(const void *arg)
{
	start_membarrier(arg);
	memcpy(on_off[0], call.addr, CALL_MAX);
	MUST(pc_deactivate_call(&call) == 0);
	memcpy(on_off[1], call.addr, CALL_MAX);
	target = NULL;
	must_end(activate);
	must_end(deactivate);
	give_stubs();
	memcpy(on_off[0], call.addr, CALL_MAX);
	MUST(pc_deactivate_call(&call) == 0);
	memcpy(on_off[1], call.addr, CALL_MAX);
	target = far_away;
	must_end(activate);
	must_end(deactivate);
}

#define AT_SOME_PLACES(name)                                                                       \
	AT_PLACE(name, 0), AT_PLACE(name, 13), AT_PLACE(name, 5), AT_PLACE(name, 3),               \
		AT_PLACE(name, 16), AT_PLACE(name, 2), AT_PLACE(name, 18), AT_PLACE(name, 25),     \
		AT_PLACE(name, 17)

static const struct CMUnitTest tests[] = {
	AT_ALL_PLACES(whole),
	AT_SOME_PLACES(handler),
	AT_SOME_PLACES(moved_meanwhile),
	AT_PLACE(int3_stays, 2),
	AT_PLACE(int3_stays, 3),
	AT_PLACE(int3_stays, 16),
	AT_PLACE(int3_stays, 17),
	AT_PLACE(int3_stays, 18),
	AT_PLACE(int3_stays, 25),
	AT_PLACE(adopted, 0),
	AT_PLACE(adopted, 1),
	AT_PLACE(adopted, 2),
	AT_PLACE(adopted, 4),
	AT_PLACE(failed_quietly, 2),
	AT_PLACE(failed_quietly, 17),
	AT_ALL_PLACES(no_other_target),
	AT_ALL_PLACES(wait_free),
	cmocka_unit_test(test_windows),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
