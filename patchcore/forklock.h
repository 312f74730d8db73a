/* SPDX-License-Identifier: MIT */
/*
 * A mutex that fork() takes first, so that a child never finds it held by a
 * thread that it does not have. Private.
 */
#ifndef PATCHCORE_FORKLOCK_H
#define PATCHCORE_FORKLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct forklock {
	pthread_mutex_t mutex;
	/* The holder's thread pointer. Relaxed: each thread asks only about itself. */
	_Atomic(uintptr_t) owner;
	bool inside; /* the forking thread held it before; under the mutex */
};

#define FORKLOCK_INIT                                                                              \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

static inline uintptr_t forklock_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static inline void forklock_take(struct forklock *lock)
{
	pthread_mutex_lock(&lock->mutex);
	atomic_store_explicit(&lock->owner, forklock_self(), memory_order_relaxed);
}

static inline void forklock_drop(struct forklock *lock)
{
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

/*
 * forklock_before_fork, forklock_after_fork - for pthread_atfork(3), the latter
 * in parent and child. A thread that forks in a signal handler may have been
 * interrupted with the lock in hand: then it keeps it, on both sides.
 */
static inline void forklock_before_fork(struct forklock *lock)
{
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == forklock_self()) {
		lock->inside = true;
		return;
	}
	forklock_take(lock);
	lock->inside = false;
}

static inline void forklock_after_fork(struct forklock *lock)
{
	if (!lock->inside)
		forklock_drop(lock);
	else
		lock->inside = false;
}

#endif
