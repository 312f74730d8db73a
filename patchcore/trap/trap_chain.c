/* SPDX-License-Identifier: MIT */
/*
 * The disposition of SIGTRAP that the program sees, and what the kernel would
 * do by it.
 *
 * The handler reads it without a lock: there are two copies, of which a counter
 * names the valid one, and a reader that was overtaken reads again. So it is
 * whole also in the child of a fork() that came in the middle of a change.
 */
#include "patchcore/trap/trap_chain.h"

#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/patchcore.h"
#include "patchcore/signals.h"

/* As the kernel knows it: 64 signals, and no restorer, which is libc's business. */
struct disposition {
	uintptr_t handler;
	uint64_t mask;
	int flags;
};

static struct {
	_Atomic(uintptr_t) handler;
	_Atomic(uint64_t) mask;
	_Atomic(int) flags;
} copies[2];
static _Atomic(unsigned) version; /* copies[version % 2] is valid */

static _Atomic(bool) locked;
static _Atomic(const struct guard *) helper; /* NULL without libpatchcore_guard */

/*
 * A holder has all signals blocked and no patched code to run, so it is soon
 * done, unless a thread of a higher priority spins on its CPU. It is inside the library, so
 * no fork leaves the lock behind.
 */
NOPATCH uint64_t trap_chain_lock(void)
{
	uint64_t mask = kernel_mask(SIG_BLOCK, ~UINT64_C(0));

	while (atomic_exchange_explicit(&locked, true, memory_order_acquire))
		nap();
	return mask;
}

NOPATCH void trap_chain_unlock(uint64_t mask)
{
	atomic_store_explicit(&locked, false, memory_order_release);
	kernel_mask(SIG_SETMASK, mask);
}

void trap_chain_use(const struct guard *guard)
{
	atomic_store_explicit(&helper, guard, memory_order_release);
}

NOPATCH static void put_disposition(const struct disposition *now)
{
	unsigned next = atomic_load(&version) + 1;

	atomic_store(&copies[next % 2].handler, now->handler);
	atomic_store(&copies[next % 2].mask, now->mask);
	atomic_store(&copies[next % 2].flags, now->flags);
	atomic_store(&version, next);
}

NOPATCH static unsigned read_disposition(struct disposition *now)
{
	unsigned seen;

	do {
		seen = atomic_load(&version);
		now->handler = atomic_load(&copies[seen % 2].handler);
		now->mask = atomic_load(&copies[seen % 2].mask);
		now->flags = atomic_load(&copies[seen % 2].flags);
	} while (atomic_load(&version) != seen);
	return seen;
}

void trap_chain_set(const struct sigaction *action)
{
	struct disposition now = { .handler = (uintptr_t)action->sa_handler,
				   .flags = action->sa_flags };

	memcpy(&now.mask, &action->sa_mask, sizeof(now.mask));
	put_disposition(&now);
}

void trap_chain_get(struct sigaction *action)
{
	struct disposition now;

	read_disposition(&now);
	*action = (struct sigaction){ .sa_flags = now.flags };
	action->sa_handler = (void (*)(int))now.handler;
	memcpy(&action->sa_mask, &now.mask, sizeof(now.mask));
}

/*
 * What the next SIGTRAP is to do. SA_RESETHAND: only one signal gets the handler, also when two
 * threads have one at the same time; the other looks again.
 */
NOPATCH static void take_disposition(struct disposition *now)
{
	static const struct disposition dfl; /* SIG_DFL is 0 */
	bool first = false;

	do {
		unsigned seen = read_disposition(now);
		uint64_t mask;

		if (!now->handler || !(now->flags & (int)SA_RESETHAND))
			return;
		mask = trap_chain_lock();
		first = atomic_load(&version) == seen;
		if (first)
			put_disposition(&dfl);
		trap_chain_unlock(mask);
	} while (!first);
}

NOPATCH void trap_chain(int signal, siginfo_t *info, void *context)
{
	const struct guard *guard = atomic_load_explicit(&helper, memory_order_acquire);
	const struct kernel_action dfl = { 0 }; /* SIG_DFL is 0 */
	bool synchronous = info->si_code > 0;
	struct disposition now;
	uint64_t mask;

	if (!synchronous && guard && guard->holds(info, context))
		return;
	take_disposition(&now);
	/* The kernel does not let a synchronous trap be ignored; nor do we. */
	if (now.handler == (uintptr_t)SIG_IGN && !synchronous)
		return;
	if (now.handler == (uintptr_t)SIG_DFL || now.handler == (uintptr_t)SIG_IGN) {
		/* SIGTRAP is blocked here, so this is delivered when the handler returns. */
		kernel_action(SIGTRAP, &dfl, NULL);
		sys_call(SYS_tgkill, sys_call(SYS_getpid), sys_call(SYS_gettid), SIGTRAP);
		return;
	}
	/*
	 * With the mask that the kernel would give it, not that of our own handler.
	 * sigreturn gives the thread its own back.
	 */
	memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof(mask));
	mask |= now.mask;
	if (!(now.flags & SA_NODEFER))
		mask |= kernel_bit(SIGTRAP);
	kernel_mask(SIG_SETMASK, mask);
	if (now.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))now.handler)(signal, info, context);
	else
		((void (*)(int))now.handler)(signal);
}
