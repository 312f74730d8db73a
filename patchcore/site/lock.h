/* SPDX-License-Identifier: MIT */
/*
 * A mutex without libc, which outlives its holder. Private.
 *
 * It is taken inside the library only (fork_enter()), so no thread but the forking one holds one
 * when the process forks. Its holder takes no signals that are sent, so it runs no handler of the
 * program, is not cancelled, and does not end. A lock that is left behind all the same, by a task
 * that the kernel has killed or by a fork that went past the handlers, is free. It does not nest.
 */
#ifndef PATCHCORE_SITE_LOCK_H
#define PATCHCORE_SITE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "patchcore/syscall/kernel_signal.h"

/* All zeros: it is free. */
struct lock {
	_Atomic(uint64_t) owner;   /* thread_id() of the holder; 0: it is free */
	_Atomic(uint32_t) waiters; /* asleep, or about to be */
};

/* lock_take, lock_drop - acquire and release. The caller is registered (thread_self()). */
void lock_take(struct lock *lock);
void lock_drop(struct lock *lock);

/*
 * signals_hold - until signals_let(), the calling thread takes no signal that is sent to it, and is
 * not cancelled. A thread that ended in the middle of malloc(3), say, would leave a lock of libc
 * behind. The two nest, and only the outermost pair of a registered thread takes system calls.
 * Signals that code raises come through: libc may be under patches. lock_take() does so by itself.
 */
void signals_hold(void);
void signals_let(void);

#endif
