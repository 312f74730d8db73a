/* SPDX-License-Identifier: MIT */
/*
 * The core's lock keeps threads out and wakes those that wait, tells a thread that has it already,
 * and is free in a child.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "probes/core/core.h"

#define THREADS 4
#define ROUNDS	5000

static volatile unsigned sum; /* as it is added to, threads that are not kept out lose some */
static bool forgets;	      /* to take the lock */

static void pause_shortly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
}

static void *add(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned was;

		MUST(forgets || core_lock() == 0);
		was = sum;
		/* Then others have to wait. */
		if (i % 64 == 0)
			pause_shortly();
		sum = was + 1;
		if (!forgets)
			core_unlock();
	}
	return arg;
}

static void keeps_others_out(const void *arg)
{
	pthread_t threads[THREADS];

	MUST(fi_init() == 0);
	forgets = arg != NULL;
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, add, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MUST(sum == THREADS * ROUNDS);
}

static void test_keeps_others_out(void **state)
{
	(void)state;
	child_must_pass(keeps_others_out, NULL);
	child_must_fail(keeps_others_out, "without it");
}

static void tells_who_has_it(const void *arg)
{
	struct fi_probe probe;

	(void)arg;
	MUST(core_lock() == -ESHUTDOWN);
	MUST(fi_init() == 0);
	MUST(core_lock() == 0);
	MUST(core_lock() == -EDEADLK && fi_get(0, &probe) == -EDEADLK);
	core_unlock();
	MUST(core_lock() == 0);
	core_unlock();
}

static _Atomic(bool) enough;

static void *lock_on(void *arg)
{
	while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
		MUST(core_lock() == 0);
		pause_shortly();
		core_unlock();
	}
	return arg;
}

static void is_free_in_a_child(const void *arg)
{
	pthread_t threads[THREADS];
	int status;

	(void)arg;
	MUST(fi_init() == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, lock_on, NULL) == 0);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (pid == 0) {
			alarm(10);
			MUST(core_lock() == 0);
			core_unlock();
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid && status == 0);
	}
	enough = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_others_out),
		child_unit_test(tells_who_has_it),
		child_unit_test(is_free_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
