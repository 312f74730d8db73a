/* SPDX-License-Identifier: MIT */
/*
 * The one lock, threads of the tool, and what fork() does to both. A change of a probe that is on
 * takes as long as two calls of a lock of the C library: so it is two exchanges here, and a futex
 * where threads wait.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

enum {
	FREE,
	TAKEN,
	WANTED /* taken, and threads may wait */
};

static _Atomic(uint32_t) lock;
static _Atomic(const void *) owner; /* an address that only this thread has */
static __thread char here __attribute__((tls_model("initial-exec")));
static bool is_open;

static void call_futex(int what, uint32_t value)
{
	syscall(SYS_futex, &lock, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void wait_for_lock(void)
{
	int saved = errno;

	while (atomic_exchange_explicit(&lock, WANTED, memory_order_acquire) != FREE)
		call_futex(FUTEX_WAIT, WANTED);
	errno = saved;
}

static inline int take_lock(void)
{
	uint32_t was = FREE;

	if (atomic_load_explicit(&owner, memory_order_relaxed) == &here)
		return -EDEADLK;
	if (!atomic_compare_exchange_strong_explicit(&lock, &was, TAKEN, memory_order_acquire,
						     memory_order_relaxed))
		wait_for_lock();
	atomic_store_explicit(&owner, &here, memory_order_relaxed);
	return 0;
}

static inline void release_lock(void)
{
	atomic_store_explicit(&owner, NULL, memory_order_relaxed);
	if (atomic_exchange_explicit(&lock, FREE, memory_order_release) == WANTED)
		call_futex(FUTEX_WAKE, 1);
}

int core_lock(void)
{
	int ret = take_lock();

	if (ret || is_open)
		return ret;
	release_lock();
	return -ESHUTDOWN;
}

void core_unlock(void)
{
	near_seal();
	release_lock();
}

/* --- Threads of the tool ---------------------------------------------------------------------- */

static _Atomic int own_threads;
static __thread int own_here; /* the calling thread is one of them */

int fi_own_thread(int change)
{
	if (change == 0)
		return atomic_load_explicit(&own_threads, memory_order_relaxed);
	if (change != 1 && change != -1)
		return -EINVAL;
	atomic_fetch_add_explicit(&own_threads, change, memory_order_relaxed);
	own_here += change;
	return 0;
}

/* The folder has a link for each thread. The caller may itself be a thread of the tool. */
bool process_is_single(void)
{
	struct stat stat_of;

	return !stat("/proc/self/task", &stat_of) &&
	       (int)stat_of.st_nlink ==
		       2 + !own_here + atomic_load_explicit(&own_threads, memory_order_relaxed);
}

/* --- Start, fork and end ---------------------------------------------------------------------- */

static void lock_before_fork(void)
{
	take_lock();
}

static void reset_in_child(void)
{
	block_forked();
	own_threads = own_here = 0;
	for (uint32_t id = 0; probe_get(id); id++)
		if (atomic_load_explicit(&probe_slots[id].lost, memory_order_relaxed))
			atomic_store_explicit(&probe_slots[id].lost, 0, memory_order_relaxed);
	release_lock();
}

/* Leaves the lock held: what fi_init() does next must be done before others see it open. */
int core_open(void)
{
	static bool started;
	int ret = take_lock();

	if (ret < 0)
		return ret;
	if (!started) {
		entry_start();
		ret = block_start();
		if (!ret)
			ret = -pthread_atfork(lock_before_fork, release_lock, reset_in_child);
		started = !ret;
	}
	if (ret) {
		release_lock();
		return ret;
	}
	is_open = true;
	return 0;
}

void core_close(void)
{
	is_open = false;
}
