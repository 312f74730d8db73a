/* SPDX-License-Identifier: MIT */
#include "patchcore/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TID_MASK ((UINT64_C(1) << THREAD_TID_BITS) - 1)

__thread uint64_t thread_id_here __attribute__((tls_model("initial-exec")));

static _Atomic(uint64_t) numbers; /* relaxed: only to be different */

static uint64_t id_of(uint64_t number)
{
	return number << THREAD_TID_BITS | ((uint64_t)syscall(SYS_gettid) & TID_MASK);
}

uint64_t thread_id_make(void)
{
	uint64_t number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;

	/* A signal handler may have been quicker: then that is the number. */
	if (!thread_id_here)
		thread_id_here = id_of(number);
	return thread_id_here;
}

bool thread_is_gone(uint64_t id)
{
	int saved = errno;
	bool gone = syscall(SYS_tgkill, getpid(), (pid_t)(id & TID_MASK), 0) < 0 && errno == ESRCH;

	errno = saved;
	return gone;
}

void thread_forked(void)
{
	if (thread_id_here)
		thread_id_here = id_of(thread_id_here >> THREAD_TID_BITS);
}
