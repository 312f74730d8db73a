/* SPDX-License-Identifier: MIT */
#include "probes/profile/edges/edges.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint32_t rings;
static atomic_bool waits;

/* A system call where there is a thread to wake only. */
FI_FUNCTION void bell_ring(void)
{
	int saved = errno;

	atomic_fetch_add_explicit(&rings, 1, memory_order_seq_cst);
	if (atomic_exchange_explicit(&waits, false, memory_order_seq_cst))
		syscall(SYS_futex, &rings, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

uint32_t bell_rings(void)
{
	return atomic_load_explicit(&rings, memory_order_seq_cst);
}

bool bell_wait(uint32_t seen, const struct timespec *until)
{
	atomic_store_explicit(&waits, true, memory_order_seq_cst);
	/* The kernel looks whether it has rung since. */
	return syscall(SYS_futex, &rings, FUTEX_WAIT_BITSET_PRIVATE, seen, until, NULL,
		       FUTEX_BITSET_MATCH_ANY) == 0 ||
	       errno != ETIMEDOUT;
}
