/* SPDX-License-Identifier: MIT */
/*
 * The library and fork(). Private.
 *
 * A fork waits until no other thread is inside the library and no change is in flight, so all entry
 * points begin with fork_enter() and end with fork_leave(). fork.c has the order of what happens.
 */
#ifndef PATCHCORE_SITE_FORK_H
#define PATCHCORE_SITE_FORK_H

#include <errno.h>
#include <stddef.h>

#include "patchcore/site/thread.h"

/* The id of the thread that forks, 0: the gate is open. */
extern _Atomic(uint64_t) fork_gate;

/* How far this process is with what it inherited: the table is in fork.c. */
#define FORK_NEW     0u
#define FORK_ADOPTED 1u
extern _Atomic(uint32_t) *fork_adopted;

/* For fork_enter_within() alone. */
int fork_enter_slowly(struct thread *self, int64_t ns);

/*
 * fork_adopt - a new process takes over: its other threads do not exist, aliases are replaced by
 * the copy that was made for it. Done once, at the first thing that the library does in a child,
 * which is the handler of pthread_atfork(3), an entry point or a trap. Async-signal-safe.
 */
void fork_adopt(void);

/* fork_is_new - is that still to be done? Async-signal-safe. */
NOPATCH_INLINE bool fork_is_new(void)
{
	return load_relaxed(fork_adopted) == FORK_NEW;
}

/* fork_is_mine - is the calling thread between the handlers of its own fork()? */
NOPATCH_INLINE bool fork_is_mine(const struct thread *self)
{
	uint64_t gate = load_relaxed(&fork_gate);

	return gate && gate == load_relaxed(&self->id);
}

/*
 * fork_enter, fork_enter_in_handler - enter the library; while another thread forks, wait for it
 * outside. A thread that is inside already does not wait, since the fork waits for it. Else the
 * calling thread is outside again: -ENOMEM; -EAGAIN, the forking thread has slept for a minute, or
 * for two seconds: for what signal handlers may call, which the fork itself may be waiting for.
 */
#define fork_enter(self)	    fork_enter_within(self, INT64_C(60000000000))
#define fork_enter_in_handler(self) fork_enter_within(self, INT64_C(2000000000))

static inline int fork_enter_within(struct thread **self, int64_t ns)
{
	*self = thread_self();
	if (!*self)
		return -ENOMEM;
	thread_enter_as(*self);
	/* All of the process is its own, and no thread of it forks just now. */
	if (__builtin_expect(
		    load_relaxed(fork_adopted) == FORK_ADOPTED && !load_acquire(&fork_gate), 1))
		return 0;
	return fork_enter_slowly(*self, ns);
}

#define fork_leave(self) thread_leave(self)

#endif
