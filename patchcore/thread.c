/* SPDX-License-Identifier: MIT */
#include "patchcore/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TID_MASK ((UINT64_C(1) << THREAD_TID_BITS) - 1)

__thread uint64_t thread_id_here __attribute__((tls_model("initial-exec")));

static _Atomic(uint64_t) numbers; /* relaxed: only to be different */

/*
 * Whose threads they are: not getpid() of a child of vfork(), which shares all
 * this and would find that none of them is its own. Relaxed: set once, and then
 * by the only thread of a child of fork().
 */
static _Atomic(pid_t) process;

static uint64_t id_of(uint64_t number)
{
	return number << THREAD_TID_BITS | ((uint64_t)syscall(SYS_gettid) & TID_MASK);
}

uint64_t thread_id_make(void)
{
	uint64_t number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;

	uint64_t id = id_of(number);

	if (!atomic_load_explicit(&process, memory_order_relaxed))
		atomic_store_explicit(&process, getpid(), memory_order_relaxed);
	/* A signal handler may have been quicker: then that is the number. */
	if (!thread_id_here)
		thread_id_here = id;
	return thread_id_here;
}

bool thread_is_gone(uint64_t id)
{
	int saved = errno;
	pid_t of = atomic_load_explicit(&process, memory_order_relaxed);
	bool gone = syscall(SYS_tgkill, of, (pid_t)(id & TID_MASK), 0) < 0 && errno == ESRCH;

	errno = saved;
	return gone;
}

void thread_forked(void)
{
	atomic_store_explicit(&process, getpid(), memory_order_relaxed);
	if (thread_id_here)
		thread_id_here = id_of(thread_id_here >> THREAD_TID_BITS);
}
