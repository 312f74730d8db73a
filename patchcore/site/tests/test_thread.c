/* SPDX-License-Identifier: MIT */
/* The id of a thread, and whether the thread still exists. */
#define _GNU_SOURCE /* clone() */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/site/fork.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/child.h"

#define THREADS 500

static void *tell(void *id)
{
	*(uint64_t *)id = thread_id();
	MUST(*(uint64_t *)id != 0 && thread_id() == *(uint64_t *)id);
	return NULL;
}

/* The kernel wakes a thread that joins this one a moment before this one is gone. */
static void must_be_gone_soon(uint64_t id)
{
	while (!thread_is_gone(id))
		usleep(100);
}

static uint64_t id_of_another(void)
{
	pthread_t thread;
	uint64_t id = 0;

	MUST(pthread_create(&thread, NULL, tell, &id) == 0);
	pthread_join(thread, NULL);
	return id;
}

/* One after the other, so that they come by the same stacks and TLS. */
static void one_by_one(const void *arg)
{
	static uint64_t ids[THREADS];

	(void)arg;
	MUST(thread_id() != 0 && !thread_is_gone(thread_id()));
	for (int i = 0; i < THREADS; i++) {
		ids[i] = id_of_another();
		MUST(ids[i] != 0 && ids[i] != thread_id());
		must_be_gone_soon(ids[i]);
		for (int j = 0; j < i; j++)
			MUST(ids[j] != ids[i]);
	}
}

static _Atomic(uint64_t) waiting; /* id of a thread that is there until let go */
static pthread_barrier_t let_go;
static pthread_t waiter;

static void *wait_there(void *unused)
{
	waiting = thread_id();
	pthread_barrier_wait(&let_go);
	return unused;
}

static void start_waiter(void)
{
	MUST(pthread_barrier_init(&let_go, NULL, 2) == 0);
	MUST(pthread_create(&waiter, NULL, wait_there, NULL) == 0);
	while (!waiting)
		;
}

static void end_waiter(void)
{
	MUST(!thread_is_gone(waiting) && waiting != thread_id());
	pthread_barrier_wait(&let_go);
	pthread_join(waiter, NULL);
	must_be_gone_soon(waiting);
}

static void comes_and_goes(const void *arg)
{
	(void)arg;
	start_waiter();
	errno = 0;
	MUST(!thread_is_gone(waiting) && errno == 0);
	end_waiter();
	MUST(thread_is_gone(waiting) && errno == 0);
}

static void must_exit_well(pid_t pid)
{
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The thread that forks goes on in the child, and none of the others is there. */
static void forked(const void *arg)
{
	uint64_t self = thread_id();
	struct thread *here;
	pid_t pid;

	(void)arg;
	/* As every entry point does; and it brings the handlers. */
	MUST(fork_enter(&here) == 0);
	fork_leave(here);
	start_waiter();
	pid = fork();
	if (pid == 0) {
		MUST(thread_id() == self && !thread_is_gone(self));
		MUST(thread_is_interrupted(self) && thread_is_gone(waiting));
		waiting = 0;
		start_waiter();
		end_waiter();
		_exit(0);
	}
	must_exit_well(pid);
	MUST(thread_id() == self && thread_is_interrupted(self));
	end_waiter();
}

static void *ask_of_other(void *other)
{
	MUST(!thread_ask_end(*(const uint64_t *)other));
	return other;
}

/* A thread becomes known in a child for which libc still has the id of its parent. */
static void *fork_past_libc(void *unused)
{
	pid_t pid = (pid_t)syscall(SYS_fork);
	struct thread *here;
	pthread_t thread;
	uint64_t self;

	if (pid == 0) {
		/* As every entry point does. */
		MUST(fork_enter(&here) == 0);
		fork_leave(here);
		self = thread_id();
		MUST(thread_here->tid == (uint32_t)syscall(SYS_gettid));
		MUST(thread_is_interrupted(self));
		MUST(pthread_create(&thread, NULL, ask_of_other, &self) == 0);
		pthread_join(thread, NULL);
		_exit(0);
	}
	must_exit_well(pid);
	return unused;
}

static void known_in_raw_child(const void *arg)
{
	pthread_t thread;

	(void)arg;
	/* The first thread is known since it has forked. */
	MUST(pthread_create(&thread, NULL, fork_past_libc, NULL) == 0);
	pthread_join(thread, NULL);
}

/* It has the memory, and so the sites, that the threads of its parent work on. */
static void vforked(const void *arg)
{
	static uint64_t self;
	static bool is_gone, is_self;
	pid_t pid;

	(void)arg;
	self = thread_id();
	start_waiter();
	pid = vfork();
	if (pid == 0) {
		is_gone = thread_is_gone(waiting) || thread_is_gone(self);
		is_self = thread_is_interrupted(self);
		_exit(0);
	}
	must_exit_well(pid);
	MUST(!is_gone && is_self);
	end_waiter();
}

/* The ids that the two have are strangers' in the mounted /proc. */
static void vforked_in_namespace(const void *arg)
{
	if (unshare(CLONE_NEWPID) < 0)
		child_skip("no pid namespace to be had");
	MUST(child_run(vforked, arg) == 0);
}

/* --- More robust mutexes than the kernel walks ------------------------------------------------ */

#define MUTEXES 3000 /* the kernel: ROBUST_LIST_LIMIT, 2,048 */

static pthread_mutex_t mutexes[MUTEXES];
static atomic_bool held;

static void hold_many(void)
{
	pthread_mutexattr_t attr;

	waiting = thread_id();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < MUTEXES; i++) {
		pthread_mutex_init(&mutexes[i], &attr);
		MUST(pthread_mutex_lock(&mutexes[i]) == 0);
	}
	held = true;
}

static void *hold_and_wait(void *unused)
{
	hold_many();
	pthread_barrier_wait(&let_go);
	return unused;
}

/* All others that look must see that it is there. */
static int ask_as_child(void *unused)
{
	MUST(!thread_ask_end(waiting) && !thread_is_gone(waiting));
	_exit(0);
	return unused != NULL;
}

static void ask_in_children(void)
{
	static const int flags[] = { CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_VFORK | CLONE_NEWPID,
				     0 };
	static char stack[65536] __attribute__((aligned(16)));
	int status;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		pid_t pid = clone(ask_as_child, stack + sizeof(stack), flags[i] | SIGCHLD, NULL);

		/* Without such namespaces there is no such child. */
		MUST(pid > 0 || (flags[i] & CLONE_NEWPID));
		if (pid > 0)
			MUST(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

static void many_mutexes(const void *arg)
{
	struct thread *here;

	(void)arg;
	alarm(20);
	/* It brings the handlers, and what tells a new process. */
	MUST(fork_enter(&here) == 0);
	fork_leave(here);
	MUST(pthread_barrier_init(&let_go, NULL, 2) == 0);
	MUST(pthread_create(&waiter, NULL, hold_and_wait, NULL) == 0);
	while (!held)
		usleep(100);
	MUST(!thread_ask_end(waiting) && !thread_is_gone(waiting));
	ask_in_children();
	MUST(!thread_is_gone(waiting));
	pthread_barrier_wait(&let_go);
	pthread_join(waiter, NULL);
	while (!thread_ask_end(waiting))
		usleep(100);
	MUST(thread_is_gone(waiting));
}

static void *await_first(void *unused)
{
	while (!held || !thread_ask_end(waiting))
		usleep(100);
	MUST(thread_is_gone(waiting));
	_exit(0);
	return unused;
}

/* The first thread stays as a zombie until the others have ended. */
static void many_of_first(const void *arg)
{
	(void)arg;
	alarm(20);
	MUST(pthread_create(&waiter, NULL, await_first, NULL) == 0);
	hold_many();
	syscall(SYS_exit, 0);
}

static void *end_inside(void *unused)
{
	thread_enter_as(thread_self());
	hold_many();
	return unused;
}

/* A fork, and a thread that closes pages, wait for none that has ended inside. */
static void many_inside(const void *arg)
{
	(void)arg;
	alarm(20);
	MUST(pthread_create(&waiter, NULL, end_inside, NULL) == 0);
	pthread_join(waiter, NULL);
	usleep(10000);
	MUST(!thread_any_inside() && thread_await_all());
}

/* --- How deep it is inside -------------------------------------------------------------------- */

static const unsigned depths[] = { 1, 2, 255, 256, 257, 65535, 65536, 65537 };

static void *be_inside(void *depth)
{
	struct thread *self = thread_self();

	for (unsigned i = 0; i < *(const unsigned *)depth; i++)
		thread_enter_as(self);
	MUST(thread_is_nested(self) == (*(const unsigned *)depth > 1));
	pthread_barrier_wait(&let_go);
	/* The other looks. */
	pthread_barrier_wait(&let_go);
	for (unsigned i = 0; i < *(const unsigned *)depth; i++)
		thread_leave(self);
	MUST(!thread_is_nested(self));
	pthread_barrier_wait(&let_go);
	pthread_barrier_wait(&let_go);
	return depth;
}

/* However deep it is, others see that it is inside. */
static void deep(const void *arg)
{
	pthread_t thread;

	(void)arg;
	MUST(pthread_barrier_init(&let_go, NULL, 2) == 0);
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		MUST(pthread_create(&thread, NULL, be_inside, (void *)(uintptr_t)&depths[i]) == 0);
		pthread_barrier_wait(&let_go);
		MUST(thread_any_inside());
		pthread_barrier_wait(&let_go);
		pthread_barrier_wait(&let_go);
		MUST(!thread_any_inside() && thread_await_all());
		pthread_barrier_wait(&let_go);
		MUST(pthread_join(thread, NULL) == 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(one_by_one),   child_unit_test(comes_and_goes),
		child_unit_test(forked),       child_unit_test(known_in_raw_child),
		child_unit_test(vforked),      child_unit_test(vforked_in_namespace),
		child_unit_test(many_mutexes), child_unit_test(many_of_first),
		child_unit_test(many_inside),  child_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
