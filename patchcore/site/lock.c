/* SPDX-License-Identifier: MIT */
#include "patchcore/site/lock.h"

#include <linux/futex.h>

#include "patchcore/site/thread.h"
#include "patchcore/syscall/sys.h"

#define SPINS	100
#define WAIT_NS 1000000 /* then look whether the holder still exists */

/* The low half of an id tells one holder from the next but for one in 4096: hence WAIT_NS. */
#define FUTEX_OF(lock) ((void *)&(lock)->owner)

static bool try_take(struct lock *lock, uint64_t self, uint64_t *holder)
{
	*holder = 0;
	while (!atomic_compare_exchange_strong_explicit(&lock->owner, holder, self,
							memory_order_seq_cst, memory_order_relaxed))
		if (*holder && !thread_is_gone(*holder))
			return false;
	return true;
}

void signals_hold(void)
{
	struct thread *self = thread_here;
	int cancel = PTHREAD_CANCEL_ENABLE;
	uint64_t mask;

	if (!self)
		return;
	if (!self->holds) {
		mask = kernel_mask(SIG_BLOCK, ~KERNEL_RAISED);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		/* Only now: a handler that came before had a pair of its own. */
		self->mask = mask;
		self->cancel = cancel;
	}
	self->holds++;
}

void signals_let(void)
{
	struct thread *self = thread_here;

	if (!self || --self->holds)
		return;
	pthread_setcancelstate(self->cancel, NULL);
	kernel_mask(SIG_SETMASK, self->mask);
}

void lock_take(struct lock *lock)
{
	static const struct timespec some = { .tv_nsec = WAIT_NS };
	uint64_t self = thread_id(), holder;
	bool taken;

	signals_hold();
	if (thread_here)
		thread_here->locks++;
	for (unsigned i = 0; i < SPINS; i++) {
		if (try_take(lock, self, &holder))
			return;
		__builtin_ia32_pause();
	}
	do {
		/* Counted before it looks again; lock_drop() looks after it has let go. */
		atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_seq_cst);
		taken = try_take(lock, self, &holder);
		if (!taken) {
			sys_call(SYS_futex, FUTEX_OF(lock), FUTEX_WAIT_PRIVATE, (uint32_t)holder,
				 &some);
			thread_ask_end(holder);
		}
		atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
	} while (!taken);
}

void lock_drop(struct lock *lock)
{
	atomic_store_explicit(&lock->owner, 0, memory_order_seq_cst);
	if (atomic_load_explicit(&lock->waiters, memory_order_seq_cst))
		sys_call(SYS_futex, FUTEX_OF(lock), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	if (thread_here)
		thread_here->locks--;
	signals_let();
}
