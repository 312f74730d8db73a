/* SPDX-License-Identifier: MIT */
/* No lock is left behind in a child. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/text_fork.h"

static atomic_bool stop;
static pid_t forked_in_handler;

static void *open_often(void *at)
{
	while (!stop)
		MUST(pc_text_open(at, 1) == 0 && pc_text_close(at, 1) == 0);
	return NULL;
}

/* Most of these forks come when the other thread has the lock. */
static void with_lock(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_with_threads();
	MUST(pthread_create(&thread, NULL, open_often, page_at(1)) == 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(5);
			must_patch(fn, CODE_NEW);
			MUST(pc_text_alias(page_at(2), 1) == 0);
			_exit(0);
		}
		must_end_well(pid);
	}
	stop = true;
	pthread_join(thread, NULL);
	must_be((const int[]){ RX, RX, RX });
}

/* Nor is a lock of the dynamic linker, which fork() leaves as it was. */
static void ignore_gone(uintptr_t start, uintptr_t end)
{
	(void)start;
	(void)end;
}

static void *look_often(void *unused)
{
	(void)unused;
	while (!stop)
		objects_each_gone(ignore_gone);
	return NULL;
}

static void with_linker_lock(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_with_threads();
	MUST(pthread_create(&thread, NULL, look_often, NULL) == 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(5);
			must_patch(fn, CODE_NEW);
			_exit(0);
		}
		must_end_well(pid);
	}
	stop = true;
	pthread_join(thread, NULL);
}

/* The thread that forks has the lock itself: a filter makes a signal of its system call. */
static void fork_on_system_call(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	forked_in_handler = fork();
	/* The interrupted code relies on it. */
	MUST(text_lock.owner == thread_id());
	if (forked_in_handler > 0)
		must_end_well(forked_in_handler);
	else
		_exit(0);
}

static void with_own_lock(const void *arg)
{
	struct sigaction action = { .sa_sigaction = fork_on_system_call, .sa_flags = SA_SIGINFO };

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer has signals of its own");
	start();
	sigaction(SIGSYS, &action, NULL);
	child_filter(SYS_mprotect, 2, PROT_WRITE | PROT_EXEC, SECCOMP_RET_TRAP);
	/* The call fails with its own number, which is no error: as if it had worked. */
	pc_text_open(base, 1);
	MUST(forked_in_handler > 0);
	MUST(pc_text_alias(page_at(2), 1) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(with_lock),
		child_unit_test(with_linker_lock),
		child_unit_test(with_own_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
