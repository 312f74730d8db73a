/* SPDX-License-Identifier: MIT */
#include "patchcore/finisher.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "patchcore/async.h"
#include "patchcore/flight.h"
#include "patchcore/library.h"
#include "patchcore/trap.h"
#include "patchcore/wait.h"

/* How long it looks for more, in ticks, before it goes to sleep. */
#define LINGER_TICKS UINT64_C(50000)

static pthread_mutex_t finisher_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the next two */
static pthread_t thread;
static bool running;
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
		syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool more_soon(void)
{
	uint64_t start = ticks_now();

	while (!flight_any() && !atomic_load_explicit(&stopping, memory_order_relaxed)) {
		if (ticks_now() - start > LINGER_TICKS)
			return false;
		_mm_pause();
	}
	return true;
}

static void sleep_until_woken(void)
{
	atomic_store_explicit(&asleep, 1, memory_order_seq_cst);
	if (flight_any() || atomic_load_explicit(&stopping, memory_order_seq_cst)) {
		atomic_store_explicit(&asleep, 0, memory_order_relaxed);
		return;
	}
	/* Returns at once if somebody was quicker, and now and then for nothing. */
	syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void *finish(void *unused)
{
	while (!atomic_load_explicit(&stopping, memory_order_acquire)) {
		/* An error is a membarrier short of memory: worth another try, some time. */
		if (flight_drain() < 0)
			trap_back_off();
		if (!more_soon())
			sleep_until_woken();
	}
	return unused;
}

/* A program's signals are not for our thread; a trap in a patched function is. */
static int create(void)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, NULL, finish, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

int pc_finisher_start(void)
{
	int ret = 0;

	if (!library_sync())
		return -ESHUTDOWN;
	pthread_mutex_lock(&finisher_lock);
	if (!running) {
		atomic_store_explicit(&stopping, false, memory_order_relaxed);
		ret = create();
		running = ret == 0;
	}
	pthread_mutex_unlock(&finisher_lock);
	return ret;
}

int pc_finisher_stop(void)
{
	pthread_mutex_lock(&finisher_lock);
	if (running) {
		atomic_store_explicit(&stopping, true, memory_order_seq_cst);
		finisher_wake();
		pthread_join(thread, NULL);
		running = false;
	}
	pthread_mutex_unlock(&finisher_lock);
	return flight_drain();
}

void finisher_forked(void)
{
	pthread_mutex_init(&finisher_lock, NULL);
	running = false;
	atomic_store_explicit(&asleep, 0, memory_order_relaxed);
}
