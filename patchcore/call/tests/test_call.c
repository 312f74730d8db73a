/* SPDX-License-Identifier: MIT */
/*
 * Calls of every form at every split: what is recognised, what is done to them,
 * and what is refused.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static void start(void)
{
	start_by_membarrier();
	call_pages();
}

/* --- Every form at every split -------------------------------------------------- */

static void must_keep_neighbours(const uint8_t *at, unsigned len)
{
	for (int i = 1; i <= MARGIN; i++)
		MUST(at[-i] == CODE_NOP && at[len + i] == CODE_NOP);
	MUST(at[len] == 0xc3);
}

static enum pc_call_way way_of(const struct place *place)
{
	static const unsigned most[CALL_FORMS] = {
		[CALL_NEAR] = 1, [CALL_ADDR32] = 2, [CALL_SLOT] = 2
	};

	if (place->form == CALL_TAIL || place->form == CALL_TAIL_SLOT)
		return PC_CALL_TAIL;
	return place->split <= most[place->form] ? PC_CALL_DISPLACEMENT : PC_CALL_FRONT;
}

/* As call.h has it in its table. */
static void must_look_off(const struct place *place, const uint8_t *before)
{
	const uint8_t *at = place_at(place);
	unsigned len = call_shapes[place->form].len;

	switch (way_of(place)) {
	case PC_CALL_DISPLACEMENT:
		MUST(memcmp(at, before, len - 4) == 0);
		return;
	case PC_CALL_FRONT:
		MUST(at[0] == 0xeb && at[1] == len - 2 && memcmp(at + 2, before + 2, len - 2) == 0);
		return;
	case PC_CALL_TAIL:
		MUST(at[0] == 0xc3 && memcmp(at + 1, before + 1, len - 1) == 0);
		return;
	}
}

static void must_know(const struct pc_call *call, const struct place *place)
{
	struct pc_call_info info;

	MUST(pc_call_get(call, &info) == 0);
	MUST(info.len == call_shapes[place->form].len && info.split == place->split);
	MUST(info.way == way_of(place) && info.active && info.target == one);
}

static void toggle(const void *arg)
{
	const struct place *place = arg;
	unsigned len = call_shapes[place->form].len;
	uint8_t before[CALL_MAX], *at;
	struct pc_call call;

	start();
	at = put_call(place_at(place), place->form);
	memcpy(before, at, len);
	MUST(pc_call_init(&call, at) == 0);
	MUST(memcmp(at, before, len) == 0);
	must_know(&call, place);
	for (int i = 0; i < 3; i++) {
		call_must_turn_off(&call);
		must_look_off(place, before);
		call_must_turn_off(&call);
		call_must_turn(&call, NULL, one, ONE);
		MUST(memcmp(at, before, len) == 0);
		/*
		 * The target that the call has already is no target of its own, unless it is in a
		 * slot.
		 */
		if (!call_shapes[place->form].slot)
			call_must_turn(&call, one, one, ONE);
	}
	must_keep_neighbours(at, len);
	MUST(code_prot(at) == RWX);
}

static void retarget(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	for (int i = 0; i < 3; i++) {
		call_must_turn(&call, two, two, TWO);
		call_must_turn(&call, far_away, far_away, FAR);
		call_must_turn_off(&call);
		call_must_turn(&call, two, two, TWO);
		call_must_turn_off(&call);
		call_must_turn(&call, NULL, one, ONE);
		call_must_turn(&call, far_away, far_away, FAR);
		call_must_turn(&call, one, one, ONE);
	}
	must_keep_neighbours(at, call_shapes[place->form].len);
}

/* The first target of its own while it is off. */
static void retarget_off(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	call_must_turn_off(&call);
	call_must_turn(&call, far_away, far_away, FAR);
	call_must_turn_off(&call);
	call_must_turn(&call, NULL, one, ONE);
}

/* The program owns the slot and may change it. */
static void slot_changes(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	call_must_turn_off(&call);
	*slot = two;
	call_must_turn(&call, NULL, two, TWO);
	call_must_turn(&call, far_away, far_away, FAR);
	*slot = one;
	call_must_turn(&call, NULL, one, ONE);
}

/* With a page for the span, and its protection given back. */
static void turned_on_closed_pages(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RX) == 0);
	MUST(pc_call_init(&call, at) == 0);
	call_must_turn_off(&call);
	call_must_turn(&call, two, two, TWO);
	call_must_turn_off(&call);
	call_must_turn(&call, NULL, one, ONE);
	MUST(code_prot(code) == RX && code_prot(code + CODE_PAGE) == RX);
}

/* --- What stands for a call that is off --------------------------------------------- */

static const struct {
	uint8_t code[CALL_MAX];
	unsigned len;
} offs[] = {
	{ { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5 },
	{ { 0x0f, 0x1f, 0x44, 0x00, 0x08 }, 5 },
	{ { 0xeb, 0x03, 0x11, 0x22, 0x33 }, 5 },
	{ { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 6 },
	{ { 0xeb, 0x04, 0x11, 0x22, 0x33, 0x44 }, 6 },
};

static void must_adopt(const uint8_t *off, unsigned len, unsigned split)
{
	uint8_t *at = code + CODE_PAGE - split;
	struct pc_call call;

	memset(at - MARGIN, CODE_NOP, 3 * MARGIN);
	memcpy(at, off, len);
	at[len] = 0xc3;
	MUST(pc_call_init(&call, at) == 0);
	call_must_be(&call, 0, NULL);
	MUST(call_run(at) == OFF);
	MUST(pc_activate_call(&call, NULL) == -EINVAL);
	call_must_be(&call, 0, NULL);
	call_must_turn(&call, two, two, TWO);
	call_must_turn_off(&call);
	call_must_turn(&call, far_away, far_away, FAR);
	call_must_turn_off(&call);
	call_must_turn(&call, NULL, two, TWO);
	must_keep_neighbours(at, len);
	MUST(pc_call_fini(&call) == 0);
}

static void adopt(const void *arg)
{
	(void)arg;
	start();
	for (size_t i = 0; i < LENGTH(offs); i++)
		for (unsigned split = 0; split < offs[i].len; split++)
			must_adopt(offs[i].code, offs[i].len, split);
}

/* What one pc_call has turned off, another may turn on. */
static void adopt_ours(const void *arg)
{
	const struct place *place = arg;
	struct pc_call first, second;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&first, at) == 0);
	call_must_turn_off(&first);
	MUST(pc_call_init(&second, at) == -EBUSY);
	MUST(pc_call_fini(&first) == 0);
	if (way_of(place) == PC_CALL_TAIL) {
		MUST(pc_call_init(&second, at) == -ENOENT);
		return;
	}
	MUST(pc_call_init(&second, at) == 0);
	call_must_be(&second, 0, NULL);
	MUST(pc_activate_call(&second, NULL) == -EINVAL);
	call_must_turn(&second, two, two, TWO);
	call_must_turn_off(&second);
	call_must_turn(&second, NULL, two, TWO);
}

/* The last five bytes of a mapping. */
static void at_the_end(const void *arg)
{
	uint8_t *end;
	struct pc_call call;

	(void)arg;
	start();
	end = code + CODE_PAGES * CODE_PAGE;
	MUST(munmap(end, CODE_PAGE) == 0);
	call_encode(end - 5, CALL_TAIL, to_target(end - 5, CALL_TAIL, one));
	MUST(pc_call_init(&call, end - 5) == 0);
	call_must_turn_off(&call);
	call_must_turn(&call, two, two, TWO);
	MUST(pc_call_fini(&call) == 0);
	memcpy(end - 5, call_shapes[CALL_ADDR32].code, 2);
	MUST(pc_call_init(&call, end - 5) == -ENOENT);
	MUST(pc_call_init(&call, end - 4) == -EFAULT);
}

/* --- What is refused ----------------------------------------------------------------- */

static void must_not_take(const uint8_t *bytes, size_t len)
{
	uint8_t *at = code + 512, before[MARGIN];
	struct pc_call call;

	memset(at, CODE_NOP, MARGIN);
	memcpy(at, bytes, len);
	memcpy(before, at, MARGIN);
	MUST(pc_call_init(&call, at) == -ENOENT);
	MUST(memcmp(at, before, MARGIN) == 0);
}

static void no_call(const void *arg)
{
	static const uint8_t nothing[][CALL_MAX] = {
		{ 0x90, 0x90, 0x90, 0x90, 0x90 },
		{ 0xc3 },
		{ 0xcc, 1, 2, 3, 4 },
		{ 0xff, 0x14, 1, 2, 3, 4 },
		{ 0x67, 0xe9, 1, 2, 3, 4 },
		{ 0x0f, 0x1f, 0x40, 0x00 },
		{ 0x0f, 0x1f, 0x44, 0x01, 0x00 },
		{ 0xeb, 0x05 },
		{ 0xf3, 0x0f, 0x1e, 0xfa },
		{ 0x41, 0xff, 0xd3 },
	};

	(void)arg;
	start();
	for (size_t i = 0; i < LENGTH(nothing); i++)
		must_not_take(nothing[i], CALL_MAX);
}

static void arguments(const void *arg)
{
	struct pc_call call;
	struct pc_call_info info;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_NEAR);
	MUST(pc_call_init(NULL, at) == -EINVAL);
	MUST(pc_call_init(&call, NULL) == -EINVAL);
	MUST(pc_activate_call(NULL, at) == -EINVAL);
	MUST(pc_deactivate_call(NULL) == -EINVAL);
	MUST(pc_call_get(NULL, &info) == -EINVAL);
	MUST(pc_call_init(&call, at) == 0);
	MUST(pc_call_get(&call, NULL) == -EINVAL);
	MUST(munmap(code + CODE_PAGE, CODE_PAGE) == 0);
	MUST(pc_call_init(&call, code + CODE_PAGE) == -EFAULT);
}

/* An INT3, a debugger's or a word patch's, is never overwritten. */
static void held(const void *arg)
{
	const struct place *place = arg;
	unsigned len = call_shapes[place->form].len;
	uint8_t before[CALL_MAX], *at;
	struct pc_call_info info;
	struct pc_call call;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	call_must_turn(&call, two, two, TWO);
	for (int i = 0; i < 2; i++) {
		uint8_t first = *at;

		*at = CODE_INT3;
		memcpy(before, at, len);
		MUST(pc_activate_call(&call, NULL) == -EAGAIN);
		MUST(pc_activate_call(&call, far_away) == -EAGAIN);
		MUST(pc_deactivate_call(&call) == -EAGAIN);
		MUST(pc_call_get(&call, &info) == -EAGAIN);
		MUST(memcmp(at, before, len) == 0);
		*at = first;
		MUST(call_run(at) == (i ? OFF : TWO));
		call_must_turn_off(&call);
	}
	call_must_turn(&call, two, two, TWO);
}

/* The move has failed, and may be tried again. */
static void held_at_first(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	uint8_t *at, first;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	first = *at;
	*at = CODE_INT3;
	MUST(pc_activate_call(&call, two) == -EAGAIN);
	*at = first;
	call_must_be(&call, 1, one);
	call_must_turn(&call, two, two, TWO);
}

static void replaced(const void *arg)
{
	const struct place *place = arg;
	struct pc_call_info info;
	struct pc_call call;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	memset(at, CODE_NOP, CALL_MAX);
	MUST(pc_activate_call(&call, NULL) == -ENOENT);
	MUST(pc_activate_call(&call, two) == -ENOENT);
	MUST(pc_deactivate_call(&call) == -ENOENT);
	MUST(pc_call_get(&call, &info) == -ENOENT);
	for (unsigned i = 0; i < CALL_MAX; i++)
		MUST(at[i] == CODE_NOP);
}

static void shut_down(const void *arg)
{
	struct pc_call call, other;
	struct pc_call_info info;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_NEAR);
	MUST(pc_call_init(&call, at) == 0);
	MUST(pc_fini() == 0);
	MUST(pc_activate_call(&call, NULL) == -ESHUTDOWN);
	MUST(pc_deactivate_call(&call) == -ESHUTDOWN);
	MUST(pc_call_get(&call, &info) == -ESHUTDOWN && pc_call_fini(&call) == -ESHUTDOWN);
	MUST(pc_fini() == 0);
	MUST(pc_call_init(&other, at) == -ESHUTDOWN);
	MUST(pc_init() == 0);
	call_must_turn_off(&call);
}

/* What membarrier fails with comes back, and the call is as it was. */
static void forbidden(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_ERRNO | EPERM);
	MUST(pc_activate_call(&call, two) == -EPERM);
	call_must_be(&call, 1, one);
	call_must_turn_off(&call);
	call_must_turn(&call, NULL, one, ONE);
}

static void *note_id(void *id)
{
	*(uint64_t *)id = thread_id();
	return NULL;
}

/* A thread that ended in the middle of a move does not hold the call. */
static void left_by_a_thread(const void *arg)
{
	pthread_t thread;
	struct pc_call call;
	uint64_t other;

	(void)arg;
	start();
	MUST(pc_call_init(&call, put_call(code + CODE_PAGE - 2, CALL_NEAR)) == 0);
	call.moving = thread_id();
	MUST(pc_activate_call(&call, two) == -EAGAIN);
	call_must_be(&call, 1, one);
	MUST(pthread_create(&thread, NULL, note_id, &other) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	call.moving = other;
	call_must_turn(&call, two, two, TWO);
}

static _Thread_local bool shall_end;

static void on_membarrier(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (shall_end)
		syscall(SYS_exit, 0);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

static void *end_in_the_middle(void *call)
{
	shall_end = true;
	pc_activate_call(call, two);
	return NULL;
}

/* With its INT3 in the code: other threads finish the change, and get the call. */
static void ended(const void *arg)
{
	struct sigaction action = { .sa_sigaction = on_membarrier, .sa_flags = SA_SIGINFO };
	struct pc_call call;
	pthread_t thread;
	int ret = -EAGAIN;

	(void)arg;
	if (CHILD_TSAN || CHILD_ASAN)
		child_skip("a sanitizer wants to see its threads end");
	start();
	MUST(pc_call_init(&call, put_call(code + CODE_PAGE - 2, CALL_TAIL)) == 0);
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_TRAP);
	MUST(pthread_create(&thread, NULL, end_in_the_middle, &call) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(*call.addr == CODE_INT3);
	for (int i = 0; i < 100 && ret == -EAGAIN; i++)
		ret = pc_activate_call(&call, far_away);
	MUST(ret == 0 && call_run(call.addr) == FAR);
	call_must_turn_off(&call);
	call_must_turn(&call, two, two, TWO);
}

static atomic_bool taken;

static void *take_moving(void *call)
{
	((struct pc_call *)call)->moving = thread_id();
	atomic_store(&taken, true);
	pause();
	return NULL;
}

/*
 * A thread that a fork leaves behind holds no call in the child, and still holds it in the
 * parent. A child of vfork(), which has another pid, does not take it away.
 */
static void left_by_a_fork(const void *arg)
{
	pthread_t thread;
	struct pc_call call;
	pid_t pid;
	int status;

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer does not follow a fork among threads");
	start();
	MUST(pc_call_init(&call, put_call(code + CODE_PAGE - 2, CALL_NEAR)) == 0);
	MUST(pthread_create(&thread, NULL, take_moving, &call) == 0);
	while (!atomic_load(&taken))
		sched_yield();
	pid = fork();
	if (pid == 0) {
		call_must_turn(&call, two, two, TWO);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	pid = vfork();
	if (pid == 0)
		_exit(pc_activate_call(&call, two) == -EAGAIN ? 0 : 1);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(pc_activate_call(&call, two) == -EAGAIN);
	call_must_be(&call, 1, one);
}

static const struct CMUnitTest tests[] = {
	AT_ALL_PLACES(toggle),	      AT_ALL_PLACES(retarget),
	AT_ALL_PLACES(retarget_off),  AT_ALL_PLACES(turned_on_closed_pages),
	AT_ALL_PLACES(adopt_ours),    AT_ALL_PLACES(held),
	AT_ALL_PLACES(held_at_first), AT_ALL_PLACES(replaced),
	AT_PLACE(slot_changes, 11),   AT_PLACE(slot_changes, 14),
	AT_PLACE(slot_changes, 22),   AT_PLACE(slot_changes, 25),
	child_unit_test(adopt),	      child_unit_test(at_the_end),
	child_unit_test(no_call),     child_unit_test(arguments),
	AT_PLACE(forbidden, 2),	      AT_PLACE(forbidden, 18),
	child_unit_test(shut_down),   child_unit_test(left_by_a_thread),
	child_unit_test(ended),	      child_unit_test(left_by_a_fork),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
