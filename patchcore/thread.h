/* SPDX-License-Identifier: MIT */
/*
 * Who a thread is. Private.
 */
#ifndef PATCHCORE_THREAD_H
#define PATCHCORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The low bits are the kernel's id of the thread (below 2^22, PID_MAX_LIMIT),
 * which comes back; the high bits number the threads of this process and never do.
 */
#define THREAD_TID_BITS 22

/* In the static block, so that a signal handler may read it. */
extern __thread uint64_t thread_id_here __attribute__((tls_model("initial-exec")));

uint64_t thread_id_make(void);

/*
 * thread_id - tells this thread from every other that the process has or had.
 * Never 0. In a child of fork() its thread is still the one that forked.
 * Async-signal-safe.
 */
static inline uint64_t thread_id(void)
{
	return thread_id_here ? thread_id_here : thread_id_make();
}

/* thread_is_self - is that an id of the calling thread? Async-signal-safe. */
static inline bool thread_is_self(uint64_t id)
{
	return ((id ^ thread_id()) >> THREAD_TID_BITS) == 0;
}

/*
 * thread_is_gone - has the thread of that id ended, or stayed behind in the
 * process that this one was forked from? Never true of a thread that runs, also
 * when asked in a child of vfork(). One system call. Async-signal-safe.
 */
bool thread_is_gone(uint64_t id);

/* thread_forked - to be called in the child of fork(). */
void thread_forked(void);

#endif
