/* SPDX-License-Identifier: MIT */
/*
 * What pc_call_get() says while the call changes: after each instruction of the change, and
 * with changes before each load of the reader.
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

#include "patchcore/patchcore.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/step.h"

static const struct place *place;
static struct pc_call call;

/* What it leads to, and is to lead to. */
static uint8_t *from, *to;

/* One that has no stub yet, or leads through that of its first other target. */
static void renew(bool on, bool is_second)
{
	MUST(!call.addr || pc_forget(call.addr, 1) == 0);
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	from = is_second ? two : one;
	to = is_second ? far_away : two;
	MUST(!is_second || pc_activate_call(&call, two) == 0);
	MUST(on || pc_deactivate_call(&call) == 0);
}

static void start(const void *arg)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	conf_use_none();
	step_install();
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	call_pages();
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
	place = arg;
	/* Once before, so that no pages are mapped while stepping. */
	renew(true, true);
	MUST(pc_activate_call(&call, far_away) == 0);
}

/* --- The change in steps ---------------------------------------------------------------- */

/* What the code was, one after the other, from before the first store to after the last. */
#define STATES 8

static uint8_t state[STATES][CALL_MAX];
static unsigned states;

static void note_state(void)
{
	if (states > 0 && memcmp(state[states - 1], call.addr, CALL_MAX) == 0)
		return;
	MUST(states < STATES);
	memcpy(state[states++], call.addr, CALL_MAX);
}

static bool was_on;
static enum {
	BEFORE,
	MEANWHILE,
	AFTER
} phase;
static int result;

static void retarget(void)
{
	result = pc_activate_call(&call, to);
}

static bool look_at_call(void)
{
	struct pc_call_info info;
	int ret = pc_call_get(&call, &info);

	note_state();
	if (ret == -EAGAIN) {
		MUST(phase != AFTER && *call.addr == CODE_INT3);
		phase = MEANWHILE;
		return true;
	}
	MUST(ret == 0);
	if (info.active && info.target == to) {
		phase = AFTER;
		return true;
	}
	MUST(phase == BEFORE && info.active == was_on);
	MUST(info.target == (was_on ? from : NULL));
	return true;
}

/* It leads to the old target, then pc_call_get() cannot tell, then it leads to the new one. */
static void must_retarget(bool on, bool is_second)
{
	renew(on, is_second);
	was_on = on;
	phase = BEFORE;
	states = 0;
	step_run(retarget, look_at_call);
	MUST(result == 0 && phase == AFTER && states >= 2);
}

static void changed(const void *arg)
{
	start(arg);
	for (int i = 0; i < 4; i++)
		must_retarget(i & 1, i & 2);
}

/* --- The reader, load by load ------------------------------------------------------------- */

/*
 * Each load from the code faults. Before it is made, which takes one step, the code may
 * change: a reader takes no notice of what happens at other times.
 */
static unsigned loads;
static void (*before_load)(void);

static void protect_code(int prot)
{
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, prot) == 0);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;

	MUST(signal == SIGSEGV && at >= code && at < code + CODE_PAGES * CODE_PAGE);
	protect_code(RWX);
	loads++;
	before_load();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
}

static bool look_at_load(void)
{
	protect_code(PROT_NONE);
	return false;
}

static struct pc_call_info read_info;

static void get(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	step_now.look = look_at_load;
	loads = 0;
	protect_code(PROT_NONE);
	result = pc_call_get(&call, &read_info);
	protect_code(RWX);
	MUST(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
}

/* --- The same states again ---------------------------------------------------------------- */

static unsigned back_at, front_at; /* loads: before them the last state but one, and the last */
static uint32_t moved_before, moved_after;
static bool is_said; /* the mover has said so by then */

/* Bytes outside of the call are its neighbours'. */
static void put_state(unsigned i)
{
	memcpy(call.addr, state[i], call_shapes[place->form].len);
}

static void change_meanwhile(void)
{
	if (loads == back_at && states > 2)
		put_state(states - 2);
	if (loads == front_at) {
		put_state(states - 1);
		call.moved = is_said ? moved_after : moved_before;
	}
}

static void must_read_one_or_two(void)
{
	put_state(0);
	call.moved = moved_before;
	get();
	if (result == -EAGAIN)
		return;
	MUST(result == 0);
	if (!read_info.active)
		MUST(!was_on && read_info.target == NULL);
	else
		MUST(read_info.target == to || (was_on && read_info.target == from));
}

/*
 * As many loads as there are, with changes before each of them. A reader may have read the front
 * before the change, the bytes behind it in the middle, and the front again after it.
 */
static void must_read(bool on, bool is_second)
{
	unsigned most = 1;

	must_retarget(on, is_second);
	moved_after = call.moved;
	moved_before = moved_after ? moved_after - 1 : 0;
	before_load = change_meanwhile;
	for (back_at = 1; back_at <= most; back_at++)
		for (front_at = back_at; front_at <= most + 1; front_at++)
			for (int i = 0; i < 2; i++) {
				is_said = i;
				must_read_one_or_two();
				most = loads > most ? loads : most;
			}
	MUST(most >= (on ? 2 : 1));
	put_state(states - 1);
	call.moved = moved_after;
	MUST(pc_call_get(&call, &read_info) == 0 && read_info.active && read_info.target == to);
}

static void reader(const void *arg)
{
	start(arg);
	for (int i = 0; i < 4; i++)
		must_read(i & 1, i & 2);
}

/* --- A reader that was held up ------------------------------------------------------------ */

static unsigned at_load;

static void toggle_here(void)
{
	if (loads != at_load)
		return;
	MUST(pc_deactivate_call(&call) == 0);
	MUST(pc_activate_call(&call, two) == 0);
	MUST(pc_activate_call(&call, far_away) == 0);
}

/* Its first target of its own, and others, while a reader stands between two loads. */
static void held_up(const void *arg)
{
	bool is_last = false;

	start(arg);
	before_load = toggle_here;
	for (at_load = 1; !is_last; at_load++) {
		renew(true, false);
		get();
		is_last = loads < at_load;
		MUST(result == 0 && read_info.active);
		MUST(read_info.target == one || (!is_last && read_info.target == far_away));
	}
	MUST(at_load > 3);
}

/* --- Mixtures that happen to lead somewhere ------------------------------------------------- */

static uint8_t mixed[CALL_MAX], last[CALL_MAX];
static void *later_own;
static uint32_t later_moved;

static void put_code(const uint8_t *bytes)
{
	memcpy(call.addr, bytes, call_shapes[place->form].len);
}

/* The displacement is read amid a move, the front after it. */
static void mix_amid_look(void)
{
	if (loads == 2) {
		put_code(mixed);
		call.own = later_own;
		call.moved = later_moved;
	}
	if (loads == 3)
		put_code(last);
}

/* What is before the boundary is that of one, and the rest that of the next. */
static void *mix(const uint8_t *before, const uint8_t *after)
{
	unsigned opcode = call_shapes[place->form].opcode;
	int32_t displacement;

	memcpy(last, after, CALL_MAX);
	memcpy(mixed, after, CALL_MAX);
	memcpy(mixed, before, place->split);
	if (memcmp(mixed, after, CALL_MAX) == 0 || memcmp(mixed, before, CALL_MAX) == 0)
		child_skip("they have bytes in common");
	memcpy(&displacement, mixed + opcode, sizeof(displacement));
	return call.addr + call_shapes[place->form].len + displacement;
}

static void must_read_later(void *expected)
{
	before_load = mix_amid_look;
	get();
	MUST(result == 0 && read_info.active && read_info.target == expected);
}

/* To the stub of the next move, which is not yet made; to the original, which is long left. */
static void coincidence(const void *arg)
{
	uint8_t original[CALL_MAX], through[2][CALL_MAX];
	struct stub next = { .target = NULL };
	int32_t displacement;

	start(arg);
	renew(true, false);
	memcpy(original, call.addr, CALL_MAX);
	MUST(pc_activate_call(&call, two) == 0);
	memcpy(through[0], call.addr, CALL_MAX);
	next.target = far_away;
	next.code = mix(original, through[0]);
	put_code(original);
	call.moved = CALL_ORIGINAL;
	later_own = &next;
	later_moved = CALL_SHARED;
	must_read_later(two);
	/* No byte that differs from on to off, and each of the others. */
	memcpy(through[1], through[0], CALL_MAX);
	for (unsigned i = call.way == PC_CALL_TAIL ? 1 : 2; i < call_shapes[place->form].len; i++)
		through[1][i] ^= 0x55;
	call.original = mix(through[0], through[1]);
	memcpy(&displacement, through[1] + call_shapes[place->form].opcode, sizeof(displacement));
	next.code = call.addr + call_shapes[place->form].len + displacement;
	put_code(through[0]);
	must_read_later(far_away);
}

/* --- Something else --------------------------------------------------------------------------- */

/* pc_call_get() does not follow it: the call was never given such a target. */
static void not_followed(const void *arg)
{
	struct pc_call_info info;

	start(arg);
	renew(true, false);
	memset(call.addr + call_shapes[place->form].opcode, 0x7f, 4);
	MUST(pc_call_get(&call, &info) == -ENOENT);
}

static const struct CMUnitTest tests[] = {
	AT_ALL_PLACES(changed),	    AT_ALL_PLACES(reader),	AT_ALL_PLACES(held_up),
	AT_PLACE(coincidence, 3),   AT_PLACE(coincidence, 4),	AT_PLACE(coincidence, 19),
	AT_PLACE(coincidence, 20),  AT_PLACE(coincidence, 21),	AT_PLACE(not_followed, 2),
	AT_PLACE(not_followed, 11), AT_PLACE(not_followed, 16), AT_PLACE(not_followed, 18),
	AT_PLACE(not_followed, 27),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
