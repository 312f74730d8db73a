/* SPDX-License-Identifier: MIT */
/*
 * Taking SIGTRAP, keeping it, and giving it back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"
#include "patchcore/signals.h"
#include "patchcore/trap/guard.h"
#include "patchcore/trap/trap.h"
#include "patchcore/trap/trap_chain.h"

/*
 * How long, in ticks, the library relies on a look at the handler of SIGTRAP: the system call
 * costs as much as the stores of a whole patch.
 */
#define CHECK_TICKS UINT64_C(1000000)

/* Written under the lock of the chain, before `installed`. */
static const struct guard *guard;
static _Atomic(bool) installed;

#ifdef __SANITIZE_THREAD__
/* The thread sanitizer wants to know of handlers, and delivers signals itself. */
static int set_action(int signal, const struct sigaction *new, struct sigaction *old)
{
	guard_sigaction_fn *real = guard ? guard->sigaction : sigaction;

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
	return guard != NULL;
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
	uint64_t mask = trap_chain_lock();
	int ret = atomic_load(&installed) ? 0 : -ESHUTDOWN;
	struct sigaction old;

	if (ret == 0) {
		trap_chain_get(&old);
		if (new_action) {
			trap_chain_set(new_action);
			if (trap_is_ours())
				put_ours(new_action);
		}
	}
	trap_chain_unlock(mask);
	if (ret == 0 && old_action)
		*old_action = old;
	return ret;
}

int trap_install(void)
{
	struct sigaction before;
	uint64_t mask;
	int ret;

	/* dlsym() may allocate, which is nothing to do with signals blocked. */
	guard = dlsym(RTLD_DEFAULT, GUARD_NAME);
	/* With the lock held: a sigaction() of the program that comes meanwhile waits. */
	mask = trap_chain_lock();
	if (guard)
		guard->attach(pc_set_chained_trap);
	ret = trap_now(&before);
	if (ret == 0) {
		trap_chain_set(&before);
		trap_chain_use(guard);
		ret = put_ours(&before);
		atomic_store(&installed, ret == 0);
	}
	trap_chain_unlock(mask);
	return ret < 0 ? ret : 0;
}

int trap_remove(void)
{
	uint64_t mask = trap_chain_lock();
	struct sigaction before;
	int ret = -EBUSY;

	if (trap_is_ours()) {
		trap_chain_get(&before);
		ret = set_action(SIGTRAP, &before, NULL);
	}
	if (ret == 0) {
		atomic_store(&installed, false);
		if (guard)
			guard->attach(NULL);
	}
	trap_chain_unlock(mask);
	return ret;
}
