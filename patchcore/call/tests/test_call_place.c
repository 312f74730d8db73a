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
#include <ucontext.h>

#include <cmocka.h>

#include "patchcore/call/call_form.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"
#include "patchcore/tests/text_library.h"

static void start(void)
{
	start_by_membarrier();
	call_pages();
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
	call_must_turn(&call, two, two, TWO);
	MUST(pc_call_init(&other, at) == -EBUSY);
	MUST(pc_call_fini(&call) == 0);
	MUST(pc_call_init(&other, at) == 0);
	MUST(pc_call_init(&call, at) == -EBUSY);
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
	call_must_turn(&shared, two, two, TWO);
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

/* The code is as it was, and the next pc_call goes on with it. */
static void goes_on(const void *arg)
{
	const struct place *place = arg;
	bool has_off = !call_shapes[place->form].tail;
	uint8_t *at, before[CALL_MAX];
	void *own = NULL;
	struct pc_call call;

	start();
	at = put_call(place_at(place), place->form);
	MUST(pc_call_init(&call, at) == 0);
	call_must_turn(&call, two, two, TWO);
	call_must_turn(&call, far_away, far_away, FAR);
	for (int i = 0; i < 3; i++) {
		memcpy(before, at, CALL_MAX);
		MUST(pc_call_fini(&call) == 0);
		MUST(memcmp(before, at, CALL_MAX) == 0 && call_run(at) == FAR);
		MUST(pc_call_init(&call, at) == 0);
		MUST(memcmp(before, at, CALL_MAX) == 0);
		call_must_be(&call, 1, far_away);
		call_must_turn_off(&call);
		/* Where it led when it was looked at. */
		call_must_turn(&call, NULL, far_away, FAR);
		call_must_turn(&call, one, one, ONE);
		call_must_turn(&call, far_away, far_away, FAR);
		MUST(i == 0 || call.own == own);
		own = call.own;
		if (!has_off)
			continue;
		call_must_turn_off(&call);
		MUST(pc_call_fini(&call) == 0 && pc_call_init(&call, at) == 0);
		call_must_be(&call, 0, NULL);
		MUST(pc_activate_call(&call, NULL) == -EINVAL);
		call_must_turn(&call, far_away, far_away, FAR);
		MUST(call.own == own);
	}
}

/* Attempts that failed leave stubs behind, which serve the next one. */
static void unused_stub(const void *arg)
{
	static const struct place *const at = &places[18];
	struct pc_call call;
	uint8_t *to;

	(void)arg;
	start();
	MUST(pc_call_init(&call, put_call(place_at(at), at->form)) == 0);
	for (int i = 0; i < 4; i++) {
		to = i % 2 ? two : far_away;
		*call.addr = CODE_INT3;
		MUST(pc_activate_call(&call, to) == -EAGAIN);
		*call.addr = 0xe9;
		call_must_be(&call, 1, one);
		if (i == 2)
			MUST(pc_call_fini(&call) == 0 && pc_call_init(&call, place_at(at)) == 0);
	}
	call_must_turn(&call, two, two, TWO);
	call_must_turn(&call, far_away, far_away, FAR);
	call_must_turn(&call, NULL, one, ONE);
}

/* Calls that share a stub are none of each other's business. */
static void sharing(const void *arg)
{
	const struct place *place = arg;
	struct pc_call calls[3];
	uint8_t *at;

	start();
	for (int i = 0; i < 3; i++) {
		at = put_call(place_at(place) - 64 * i, place->form);
		MUST(pc_call_init(&calls[i], at) == 0);
		call_must_turn(&calls[i], far_away, far_away, FAR);
		MUST(calls[i].shared && calls[i].shared == calls[0].shared && !calls[i].own);
	}
	call_must_turn(&calls[0], NULL, one, ONE);
	call_must_turn_off(&calls[1]);
	call_must_be(&calls[2], 1, far_away);
	call_must_turn(&calls[0], two, two, TWO);
	call_must_turn(&calls[1], far_away, far_away, FAR);
	/* One that is no more leaves the others theirs. */
	MUST(pc_forget(calls[0].addr, 1) == 0 && call_run(calls[1].addr) == FAR);
	at = calls[1].addr;
	MUST(pc_call_fini(&calls[1]) == 0 && pc_forget(calls[2].addr, 1) == 0);
	MUST(pc_call_init(&calls[2], calls[2].addr) == 0);
	call_must_turn(&calls[2], two, two, TWO);
	MUST(call_run(at) == FAR);
}

/* A pc_call of code that was forgotten gets nothing more. */
static void forgotten_one(const void *arg)
{
	const struct place *place = arg;
	struct pc_call call;

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	MUST(pc_forget(code, CODE_PAGES * CODE_PAGE) == 0);
	MUST(pc_activate_call(&call, far_away) == -ENOENT && !call.own && !call.shared);
	MUST(call_run(call.addr) == ONE);
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
	call_must_turn(&first, far_away, far_away, FAR);
	/* Not that one. */
	MUST(pc_forget(at + 1, 100) == 0 && pc_forget(at - 100, 100) == 0);
	MUST(pc_call_init(&second, at) == -EBUSY);
	MUST(pc_forget(at, 1) == 0);
	put_call(at, CALL_NEAR);
	MUST(pc_call_init(&second, at) == 0);
	call_must_be(&second, 1, one);
	/* It has nothing to give up any more. */
	MUST(pc_call_fini(&first) == -ENOENT);
	MUST(pc_call_init(&third, at) == -EBUSY);
	MUST(pc_call_fini(&second) == 0);
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
		call_must_turn(&call, two, two, TWO);
		MUST(pc_call_fini(&call) == 0 && pc_call_init(&other, code + 512) == 0);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(pc_call_init(&other, call.addr) == -EBUSY);
	call_must_be(&call, 1, one);
}

static atomic_bool has_ended;

static void end_thread(int signal)
{
	(void)signal;
	atomic_store(&has_ended, true);
	pthread_exit(NULL);
}

/* In the middle of it. The system call fails. */
static void on_filtered(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EACCES;
	MUST(pthread_kill(pthread_self(), SIGUSR1) == 0);
}

static void *end_while_it_gets_ready(void *at)
{
	struct pc_call call;

	child_filter(SYS_mprotect, 2, PROT_WRITE, SECCOMP_RET_TRAP);
	MUST(pc_call_init(&call, at) < 0 && false);
	return NULL;
}

/* A thread that ends while it gets a call ready does not have it. */
static void abandoned(const void *arg)
{
	static const uint8_t off[] = { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	struct sigaction filtered = { .sa_flags = SA_SIGINFO };
	struct pc_call call;
	pthread_t thread;
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_ADDR32);
	memcpy(at, off, sizeof(off));
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RX) == 0);
	filtered.sa_sigaction = on_filtered;
	MUST(sigaction(SIGSYS, &filtered, NULL) == 0);
	MUST(signal(SIGUSR1, end_thread) != SIG_ERR);
	MUST(pthread_create(&thread, NULL, end_while_it_gets_ready, at) == 0);
	MUST(pthread_join(thread, NULL) == 0 && atomic_load(&has_ended));
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RWX) == 0);
	MUST(memcmp(at, off, sizeof(off)) == 0 && pc_call_init(&call, at) == 0);
	call_must_turn(&call, two, two, TWO);
}

#define ROUNDS 2000

static pthread_barrier_t turn;
static int rets[2];

static void *take_in_rounds(void *at)
{
	size_t which = (size_t)((uint8_t *)at - code) & 1;
	struct pc_call call;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&turn);
		rets[which] = pc_call_init(&call, at);
		pthread_barrier_wait(&turn);
		MUST(rets[which] == 0 ? rets[!which] == -EBUSY && pc_call_fini(&call) == 0
				      : rets[which] == -EBUSY && rets[!which] == 0);
	}
	return NULL;
}

/* Of two that overlap one is had, also if they get ready at the same time. */
static void at_once(const void *arg)
{
	pthread_t threads[2];
	uint8_t *at;

	(void)arg;
	start();
	at = put_call(code + 512, CALL_ADDR32);
	MUST(pthread_barrier_init(&turn, NULL, 2) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, take_in_rounds, at + i) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
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
	call_must_be(&call, 1, one);
	MUST(pc_call_fini(&call) == 0);
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
	call_must_be(&call, 1, one);
	MUST(pc_text_alias(code, CODE_PAGE) == 0);
	MUST(pc_text_alias(code + CODE_PAGE, CODE_PAGE) == 0);
	for (int i = 0; i < 2; i++) {
		call_must_turn_off(&call);
		call_must_be(&call, 0, NULL);
		call_must_turn(&call, two, two, TWO);
		call_must_be(&call, 1, two);
		call_must_turn(&call, far_away, far_away, FAR);
		call_must_be(&call, 1, far_away);
		if (i == 0)
			MUST(pc_text_close(code, CODE_PAGES * CODE_PAGE) == 0);
	}
	MUST(code_prot(code) == PROT_EXEC && code_prot(code + CODE_PAGE) == PROT_EXEC);
	MUST(pc_call_fini(&call) == 0);
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

static const struct CMUnitTest tests[] = {
	child_unit_test(one_each),   child_unit_test(overlapping), child_unit_test(not_yet),
	AT_PLACE(while_toggled, 0),  AT_PLACE(while_toggled, 2),   AT_PLACE(while_toggled, 11),
	AT_PLACE(while_toggled, 16), AT_PLACE(while_toggled, 18),  AT_PLACE(while_toggled, 25),
	child_unit_test(refused),    AT_ALL_PLACES(goes_on),	   child_unit_test(unused_stub),
	AT_ALL_PLACES(sharing),	     AT_ALL_PLACES(forgotten_one), child_unit_test(forgotten),
	child_unit_test(unloaded),   child_unit_test(forked),	   child_unit_test(abandoned),
	child_unit_test(at_once),    AT_ALL_PLACES(only_read),	   AT_ALL_PLACES(hidden),
	child_unit_test(reads),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
