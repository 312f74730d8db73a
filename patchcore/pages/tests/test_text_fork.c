/* SPDX-License-Identifier: MIT */
/* Parent and child each have their own code, aliased or not. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/batch.h"
#include "patchcore/merge.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/text_fork.h"

/* --- Each its own ---------------------------------------------------------------------------- */

static void in_child(int from_parent)
{
	char byte;

	for (size_t i = 0; i < 3; i++)
		MUST(code_run(fn + i * CODE_PAGE) == CODE_OLD);
	for (size_t i = 0; i < 3; i++)
		must_patch(fn + i * CODE_PAGE, CODE_NEW);
	/* The parent has patched its own. */
	MUST(read(from_parent, &byte, 1) == 1);
	for (size_t i = 0; i < 3; i++)
		MUST(code_run(fn + i * CODE_PAGE) == CODE_NEW);
	must_be((const int[]){ RX, RX, RX });
	MUST(pc_text_close(base, 3 * CODE_PAGE) == 0);
	must_be((const int[]){ RX, RX, RX });
	must_patch(fn, CODE_OLD);
}

static void test_one_child(int depth)
{
	int to_child[2];
	pid_t pid;

	MUST(pipe(to_child) == 0);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		if (depth > 0)
			test_one_child(depth - 1);
		in_child(to_child[0]);
		_exit(0);
	}
	for (size_t i = 0; i < 3; i++) {
		must_patch(fn + i * CODE_PAGE, CODE_NEW);
		must_patch(fn + i * CODE_PAGE, 0x51525354);
	}
	MUST(write(to_child[1], "", 1) == 1);
	must_end_well(pid);
	for (size_t i = 0; i < 3; i++) {
		MUST(code_run(fn + i * CODE_PAGE) == 0x51525354);
		must_patch(fn + i * CODE_PAGE, CODE_OLD);
	}
	close(to_child[0]);
	close(to_child[1]);
}

/* Two aliases, side by side, and a child of a child. */
static void each_its_own(const void *arg)
{
	(void)arg;
	start();
	MUST(pc_text_alias(page_at(0), 2 * CODE_PAGE) == 0);
	MUST(pc_text_alias(page_at(2), 1) == 0);
	test_one_child(2);
	test_one_child(0);
	must_be((const int[]){ RX, RX, RX });
}

/* What was an alias once is private, and not shared with later children. */
static void closed_before(const void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	must_patch(fn, CODE_NEW);
	MUST(pc_text_close(base, CODE_PAGE) == 0);
	pid = fork();
	if (pid == 0) {
		must_patch(fn, CODE_OLD);
		_exit(0);
	}
	must_end_well(pid);
	MUST(code_run(fn) == CODE_NEW);
}

/* vfork() borrows the parent's memory, which stays as it is. */
static void vforked(const void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	pid = vfork();
	if (pid == 0)
		_exit(0);
	must_end_well(pid);
	must_patch(fn, CODE_NEW);
}

/* --- No copy to be had ----------------------------------------------------------------------- */

static void must_not_write(void)
{
	enum pc_text_way way = PC_TEXT_OPEN;
	char reason[128];

	MUST(try_patch(fn, CODE_NEW) == -EACCES);
	MUST(code_run(fn) == CODE_OLD);
	MUST(pc_text_way(fn, 1, &way, reason, sizeof(reason)) == -EACCES);
	MUST(way == PC_TEXT_ALIAS && strstr(reason, "parent"));
}

/* Such a child may read, but what it writes would show in its parent. */
static void without_handlers(const void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	pid = (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		must_not_write();
		_exit(0);
	}
	must_end_well(pid);
	must_patch(fn, CODE_NEW);
}

static void without_copy(const void *arg)
{
	struct rlimit limit, none;
	pid_t pid;

	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	pid = fork();
	setrlimit(RLIMIT_NOFILE, &limit);
	if (pid == 0) {
		must_not_write();
		/* Closing it makes it private. */
		MUST(pc_text_close(base, CODE_PAGE) == 0);
		must_patch(fn, CODE_NEW);
		_exit(0);
	}
	must_end_well(pid);
	MUST(code_run(fn) == CODE_OLD);
	must_patch(fn, CODE_NEW);
}

/* --- While others store ---------------------------------------------------------------------- */

/* What the private memory of a process knows of its code. */
static volatile uint32_t noted;
static atomic_bool stop;

static void put(uint8_t *at, uint32_t value)
{
	struct text_span span;

	MUST(text_begin(&span, at, 4) == 0);
	memcpy(text_at(&span, at), &value, sizeof(value));
	noted = value;
	text_end(&span);
}

static void *store_often(void *at)
{
	for (uint32_t i = 1; !stop; i++)
		put(at, i);
	return NULL;
}

/* Without the gate the child has an older copy than it knows of. */
static void stores(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_with_threads();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	MUST(pthread_create(&thread, NULL, store_often, base + 128) == 0);
	while (!noted)
		sched_yield();
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		uint32_t value;

		if (pid == 0) {
			memcpy(&value, base + 128, sizeof(value));
			MUST(value == noted);
			must_patch(fn, CODE_NEW);
			_exit(0);
		}
		must_end_well(pid);
	}
	stop = true;
	pthread_join(thread, NULL);
	MUST(code_run(fn) == CODE_OLD);
}

static pid_t forked_in_handler;

static void fork_in_handler(int signal)
{
	(void)signal;
	forked_in_handler = fork();
}

/* The store that the handler interrupted is made on both sides. */
static void in_the_middle(const void *arg)
{
	struct text_span span;
	uint8_t *at;

	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	signal(SIGUSR1, fork_in_handler);
	MUST(text_begin(&span, fn, CODE_LEN) == 0);
	at = text_at(&span, fn);
	/* The handler waits for no thread. */
	child_filter(SYS_nanosleep, 0, 0, SECCOMP_RET_KILL);
	raise(SIGUSR1);
	code_load(at, forked_in_handler ? CODE_NEW : 0x51525354);
	text_end(&span);
	if (forked_in_handler == 0) {
		MUST(code_run(fn) == 0x51525354);
		must_patch(fn, CODE_OLD);
		_exit(0);
	}
	must_end_well(forked_in_handler);
	MUST(code_run(fn) == CODE_NEW);
}

/* A handler that stores, in a thread that another waits for: stores nest. */
static atomic_bool in_store, forking;
static struct text_span outer;

static void store_in_handler(int signal)
{
	(void)signal;
	in_store = true;
	while (!forking)
		sched_yield();
	/* Long enough for the other to be at the gate. */
	usleep(50000);
	put(outer.addr, 7);
}

static void *be_interrupted(void *at)
{
	MUST(text_begin(&outer, at, 4) == 0);
	pthread_kill(pthread_self(), SIGUSR1);
	text_end(&outer);
	return NULL;
}

static void nested_store(const void *arg)
{
	pthread_t thread;
	uint32_t value;
	pid_t pid;

	(void)arg;
	start_with_threads();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	signal(SIGUSR1, store_in_handler);
	MUST(pthread_create(&thread, NULL, be_interrupted, base + 128) == 0);
	while (!in_store)
		sched_yield();
	forking = true;
	pid = fork();
	memcpy(&value, base + 128, sizeof(value));
	MUST(value == 7);
	if (pid == 0)
		_exit(0);
	must_end_well(pid);
	pthread_join(thread, NULL);
}

/* Nor for ever for a thread that was stopped; and the child does not know of it. */
static void *stop_in_store(void *at)
{
	struct text_span span;

	MUST(text_begin(&span, at, 4) == 0);
	in_store = true;
	for (;;)
		pause();
}

static void stopped_store(const void *arg)
{
	pthread_t thread;
	pid_t pid, second;

	(void)arg;
	start_with_threads();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	MUST(pthread_create(&thread, NULL, stop_in_store, base + 128) == 0);
	while (!in_store)
		sched_yield();
	pid = fork();
	if (pid == 0) {
		child_filter(SYS_nanosleep, 0, 0, SECCOMP_RET_KILL);
		second = fork();
		must_patch(fn, CODE_NEW);
		if (second > 0)
			must_end_well(second);
		_exit(0);
	}
	must_end_well(pid);
	MUST(code_run(fn) == CODE_OLD);
}

/* --- While it forks itself ------------------------------------------------------------------- */

static uint8_t *across; /* the bytes of a function's number are on two pages */
static void (*change_while_forking)(void);

/* Runs after the library's own, since it was registered before. */
static void prepare(void)
{
	void (*change)(void) = change_while_forking;

	change_while_forking = NULL;
	if (change)
		change();
}

static void by_store(void)
{
	uint8_t code[CODE_LEN];
	struct text_span span;

	code_load(code, CODE_NEW);
	MUST(text_begin(&span, across, CODE_LEN) == 0);
	memcpy(text_at(&span, across), code, 2);
	memcpy(text_at(&span, across + 2), code + 2, CODE_LEN - 2);
	text_end(&span);
}

static void by_patch(void)
{
	must_patch(across, CODE_NEW);
}

static void by_batch(void)
{
	uint8_t code[CODE_LEN];
	struct pc_op op = { across, code, CODE_LEN, 0 };

	code_load(code, CODE_NEW);
	MUST(pc_patch_batch(&op, 1) == 0);
}

/* As if a second instruction had started at the number. */
static void by_look(void)
{
	uint8_t code[CODE_LEN];
	struct pc_over over = { { across, code, CODE_LEN, 0 }, 3, 1 };

	code_load(code, CODE_NEW);
	MUST(pc_patch_over_batch(&over, 1, PC_CHECK_THREADS) == 0);
}

/* --- A child that is late --------------------------------------------------------------------- */

static struct lateness {
	atomic_bool held;  /* the child is to stay */
	atomic_bool there; /* in its earliest handler, before it has mapped its copy */
	atomic_uint runs;  /* of the site, by the child while it stays */
	atomic_uint torn;
} * lateness;

static bool next_is_late; /* the child of the next fork */

static void stay(void)
{
	if (!next_is_late)
		return;
	/* A parent that has failed does not let it go, and SIGALRM is blocked here. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (atomic_load(&lateness->held)) {
		uint32_t got = code_run(fn);

		atomic_fetch_add(&lateness->runs, 1);
		if (got != CODE_OLD)
			atomic_fetch_add(&lateness->torn, 1);
		atomic_store(&lateness->there, true);
	}
}

static void let_go(pid_t pid)
{
	atomic_store(&lateness->held, false);
	must_end_well(pid);
	MUST(atomic_load(&lateness->runs) > 0 && atomic_load(&lateness->torn) == 0);
}

static void kill_late(pid_t pid)
{
	MUST(kill(pid, SIGKILL) == 0);
	MUST(waitpid(pid, NULL, 0) == pid);
}

/* The late one is its parent's concern: a brother that is made meanwhile has pages of its own. */
static void fork_brother(pid_t late)
{
	pid_t pid;

	next_is_late = false;
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		must_patch(fn, CODE_NEW);
		MUST(code_run(fn) == CODE_NEW);
		_exit(0);
	}
	must_end_well(pid);
	MUST(code_run(fn) == CODE_OLD && try_patch(fn, CODE_NEW) == -EAGAIN);
	let_go(late);
}

/* What it still runs is not changed under it; as soon as it is ready, or dead, it may be. */
static void late_child(void (*end)(pid_t))
{
	enum pc_text_way way;
	char reason[128];
	pid_t pid;

	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	lateness = mmap(NULL, sizeof(*lateness), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	MUST(lateness != MAP_FAILED);
	atomic_store(&lateness->held, true);
	next_is_late = true;
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		MUST(code_run(fn) == CODE_OLD);
		must_patch(fn, CODE_NEW);
		_exit(0);
	}
	while (!atomic_load(&lateness->there))
		;
	for (unsigned i = 0; i < 100; i++)
		MUST(try_patch(fn, CODE_NEW) == -EAGAIN);
	MUST(pc_text_way(fn, 1, &way, reason, sizeof(reason)) == -EAGAIN);
	MUST(way == PC_TEXT_ALIAS && strstr(reason, "child"));
	MUST(code_run(fn) == CODE_OLD);
	end(pid);
	must_patch(fn, CODE_NEW);
	MUST(code_run(fn) == CODE_NEW);
}

static void late_and_ready(const void *arg)
{
	(void)arg;
	late_child(let_go);
}

static void late_and_dead(const void *arg)
{
	(void)arg;
	late_child(kill_late);
}

static void late_brother(const void *arg)
{
	(void)arg;
	late_child(fork_brother);
}

__attribute__((constructor(101))) static void be_first(void)
{
	pthread_atfork(prepare, NULL, stay);
}

/* Parent and child both run what it changes between the handlers. */
static void forking_thread(const void *change)
{
	pid_t pid;

	start();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	across = base + CODE_PAGE - 2;
	MUST(mprotect(base, 2 * CODE_PAGE, RW) == 0);
	code_put(across, CODE_OLD);
	MUST(mprotect(base, 2 * CODE_PAGE, RX) == 0);
	MUST(pc_text_alias(page_at(0), 1) == 0 && pc_text_alias(page_at(1), 1) == 0);
	change_while_forking = *(void (*const *)(void))change;
	pid = fork();
	MUST(!change_while_forking && code_run(across) == CODE_NEW);
	if (pid == 0) {
		must_patch(across, CODE_OLD);
		_exit(0);
	}
	must_end_well(pid);
	must_patch(across, CODE_OLD);
}

static void test_forking_thread(void **state)
{
	static void (*const changes[])(void) = { by_store, by_patch, by_batch, by_look };

	(void)state;
	for (size_t i = 0; i < LENGTH(changes); i++)
		child_must_pass(forking_thread, &changes[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(each_its_own),	 child_unit_test(closed_before),
		child_unit_test(vforked),	 child_unit_test(without_handlers),
		child_unit_test(without_copy),	 child_unit_test(stores),
		child_unit_test(in_the_middle),	 child_unit_test(nested_store),
		child_unit_test(stopped_store),	 cmocka_unit_test(test_forking_thread),
		child_unit_test(late_and_ready), child_unit_test(late_and_dead),
		child_unit_test(late_brother),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
