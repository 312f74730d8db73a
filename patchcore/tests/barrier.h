/* SPDX-License-Identifier: MIT */
/*
 * Membarrier as a test plays it: a filter turns each call into a signal. In its handler the
 * syncing thread runs a function of the test, whose result is the answer of the call. For the
 * children of tests.
 */
#ifndef PATCHCORE_TESTS_BARRIER_H
#define PATCHCORE_TESTS_BARRIER_H

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <ucontext.h>

#include "patchcore/tests/flights.h"

/* Returns what membarrier(2) is to return: 0 or a negative errno. */
typedef int barrier_fn(void);

static _Atomic(barrier_fn *) barrier_now; /* NULL: each works */

static inline void barrier_on_call(int signal, siginfo_t *info, void *context)
{
	barrier_fn *fn = atomic_load(&barrier_now);
	int saved = errno;

	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = fn ? fn() : 0;
	errno = saved;
}

/* From here on, in this thread and those that it makes. After flights_use_membarrier(). */
static inline void barrier_play(barrier_fn *fn)
{
	struct sigaction action = { .sa_sigaction = barrier_on_call,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (CHILD_TSAN)
		child_skip("the thread sanitizer has signals of its own");
	atomic_store(&barrier_now, fn);
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	flights_filter_membarrier(SECCOMP_RET_TRAP);
}

static inline double barrier_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits until it is true, but not for ever: the other thread may itself wait for this one. */
static inline bool barrier_await(const atomic_bool *flag, double seconds)
{
	double start = barrier_seconds();

	while (!*flag && barrier_seconds() - start < seconds)
		sched_yield();
	return *flag;
}

#endif
