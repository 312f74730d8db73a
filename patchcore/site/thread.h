/* SPDX-License-Identifier: MIT */
/*
 * Owners: the threads that change code, and whether they still exist. Private.
 *
 * A thread gets a record with its first change, in an entry point of the library and never in
 * the trap handler: a child of vfork() that traps there runs on the thread-local storage of its
 * parent, and would leave the parent an id that is not its own. The record holds a robust mutex
 * for as long as the thread lives. When it ends, however it does, the kernel marks the mutex.
 * That proof knows no reuse of ids, no other process and no other pid namespace.
 *
 * An executor in the trap handler that makes a step is a guest (thread_guest()).
 */
#ifndef PATCHCORE_SITE_THREAD_H
#define PATCHCORE_SITE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "patchcore/site/lock.h"
#include "patchcore/syscall/sys.h"

/*
 * An id is a generation << THREAD_SLOT_BITS | the slot of a record. Generations are never
 * used twice, slots are. 0 is no thread.
 */
#define THREAD_SLOT_BITS 20

#define THREAD_INSIDE UINT64_C(0xffffffff) /* the bits of `inside` that count how deep */
#define THREAD_PASSED (UINT64_C(1) << 32)

struct thread {
	_Atomic(uint64_t) id;
	_Atomic(uint32_t) epoch; /* process_epoch when it was last known to be there */
	_Atomic(uint32_t) tid;
	/*
	 * How deep the thread is inside the library, and above that, how often it has left. The
	 * first is never full: a call enters a few times at most, with any arguments, and no
	 * stack holds so many handlers that interrupt each other. Written by the thread alone, so
	 * plain stores do; read by forks and closers, which make up for the missing barrier by
	 * membarrier (thread_await_all).
	 */
	_Atomic(uint64_t) inside;
	unsigned locks; /* that the thread holds; also seen in a handler of a raised signal */
	unsigned holds; /* of signals_hold() that are not over; before the first of them: */
	uint64_t mask;
	void *recent; /* the page that it has met last, see page_find_plain() */
	int cancel;
	pthread_mutex_t life;
} __attribute__((aligned(128)));

/* Counts the forks between the first process and this one. Starts at 1. */
extern _Atomic(uint32_t) process_epoch;

/* In the static block, so that a signal handler may read it. */
extern __thread struct thread *thread_here __attribute__((tls_model("initial-exec")));

/* thread_register - the record of the calling thread. NULL: no memory. */
struct thread *thread_register(void);

/* thread_self - the same, made only once. Not in the trap handler. */
static inline struct thread *thread_self(void)
{
	return thread_here ? thread_here : thread_register();
}

/* thread_id - never 0, but where there is no memory for a record. */
static inline uint64_t thread_id(void)
{
	const struct thread *self = thread_self();

	return self ? load_relaxed(&self->id) : 0;
}

/*
 * thread_is_gone - has the owner of that id ended, or stayed behind in the process that this one
 * was forked from? Never true of one that runs. No system call. Async-signal-safe.
 */
bool thread_is_gone(uint64_t id);

/*
 * thread_ask_end - the same, for waits that get long. The kernel marks no more than 2,048 robust
 * mutexes of a thread that ends, and no guest that is a thread of this process: so it is asked
 * whether the thread exists, and the mark is made here. A few system calls. Async-signal-safe.
 */
bool thread_ask_end(uint64_t id);

/*
 * thread_is_interrupted - for the trap handler: is that the id of the thread that this signal
 * has interrupted? In a child of vfork() that is the parent's thread, which stands still until
 * the child is gone. A task that merely shares memory and thread-local storage with a thread
 * that runs is told apart.
 */
bool thread_is_interrupted(uint64_t id);

/* --- Inside the library --------------------------------------------------------------------- */

/*
 * thread_enter_as, thread_leave - around all that an entry point does with locks, pages and sites.
 * They nest, also in signal handlers.
 */
NOPATCH_INLINE void thread_enter_as(struct thread *self)
{
	uint64_t inside = load_relaxed(&self->inside);

	store_relaxed(&self->inside, inside + 1);
	/* The compiler's order; the processor's is made by the membarrier in thread_await_all(). */
	atomic_signal_fence(memory_order_seq_cst);
}

NOPATCH_INLINE void thread_leave(struct thread *self)
{
	uint64_t inside = load_relaxed(&self->inside);

	inside += (inside & THREAD_INSIDE) == 1 ? THREAD_PASSED - 1 : UINT64_C(-1);
	/* Release: a thread that sees it outside sees what it did. */
	store_release(&self->inside, inside);
}

NOPATCH_INLINE bool thread_is_nested(const struct thread *self)
{
	return (load_relaxed(&self->inside) & THREAD_INSIDE) > 1;
}

/* thread_runs - has the task a CPU, or waits for one, or for a page? */
bool thread_runs(uint64_t id);

/*
 * thread_any_inside - is any other thread? One that enters later sees what was stored before the
 * call.
 */
bool thread_any_inside(void);

/*
 * thread_await_all - return when every other thread has been outside once since the call.
 * False: one has not, and has slept for a second, as under a debugger, or has got no CPU for 16.
 * The caller is outside, or no thread waits for it.
 */
bool thread_await_all(void);

/* --- Guests ----------------------------------------------------------------------------------- */

/*
 * thread_guest - an id for a task in the trap handler, to own a site by while it makes plain
 * stores and no system call; or for one that has no record yet. 0: too many guests just now.
 *
 * A thread of this process cannot end in there alone. Another task that shares the memory can (a
 * child of vfork() that is killed), so it is put on the kernel's list of robust futexes
 * meanwhile. Async-signal-safe. thread_guest_leave - give it back.
 */
uint64_t thread_guest(void);
void thread_guest_leave(uint64_t id);

/* --- fork() ---------------------------------------------------------------------------------- */

/*
 * thread_adopt - in a new process: a new epoch, in which only the calling thread exists.
 * Async-signal-safe. thread_rearm - later, outside of handlers: the kernel shall tell of its
 * end again.
 */
void thread_adopt(void);
void thread_rearm(void);

#endif
