/* SPDX-License-Identifier: MIT */
/*
 * One pc_call at a place: which one has it, how it is given up, and what is left of it. A look at
 * a call changes nothing.
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

#include <cmocka.h>

#include "patchcore/call/call_place.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/text_library.h"
#include "patchcore/text/text.h"

static void start(void)
{
	conf_use_none();
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	call_pages();
}

static void must_be(const struct pc_call *call, int active, void *target)
{
	struct pc_call_info info;

	MUST(pc_call_get(call, &info) == 0);
	MUST(info.active == active && info.target == target);
}

static void must_turn(struct pc_call *call, void *target, uint32_t number)
{
	MUST(pc_activate_call(call, target) == 0 && call_run(call->addr) == number);
}

static void must_turn_off(struct pc_call *call)
{
	MUST(pc_deactivate_call(call) == 0 && call_run(call->addr) == OFF);
}

/* --- One at a place --------------------------------------------------------------------- */

static void one_each(const void *arg)
{
	struct pc_call call, other;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_NEAR);
	MUST(pc_call_init(&call, at) == 0);
	MUST(pc_call_init(&other, at) == -EBUSY && pc_call_init(&call, at) == -EBUSY);
	must_turn(&call, two, TWO);
	MUST(pc_call_init(&other, at) == -EBUSY);
	MUST(pc_call_fini(&call) == 0);
	MUST(pc_call_init(&other, at) == 0);
	MUST(pc_call_init(&call, at) == -EBUSY);
}

static void test_one_each(void **state)
{
	(void)state;
	child_must_pass(one_each, NULL);
}

/* 67 E8 has in it an E8, which would be a call as well. */
static void overlapping(const void *arg)
{
	struct pc_call outer, inner, behind;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_ADDR32);
	call_encode(at + 6, CALL_NEAR, to_target(at + 6, CALL_NEAR, one));
	MUST(pc_call_init(&outer, at) == 0);
	MUST(pc_call_init(&inner, at + 1) == -EBUSY);
	MUST(pc_call_init(&behind, at + 6) == 0);
	MUST(pc_call_fini(&outer) == 0);
	MUST(pc_call_init(&inner, at + 1) == 0);
	MUST(pc_call_init(&outer, at) == -EBUSY);
	MUST(pc_call_fini(&inner) == 0);
	MUST(pc_call_init(&outer, at) == 0);
}

static void test_overlapping(void **state)
{
	(void)state;
	child_must_pass(overlapping, NULL);
}

/* Code that is no call at first, and then is one. */
static void not_yet(const void *arg)
{
	struct pc_call call;
	uint8_t *at = NULL;

	(void)arg;
	start();
	at = code + 512;
	MUST(pc_call_init(&call, at) == -ENOENT);
	put_call(at, CALL_NEAR);
	MUST(pc_call_init(&call, at) == 0);
}

static void test_not_yet(void **state)
{
	(void)state;
	child_must_pass(not_yet, NULL);
}

static struct pc_call shared;
static atomic_bool stop;
static atomic_ulong toggles;

static void *toggle(void *unused)
{
	static uint8_t **const targets[] = { &one, &two, &far_away };

	for (unsigned long i = 0; !atomic_load(&stop); i++) {
		int ret = i % 4 ? pc_activate_call(&shared, *targets[i % 3])
				: pc_deactivate_call(&shared);

		MUST(ret == 0);
		atomic_fetch_add(&toggles, 1);
	}
	return unused;
}

/* Also while the code changes all the time. */
static void while_toggled(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	pthread_t thread;
	uint8_t *at;

	start();
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&shared, at) == 0);
	MUST(pthread_create(&thread, NULL, toggle, NULL) == 0);
	while (atomic_load(&toggles) < 20000)
		MUST(pc_call_init(&call, at) == -EBUSY);
	atomic_store(&stop, true);
	MUST(pthread_join(thread, NULL) == 0);
	must_turn(&shared, two, TWO);
}

static void test_while_toggled(void **state)
{
	child_must_pass(while_toggled, *state);
}

/* --- Given up --------------------------------------------------------------------------- */

static void refused(const void *arg)
{
	struct pc_call_info info;
	struct pc_call call;

	(void)arg;
	start();
	MUST(pc_call_init(&call, put_call(code + 512, CALL_NEAR)) == 0);
	MUST(pc_call_fini(NULL) == -EINVAL);
	MUST(pc_fini() == 0 && pc_call_fini(&call) == -ESHUTDOWN && pc_init() == 0);
	MUST(pc_call_fini(&call) == 0);
	MUST(pc_call_fini(&call) == -EINVAL);
	MUST(pc_activate_call(&call, two) == -EINVAL);
	MUST(pc_deactivate_call(&call) == -EINVAL);
	MUST(pc_call_get(&call, &info) == -EINVAL);
	MUST(call_run(code + 512) == ONE);
}

static void test_refused(void **state)
{
	(void)state;
	child_must_pass(refused, NULL);
}

/* The code is as it was, and the next pc_call goes on with it. */
static void goes_on(const void *arg)
{
	const struct place *place = arg;
	bool has_off = !call_shapes[place->form].tail;
	uint8_t *at, before[CALL_MAX];
	struct pc_call call;
	void *own;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	must_turn(&call, far_away, FAR);
	own = call.own;
	for (int i = 0; i < 3; i++) {
		memcpy(before, at, CALL_MAX);
		MUST(pc_call_fini(&call) == 0);
		MUST(memcmp(before, at, CALL_MAX) == 0 && call_run(at) == FAR);
		MUST(pc_call_init(&call, at) == 0);
		MUST(memcmp(before, at, CALL_MAX) == 0);
		must_be(&call, 1, far_away);
		must_turn_off(&call);
		/* Where it led when it was looked at. */
		must_turn(&call, NULL, FAR);
		must_turn(&call, one, ONE);
		must_turn(&call, far_away, FAR);
		MUST(call.own == own);
		if (!has_off)
			continue;
		must_turn_off(&call);
		MUST(pc_call_fini(&call) == 0 && pc_call_init(&call, at) == 0);
		must_be(&call, 0, NULL);
		MUST(pc_activate_call(&call, NULL) == -EINVAL);
		must_turn(&call, far_away, FAR);
		MUST(call.own == own);
	}
}

static void test_goes_on(void **state)
{
	child_must_pass(goes_on, *state);
}

/* A stub that the code never led to is had by the next. */
static void unused_stub(const void *arg)
{
	struct pc_call call;
	struct stub *stub;
	uint8_t *end;
	void *own;

	(void)arg;
	start();
	MUST(pc_call_init(&call, put_call(code + CODE_PAGE - 2, CALL_TAIL)) == 0);
	end = call.addr + 5;
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_ERRNO | EPERM);
	MUST(pc_activate_call(&call, two) < 0 && call_run(call.addr) == ONE);
	own = call.own;
	MUST(own);
	MUST(stub_get(&stub, (uintptr_t)end, STUB_ANY) == 0 && stub != own);
	MUST(pc_call_fini(&call) == 0);
	MUST(stub_get(&stub, (uintptr_t)end, STUB_ANY) == 0 && stub == own);
}

static void test_unused_stub(void **state)
{
	(void)state;
	child_must_pass(unused_stub, NULL);
}

/* --- Forgotten -------------------------------------------------------------------------- */

static void forgotten(const void *arg)
{
	struct pc_call first, second, third;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_NEAR);
	MUST(pc_call_init(&first, at) == 0);
	must_turn(&first, far_away, FAR);
	/* Not that one. */
	MUST(pc_forget(at + 1, 100) == 0 && pc_forget(at - 100, 100) == 0);
	MUST(pc_call_init(&second, at) == -EBUSY);
	MUST(pc_forget(at, 1) == 0);
	put_call(at, CALL_NEAR);
	MUST(pc_call_init(&second, at) == 0);
	must_be(&second, 1, one);
	/* It has nothing to give up any more. */
	MUST(pc_call_fini(&first) == -ENOENT);
	MUST(pc_call_init(&third, at) == -EBUSY);
	MUST(pc_call_fini(&second) == 0);
}

static void test_forgotten(void **state)
{
	(void)state;
	child_must_pass(forgotten, NULL);
}

static void put_in_library(uint8_t *fn)
{
	int32_t nowhere = 0;

	MUST(pc_text_open(fn, CALL_MAX) == 0);
	call_encode(fn, CALL_NEAR, nowhere);
	MUST(pc_text_close(fn, CALL_MAX) == 0);
}

static void unloaded(const void *arg)
{
	struct text_library library;
	struct pc_call first, second, other;
	uint8_t *fn;

	(void)arg;
	start();
	library_copy(&library);
	library_open(&library);
	fn = library.fn;
	put_in_library(fn);
	MUST(pc_call_init(&first, fn) == 0 && pc_call_init(&second, fn) == -EBUSY);
	library_close(&library);
	/* The same file at the same place again: it is noticed only if one looks in between. */
	MUST(pc_call_init(&other, put_call(code + 512, CALL_NEAR)) == 0);
	library_open(&library);
	unlink(library.path);
	if (library.fn != fn)
		child_skip("it lies elsewhere now");
	put_in_library(fn);
	MUST(pc_call_init(&second, fn) == 0);
	MUST(pc_call_fini(&first) == -ENOENT);
}

static void test_unloaded(void **state)
{
	(void)state;
	child_must_pass(unloaded, NULL);
}

/* --- Processes and threads ---------------------------------------------------------------- */

static void forked(const void *arg)
{
	struct pc_call call, other;
	int status;
	pid_t pid;

	(void)arg;
	start();
	MUST(pc_call_init(&call, put_call(code + 512, CALL_NEAR)) == 0);
	pid = fork();
	if (pid == 0) {
		MUST(pc_call_init(&other, call.addr) == -EBUSY);
		must_turn(&call, two, TWO);
		MUST(pc_call_fini(&call) == 0 && pc_call_init(&other, code + 512) == 0);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(pc_call_init(&other, call.addr) == -EBUSY);
	must_be(&call, 1, one);
}

static void test_forked(void **state)
{
	(void)state;
	child_must_pass(forked, NULL);
}

static atomic_int step_of;

static void *take_place(void *at)
{
	struct call_place *place;

	MUST(call_place_take(&place, at) == 0 && call_place_claim(place, CODE_LEN) == 0);
	atomic_store(&step_of, 1);
	while (atomic_load(&step_of) == 1)
		sched_yield();
	return NULL;
}

/* A thread that ends while it gets a call ready does not have it. */
static void abandoned(const void *arg)
{
	struct pc_call call, inner;
	pthread_t thread;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_ADDR32);
	MUST(pthread_create(&thread, NULL, take_place, at) == 0);
	while (atomic_load(&step_of) == 0)
		sched_yield();
	MUST(pc_call_init(&call, at) == -EBUSY && pc_call_init(&inner, at + 1) == -EBUSY);
	atomic_store(&step_of, 2);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(pc_call_init(&inner, at + 1) == 0 && pc_call_fini(&inner) == 0);
	MUST(pc_call_init(&call, at) == 0);
}

static void test_abandoned(void **state)
{
	(void)state;
	child_must_pass(abandoned, NULL);
}

/* --- A look changes nothing ----------------------------------------------------------------- */

static void only_read(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RX) == 0);
	child_filter(SYS_mprotect, 2, PROT_WRITE, SECCOMP_RET_KILL);
	MUST(pc_call_init(&call, at) == 0);
	must_be(&call, 1, one);
	MUST(pc_call_fini(&call) == 0);
}

static void test_only_read(void **state)
{
	child_must_pass(only_read, *state);
}

/* Code that is only executed. */
static void hidden(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;
	uint8_t *at;

	start();
	at = put_call(place_at(place), place->form);
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, PROT_EXEC) == 0);
	MUST(pc_call_init(&call, at) == 0);
	MUST(code_prot(code) == PROT_EXEC);
	must_be(&call, 1, one);
	MUST(pc_text_alias(code, CODE_PAGE) == 0);
	MUST(pc_text_alias(code + CODE_PAGE, CODE_PAGE) == 0);
	for (int i = 0; i < 2; i++) {
		must_turn_off(&call);
		must_be(&call, 0, NULL);
		must_turn(&call, two, TWO);
		must_be(&call, 1, two);
		must_turn(&call, far_away, FAR);
		must_be(&call, 1, far_away);
		if (i == 0)
			MUST(pc_text_close(code, CODE_PAGES * CODE_PAGE) == 0);
	}
	MUST(code_prot(code) == PROT_EXEC && code_prot(code + CODE_PAGE) == PROT_EXEC);
	MUST(pc_call_fini(&call) == 0);
}

static void test_hidden(void **state)
{
	child_must_pass(hidden, *state);
}

/* --- text_read ------------------------------------------------------------------------------ */

static void reads(const void *arg)
{
	uint8_t bytes[6];

	(void)arg;
	start();
	put_call(code + CODE_PAGE - 3, CALL_ADDR32);
	MUST(text_read(bytes, code + CODE_PAGE - 3, 6) == 0);
	MUST(memcmp(bytes, code + CODE_PAGE - 3, 6) == 0);
	/* Either page, or both. */
	for (int i = 1; i < 4; i++) {
		static const int prot[] = { RX, PROT_EXEC };
		uint8_t expected[6];

		memcpy(expected, code + CODE_PAGE - 3, 6);
		MUST(mprotect(code, CODE_PAGE, prot[i & 1]) == 0);
		MUST(mprotect(code + CODE_PAGE, CODE_PAGE, prot[i >> 1]) == 0);
		memset(bytes, 0, sizeof(bytes));
		MUST(text_read(bytes, code + CODE_PAGE - 3, 6) == 1);
		MUST(memcmp(bytes, expected, 6) == 0);
		MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RWX) == 0);
	}
	MUST(munmap(code + CODE_PAGE, CODE_PAGE) == 0);
	MUST(text_read(bytes, code + CODE_PAGE - 3, 6) == -EFAULT);
	MUST(text_read(bytes, code + CODE_PAGE, 1) == -EFAULT);
	MUST(text_read(bytes, NULL, 6) == -EFAULT);
	MUST(text_read(bytes, code, 6) == 0);
	/* One way is shut, and then the other. */
	child_filter(SYS_process_vm_readv, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	MUST(text_read(bytes, code, 6) == 1);
	MUST(text_read(bytes, code + CODE_PAGE, 1) == -EFAULT);
	child_filter(SYS_openat, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	MUST(text_read(bytes, code, 6) == -EACCES);
}

static void test_reads(void **state)
{
	(void)state;
	child_must_pass(reads, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_each),  cmocka_unit_test(test_overlapping),
		cmocka_unit_test(test_not_yet),	  AT_PLACE(while_toggled, 0),
		AT_PLACE(while_toggled, 2),	  AT_PLACE(while_toggled, 11),
		AT_PLACE(while_toggled, 16),	  AT_PLACE(while_toggled, 18),
		AT_PLACE(while_toggled, 25),	  cmocka_unit_test(test_refused),
		AT_ALL_PLACES(goes_on),		  cmocka_unit_test(test_unused_stub),
		cmocka_unit_test(test_forgotten), cmocka_unit_test(test_unloaded),
		cmocka_unit_test(test_forked),	  cmocka_unit_test(test_abandoned),
		AT_ALL_PLACES(only_read),	  AT_ALL_PLACES(hidden),
		cmocka_unit_test(test_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
