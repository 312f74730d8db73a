/* SPDX-License-Identifier: MIT */
/*
 * A mutex without libc, which outlives its holder. Private.
 *
 * It is taken inside the library only (fork_enter()), so no thread but the forking one holds one
 * when the process forks. One that a thread has left behind all the same, because it
 * ended or because a fork went past the handlers, is free. It does not nest.
 */
#ifndef PATCHCORE_SITE_LOCK_H
#define PATCHCORE_SITE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
	_Atomic(uint64_t) owner;   /* thread_id() of the holder; 0: it is free */
	_Atomic(uint32_t) waiters; /* asleep, or about to be */
};

#define LOCK_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

/* lock_take, lock_drop - acquire and release. The caller is registered (thread_self()). */
void lock_take(struct lock *lock);
void lock_drop(struct lock *lock);

/*
 * cancel_hold - a thread that pthread_cancel(3) ended inside the library would leave locks, pages
 * and descriptors behind: so it is not, until cancel_let() of what this returns. They nest.
 * lock_take() does so by itself.
 */
static inline int cancel_hold(void)
{
	int state = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_let(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* lock_any_held - does the calling thread hold some lock, being interrupted by a signal? */
bool lock_any_held(void);

#endif
