/* SPDX-License-Identifier: MIT */
/*
 * An executor of a real-time priority and a patcher without one, on one CPU: an executor that
 * spins for the patcher keeps the CPU from it.
 */
#define _GNU_SOURCE /* sched_setaffinity() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/tests/trap_case.h"

/*
 * An executor that never slept would trap once per 1000 000 ticks until the
 * kernel throttles its class (950 ms of each second): some two thousand times.
 */
#define TRAPS_MAX 1000

static void stay_on_this_cpu(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	MUST(sched_setaffinity(0, sizeof(here), &here) == 0);
}

static int create_real_time(pthread_t *thread)
{
	struct sched_param param = { .sched_priority = 1 };
	pthread_attr_t attr;

	MUST(pthread_attr_init(&attr) == 0);
	MUST(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
	MUST(pthread_attr_setschedpolicy(&attr, SCHED_FIFO) == 0);
	MUST(pthread_attr_setschedparam(&attr, &param) == 0);
	return pthread_create(thread, &attr, execute, site);
}

static void starves(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	stay_on_this_cpu();
	word = put_int3();
	if (create_real_time(&thread) != 0)
		child_skip("no real-time priority to be had");
	/* From here on this thread runs only while the executor sleeps. */
	for (volatile int i = 0; i < 100000; i++)
		;
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
	MUST(trap_count() >= 1 && trap_count() < TRAPS_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(starves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
