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
NOPATCH trap_lock trap_chain_lock(void)
{
	trap_lock lock = { .mask = kernel_mask(SIG_BLOCK, ~UINT64_C(0)) };

	while (atomic_exchange_explicit(&locked, true, memory_order_acquire))
		nap();
	return lock;
}

NOPATCH void trap_chain_unlock(trap_lock lock)
{
	atomic_store_explicit(&locked, false, memory_order_release);
	kernel_mask(SIG_SETMASK, lock.mask);
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
 * SA_RESETHAND: only one signal gets the handler, also when two threads have one
 * at the same time. False: it was another that got it.
 */
NOPATCH static bool reset_once(unsigned seen)
{
	static const struct disposition dfl; /* SIG_DFL is 0 */
	trap_lock lock = trap_chain_lock();
	bool first = atomic_load(&version) == seen;

	if (first)
		put_disposition(&dfl);
	trap_chain_unlock(lock);
	return first;
}

/* What the next SIGTRAP is to do. */
NOPATCH static void take_disposition(struct disposition *now)
{
	unsigned seen;

	do {
		seen = read_disposition(now);
	} while (now->handler && (now->flags & (int)SA_RESETHAND) && !reset_once(seen));
}

NOPATCH static void die(void)
{
	const struct kernel_action dfl = { 0 }; /* SIG_DFL is 0 */

	/* SIGTRAP is blocked here, so this is delivered when the handler returns. */
	kernel_action(SIGTRAP, &dfl, NULL);
	sys_call(SYS_tgkill, sys_call(SYS_getpid), sys_call(SYS_gettid), SIGTRAP);
}

/*
 * With the mask that the kernel would give it, not that of our own handler.
 * sigreturn gives the thread its own back.
 */
NOPATCH static void call(const struct disposition *now, int signal, siginfo_t *info, void *context)
{
	const uint64_t trap = kernel_bit(SIGTRAP);
	uint64_t mask;

	memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof(mask));
	mask |= now->mask;
	if (!(now->flags & SA_NODEFER))
		mask |= trap;
	kernel_mask(SIG_SETMASK, mask);
	if (now->flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))now->handler)(signal, info, context);
	else
		((void (*)(int))now->handler)(signal);
}

NOPATCH static bool chain_is_held(const siginfo_t *info, void *context)
{
	const struct guard *guard = atomic_load_explicit(&helper, memory_order_acquire);

	return guard && guard->holds(info, context);
}

NOPATCH void trap_chain(int signal, siginfo_t *info, void *context)
{
	bool synchronous = info->si_code > 0;
	struct disposition now;

	if (!synchronous && chain_is_held(info, context))
		return;
	take_disposition(&now);
	/* The kernel does not let a synchronous trap be ignored; nor do we. */
	if (now.handler == (uintptr_t)SIG_IGN && !synchronous)
		return;
	if (now.handler == (uintptr_t)SIG_DFL || now.handler == (uintptr_t)SIG_IGN)
		die();
	else
		call(&now, signal, info, context);
}
