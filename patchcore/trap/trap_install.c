/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP: taking it, keeping it, giving it back; the disposition that the program sees meanwhile,
 * and what the kernel would do by it.
 *
 * The handler reads that without a lock: there are two copies, of which a counter names the valid
 * one, and a reader that was overtaken reads again. So it is whole also in the child of a fork()
 * that came in the middle of a change.
 */
#include "patchcore/trap/trap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"
#include "patchcore/signals.h"
#include "patchcore/site/fork.h"
#include "patchcore/trap/guard.h"

/*
 * How long, in ticks, the library relies on a look at the handler of SIGTRAP: the system call
 * costs as much as the stores of a whole patch.
 */
#define CHECK_TICKS UINT64_C(1000000)

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

/* Around changes of the disposition: the process_epoch of who holds it, 0: nothing does. */
static _Atomic(uint32_t) locked;
static _Atomic(bool) installed;		    /* written under the lock */
static _Atomic(const struct guard *) guard; /* NULL without libpatchcore_guard; likewise */

/*
 * Changes of the disposition exclude each other, threads and signal handlers alike. Returns the
 * mask that unlocking restores. A holder has all signals blocked and no patched code to run, so it
 * is soon done, unless a thread of a higher priority spins on its CPU.
 *
 * A handler that takes it is not inside the library, and a fork waits for none. So a child may be
 * born with the lock held: by a thread of another process, which it does not wait for. What that
 * was changing is whole, or is put right by the next that changes it.
 */
NOPATCH static uint64_t lock_chain(void)
{
	uint64_t mask = kernel_mask(SIG_BLOCK, ~UINT64_C(0));
	uint32_t holder = 0, me;

	if (fork_is_new())
		fork_adopt();
	me = atomic_load_explicit(&process_epoch, memory_order_relaxed);
	/* Acquire: pairs with the release in unlock_chain(). */
	while (!atomic_compare_exchange_strong_explicit(&locked, &holder, me, memory_order_acquire,
							memory_order_relaxed)) {
		if (holder != me)
			continue;
		nap();
		holder = 0;
	}
	return mask;
}

NOPATCH static void unlock_chain(uint64_t mask)
{
	atomic_store_explicit(&locked, 0, memory_order_release);
	kernel_mask(SIG_SETMASK, mask);
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

static void set_chain(const struct sigaction *action)
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

NOPATCH void trap_chain(int signal, siginfo_t *info, void *context)
{
	const struct guard *helper = atomic_load_explicit(&guard, memory_order_acquire);
	static const struct disposition none; /* SIG_DFL is 0 */
	const struct kernel_action dfl = { 0 };
	bool synchronous = info->si_code > 0, first = true;
	struct disposition now;
	uint64_t mask;

	if (!synchronous && helper && helper->holds(info, context))
		return;
	do {
		unsigned seen = read_disposition(&now);

		if (!now.handler || !(now.flags & (int)SA_RESETHAND))
			break;
		/* Of two threads that have a signal only one gets the handler; the other looks
		 * again. */
		mask = lock_chain();
		first = atomic_load(&version) == seen;
		if (first)
			put_disposition(&none);
		unlock_chain(mask);
	} while (!first);
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

/* --- Taking it and giving it back --------------------------------------------------------------
 */

#ifdef __SANITIZE_THREAD__
/* The thread sanitizer wants to know of handlers, and delivers signals itself. */
static int set_action(int signal, const struct sigaction *new, struct sigaction *old)
{
	const struct guard *helper = atomic_load(&guard);
	guard_sigaction_fn *real = helper ? helper->sigaction : sigaction;

	return real(signal, new, old) < 0 ? -errno : 0;
}
#else
/*
 * Not libc's: this is called with the lock of the chain, so with SIGTRAP blocked, and libc may be
 * under patches. It also goes past a guard, which tells the program what it wants to hear.
 */
static int set_action(int signal, const struct sigaction *new, struct sigaction *old)
{
	struct kernel_action set = { 0 }, was = { 0 };
	int ret;

	if (new) {
		set.handler = (uintptr_t) new->sa_handler;
		set.flags = (unsigned)new->sa_flags | KERNEL_RESTORER;
		set.restorer = (uintptr_t)kernel_sigreturn;
		set.mask = new->sa_mask.__val[0];
	}
	ret = (int)kernel_action(signal, new ? &set : NULL, old ? &was : NULL);
	if (ret < 0)
		return ret;
	if (old) {
		*old = (struct sigaction){ .sa_flags = (int)(was.flags & ~KERNEL_RESTORER) };
		old->sa_handler = (void (*)(int))was.handler;
		old->sa_mask.__val[0] = was.mask;
	}
	return 0;
}
#endif

bool trap_is_ours(void)
{
	struct sigaction now;

	return trap_now(&now) == 1;
}

bool trap_is_guarded(void)
{
	return atomic_load(&guard);
}

int trap_see(int signal, struct sigaction *now)
{
	return set_action(signal, NULL, now);
}

int trap_now(struct sigaction *now)
{
	int ret = trap_see(SIGTRAP, now);

	if (ret < 0)
		return ret;
	return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == trap_on_signal;
}

bool trap_was_ours_lately(void)
{
	static _Atomic(uint64_t) checked; /* ticks; a race costs one check more */
	uint64_t now = __rdtsc();

	if (now - atomic_load_explicit(&checked, memory_order_relaxed) < CHECK_TICKS)
		return true;
	if (!trap_is_ours())
		return false;
	atomic_store_explicit(&checked, now, memory_order_relaxed);
	return true;
}

/* On top of `before`, the program's own. */
static int put_ours(const struct sigaction *before)
{
	/*
	 * SIGTRAP is blocked in the handler: what came on top of it could not run a site.
	 * But a signal that an instruction of ours raises cannot wait: a system call may
	 * be a sandbox's to answer.
	 */
	static const int raised[] = { SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction ours = { .sa_sigaction = trap_on_signal,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK };

	/* A SIGTRAP that is sent must not break off system calls that it did not before. */
	if ((before->sa_flags & SA_RESTART) || before->sa_handler == SIG_IGN)
		ours.sa_flags |= SA_RESTART;
	sigfillset(&ours.sa_mask);
	for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
		sigdelset(&ours.sa_mask, raised[i]);
	return set_action(SIGTRAP, &ours, NULL);
}

int pc_set_chained_trap(const struct sigaction *new_action, struct sigaction *old_action)
{
	uint64_t mask = lock_chain();
	int ret = atomic_load(&installed) ? 0 : -ESHUTDOWN;
	struct sigaction old;

	if (ret == 0) {
		trap_chain_get(&old);
		if (new_action) {
			set_chain(new_action);
			if (trap_is_ours())
				put_ours(new_action);
		}
	}
	unlock_chain(mask);
	if (ret == 0 && old_action)
		*old_action = old;
	return ret;
}

int trap_install(void)
{
	/* dlsym() may allocate, which is nothing to do with signals blocked. */
	const struct guard *found = dlsym(RTLD_DEFAULT, GUARD_NAME);
	/* With the lock held: a sigaction() of the program that comes meanwhile waits. */
	uint64_t mask = lock_chain();
	struct sigaction before;
	int ret;

	atomic_store(&guard, found);
	if (found)
		found->attach(pc_set_chained_trap);
	ret = trap_now(&before);
	if (ret == 0) {
		set_chain(&before);
		ret = put_ours(&before);
		atomic_store(&installed, ret == 0);
	}
	unlock_chain(mask);
	return ret < 0 ? ret : 0;
}

int trap_remove(void)
{
	uint64_t mask = lock_chain();
	struct sigaction before;
	int ret = -EBUSY;

	if (trap_is_ours()) {
		trap_chain_get(&before);
		ret = set_action(SIGTRAP, &before, NULL);
	}
	if (ret == 0) {
		atomic_store(&installed, false);
		if (trap_is_guarded())
			atomic_load(&guard)->attach(NULL);
	}
	unlock_chain(mask);
	return ret;
}
