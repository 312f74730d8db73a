/* SPDX-License-Identifier: MIT */
#include "patchcore/patch/patch.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>

#include "patchcore/async.h"
#include "patchcore/kernel/clock.h"
#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/lock.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

/* How long it looks for more, in ticks, before it goes to sleep. */
#define LINGER_TICKS UINT64_C(50000)

/*
 * NONE -> STARTING -> RUNNING -> STOPPING -> NONE; the thread that makes a transition with two ends
 * is the only one that is at it. No lock: a fork must not wait for a join. In the child of fork()
 * it is NONE.
 */
enum finisher_state {
	FINISHER_NONE,
	FINISHER_STARTING,
	FINISHER_RUNNING,
	FINISHER_STOPPING
};

static _Atomic(enum finisher_state) finisher;
static pthread_t thread;
static atomic_bool stopping;
static _Atomic(uint32_t) asleep; /* a futex */

/*
 * Sequentially consistent, as is the push before: either the finisher sees what
 * was pushed, or we see that it is about to sleep.
 */
void finisher_wake(void)
{
	if (atomic_load_explicit(&asleep, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&asleep, 0, memory_order_seq_cst))
		sys_call(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static int drain_inside(int (*flights)(void))
{
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	ret = flights();
	fork_leave(self);
	return ret;
}

static void *run_finisher(void *unused)
{
	while (!atomic_load_explicit(&stopping, memory_order_acquire)) {
		uint64_t start;

		/* On an error membarrier is short of memory: the finisher tries again later. */
		if (drain_inside(flight_drain) < 0)
			nap();
		start = ticks_now();
		while (!flight_any() && !atomic_load_explicit(&stopping, memory_order_relaxed) &&
		       ticks_now() - start <= LINGER_TICKS)
			_mm_pause();
		if (flight_any())
			continue;
		atomic_store_explicit(&asleep, 1, memory_order_seq_cst);
		/* Returns at once if the wake was quicker, and now and then for nothing. */
		if (!flight_any() && !atomic_load_explicit(&stopping, memory_order_seq_cst))
			sys_call(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
		else
			atomic_store_explicit(&asleep, 0, memory_order_relaxed);
	}
	return unused;
}

int pc_drain(void)
{
	/* What is kept to look after a child goes when the child is ready. */
	text_child_is_late();
	return choice_sync() ? drain_inside(flight_drain_told) : -ESHUTDOWN;
}

/* Wait until no other thread starts or stops it, and move it on. False: it is in another state. */
static bool begin_transition(enum finisher_state from, enum finisher_state to)
{
	enum finisher_state state = from;

	while (!atomic_compare_exchange_strong_explicit(&finisher, &state, to, memory_order_acquire,
							memory_order_relaxed)) {
		if (state != FINISHER_STARTING && state != FINISHER_STOPPING)
			return false;
		nap();
		state = from;
	}
	return true;
}

int pc_finisher_start(void)
{
	sigset_t all, before;
	int ret;

	if (!choice_sync())
		return -ESHUTDOWN;
	if (!begin_transition(FINISHER_NONE, FINISHER_STARTING))
		return 0;
	atomic_store_explicit(&stopping, false, memory_order_relaxed);
	/* A program's signals are not for our thread; a trap in a patched function is. */
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(&thread, NULL, run_finisher, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	atomic_store_explicit(&finisher, ret == 0 ? FINISHER_RUNNING : FINISHER_NONE,
			      memory_order_release);
	return ret;
}

int pc_finisher_stop(void)
{
	int cancel;

	if (begin_transition(FINISHER_RUNNING, FINISHER_STOPPING)) {
		atomic_store_explicit(&stopping, true, memory_order_seq_cst);
		finisher_wake();
		cancel = cancel_hold();
		pthread_join(thread, NULL);
		cancel_let(cancel);
		atomic_store_explicit(&finisher, FINISHER_NONE, memory_order_release);
	}
	return drain_inside(flight_drain_told);
}

void finisher_forked(void)
{
	atomic_store_explicit(&finisher, FINISHER_NONE, memory_order_relaxed);
	atomic_store_explicit(&asleep, 0, memory_order_relaxed);
}
