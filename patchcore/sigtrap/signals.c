/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP: taking it, keeping it, giving it back; the disposition that the program sees meanwhile,
 * and what the kernel would do by it. And: would a thread that meets an INT3 of ours survive it?
 *
 * The handler reads that without a lock: there are two copies, of which a counter names the valid
 * one, and a reader that was overtaken reads again. So it is whole also in the child of a fork()
 * that came in the middle of a change.
 */
#include "patchcore/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "patchcore/machine/wait.h"
#include "patchcore/merge/others.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/sigtrap/guard.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/lock.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/task.h"

/* Milliseconds that a thread blocks signals in a handler, and in fork() and the like. */
#define MOMENTS	     3
#define LIBC_MOMENTS 200

/* The frame that the kernel writes where it does not tell: AVX-512 and a margin. */
#define FRAME_DEFAULT 4096u

/*
 * How long, in ticks, the library relies on a look at the handler of SIGTRAP: the system call
 * costs as much as the stores of a whole patch.
 */
#define CHECK_TICKS UINT64_C(1000000)

/*
 * SIGTRAP is blocked in the handler: a signal that came on top of it could not run a site. But
 * one that an instruction of ours raises cannot wait: a system call may be a sandbox's to answer.
 * Of the two signals that libc keeps to itself and in or out of a mask together, one is in it: so
 * each copy of the library knows the handler of another.
 */
#define MASK                                                                                       \
	(kernel_bit(SIGTRAP) |                                                                     \
	 ~(KERNEL_RAISED | kernel_bit(SIGKILL) | kernel_bit(SIGSTOP) | kernel_bit(33)))

/* As the kernel knows it, but without a restorer, which is libc's business. */
static struct {
	_Atomic(uintptr_t) handler;
	_Atomic(uint64_t) mask;
	_Atomic(unsigned long) flags;
} copies[2];
static _Atomic(unsigned) version; /* copies[version % 2] is valid */

/* Around changes of the disposition: the process_epoch of the holder, 0: there is none. */
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
	me = load_relaxed(&process_epoch);
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
	store_release(&locked, 0);
	kernel_mask(SIG_SETMASK, mask);
}

NOPATCH static void put_disposition(struct kernel_action now)
{
	unsigned next = atomic_load(&version) + 1;

	atomic_store(&copies[next % 2].handler, now.handler);
	atomic_store(&copies[next % 2].mask, now.mask);
	atomic_store(&copies[next % 2].flags, now.flags);
	atomic_store(&version, next);
}

NOPATCH unsigned trap_chain_get(struct kernel_action *now)
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

static struct kernel_action as_kernel(const struct sigaction *action)
{
	return (struct kernel_action){
		.handler = (uintptr_t)action->sa_handler,
		.flags = (unsigned)action->sa_flags,
		.mask = action->sa_mask.__val[0],
	};
}

static struct sigaction as_libc(const struct kernel_action *action)
{
	return (struct sigaction){
		.sa_handler = (void (*)(int))action->handler,
		.sa_flags = (int)action->flags,
		.sa_mask = { { action->mask } },
	};
}

/* With a SIGTRAP that is not ours: do what it did before us, as the kernel would. */
NOPATCH static __attribute__((noinline)) void trap_chain(int signal, siginfo_t *info, void *context)
{
	const struct guard *helper = load_acquire(&guard);
	const struct kernel_action dfl = { 0 }; /* SIG_DFL is 0 */
	bool synchronous = info->si_code > 0, first = true;
	struct kernel_action now;
	uint64_t mask;

	if (!synchronous && helper && helper->holds(info, context))
		return;
	do {
		unsigned seen = trap_chain_get(&now);

		if (!now.handler || !(now.flags & SA_RESETHAND))
			break;
		/* Of two threads only one gets the handler; the other looks again. */
		mask = lock_chain();
		first = atomic_load(&version) == seen;
		if (first)
			put_disposition(dfl);
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
	/* With the kernel's mask for it, not our handler's. sigreturn restores the thread's. */
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

NOPATCH static void trap_on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	bool served = false;
	uint64_t mask;

	/* INT3 arrives as SI_KERNEL, with rip behind it; kill() and single steps do not. */
	if (info->si_code == SI_KERNEL) {
		/* The code is read here, and a step of its change may be made. */
		uint32_t rights = pkeys_open();

		/* A patcher that looks at all threads finds this one with all signals blocked. */
		memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof(mask));
		others_keep_off(mask);
		served = trap_is_served(gregs) || probe_met((uintptr_t)gregs[REG_RIP] - 1);
		pkeys_close(rights);
	}
	if (!served)
		trap_chain(signal, info, context);
}

/* --- Taking it and giving it back ------------------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
/* The thread sanitizer wants to know of handlers, and delivers signals itself. */
static int set_action(int signal, const struct kernel_action *new, struct kernel_action *old)
{
	const struct guard *helper = atomic_load(&guard);
	guard_sigaction_fn *real = helper ? helper->sigaction : sigaction;
	struct sigaction set, was;

	if (new)
		set = as_libc(new);
	if (real(signal, new ? &set : NULL, &was) < 0)
		return -errno;
	if (old)
		*old = as_kernel(&was);
	return 0;
}
#else
/*
 * Not libc's: this is called with the lock of the chain, so with SIGTRAP blocked, and libc may be
 * under patches. It also goes past a guard, which tells the program what it wants to hear.
 */
static int set_action(int signal, const struct kernel_action *new, struct kernel_action *old)
{
	struct kernel_action set;
	int ret;

	if (new) {
		set = *new;
		set.flags |= KERNEL_RESTORER;
		set.restorer = (uintptr_t)kernel_sigreturn;
	}
	ret = (int)kernel_action(signal, new ? &set : NULL, old);
	if (ret == 0 && old)
		old->flags &= ~KERNEL_RESTORER;
	return ret;
}
#endif

/*
 * Is the kernel's handler of SIGTRAP ours, past what a guard tells the program? 1: it is, 0: not,
 * or what sigaction(2) failed with.
 */
static int trap_now(struct kernel_action *now)
{
	int ret = set_action(SIGTRAP, NULL, now);

	if (ret < 0)
		return ret;
	return (now->flags & SA_SIGINFO) && now->handler == (uintptr_t)trap_on_signal;
}

bool trap_is_ours(void)
{
	return trap_now(&(struct kernel_action){ 0 }) == 1;
}

bool trap_was_ours_lately(void)
{
	static _Atomic(uint64_t) checked; /* ticks; a race costs one check more */
	uint64_t now = __builtin_ia32_rdtsc();

	if (now - load_relaxed(&checked) < CHECK_TICKS)
		return true;
	if (!trap_is_ours())
		return false;
	store_relaxed(&checked, now);
	return true;
}

/* On top of `before`, the program's own. */
static int put_ours(const struct kernel_action *before)
{
	struct kernel_action ours = {
		.handler = (uintptr_t)trap_on_signal,
		.flags = SA_SIGINFO | SA_ONSTACK,
		.mask = MASK,
	};

	/* A SIGTRAP that is sent must not break off system calls that it did not before. */
	if ((before->flags & SA_RESTART) || before->handler == (uintptr_t)SIG_IGN)
		ours.flags |= SA_RESTART;
	return set_action(SIGTRAP, &ours, NULL);
}

int pc_set_chained_trap(const struct sigaction *new_action, struct sigaction *old_action)
{
	uint64_t mask = lock_chain();
	int ret = atomic_load(&installed) ? 0 : -ESHUTDOWN;
	struct kernel_action old, now;

	trap_chain_get(&old);
	if (ret == 0 && new_action) {
		now = as_kernel(new_action);
		put_disposition(now);
		if (trap_is_ours())
			put_ours(&now);
	}
	unlock_chain(mask);
	if (ret == 0 && old_action)
		*old_action = as_libc(&old);
	return ret;
}

int trap_install(void)
{
	/* dlsym() may allocate, which is nothing to do with signals blocked. */
	const struct guard *found = dlsym(RTLD_DEFAULT, GUARD_NAME);
	/* With the lock held: a sigaction() of the program that comes meanwhile waits. */
	uint64_t mask = lock_chain();
	struct kernel_action before;
	int ret = trap_now(&before);

	/* Of another copy in this process, as of a plugin that brings its own. */
	if (ret == 0 && before.mask == MASK)
		ret = -EEXIST;
	if (ret >= 0) {
		atomic_store(&guard, found);
		if (found)
			found->attach(pc_set_chained_trap);
	}
	if (ret == 0) {
		put_disposition(before);
		ret = put_ours(&before);
		atomic_store(&installed, ret == 0);
	}
	unlock_chain(mask);
	return ret < 0 ? ret : 0;
}

int trap_remove(void)
{
	uint64_t mask = lock_chain();
	struct kernel_action before;
	int ret = -EBUSY;

	if (trap_is_ours()) {
		trap_chain_get(&before);
		ret = set_action(SIGTRAP, &before, NULL);
	}
	if (ret == 0) {
		atomic_store(&installed, false);
		if (atomic_load(&guard))
			atomic_load(&guard)->attach(NULL);
	}
	unlock_chain(mask);
	return ret;
}

/* --- Does it get through? --------------------------------------------------------------------- */

/* What is asked for every thread. */
struct signals_look {
	struct pc_signals *report;
	int error; /* the first */
};

/* False: it could not be told of this one, which ends the list. */
static bool meet_thread(pid_t tid, void *arg)
{
	struct signals_look *look = arg;
	struct task_signals signals;
	struct task_stat stat;
	bool blocking;
	int ret;

	/* libc blocks all signals, its own too, while threads start and end, and processes. */
	for (int i = 0;; i++) {
		ret = task_signals(tid, &signals);
		blocking = ret == 0 && (signals.blocked & kernel_bit(SIGTRAP));
		if (!blocking || i >= (signals.blocked & kernel_bit(33) ? LIBC_MOMENTS : MOMENTS))
			break;
		clock_sleep(CLOCK_MS);
	}
	if (ret == 0)
		ret = task_stat(tid, &stat);
	/* Does it run code of the program, or will it again? */
	if (ret == 0 && stat.has_memory && !stat.is_kernel_thread) {
		look->report->threads++;
		if (blocking && look->report->threads_blocking++ == 0)
			look->report->first_thread = tid;
	}
	/* It has ended, or is ending, meanwhile. */
	if (ret == -ENOENT || ret == -ESRCH)
		ret = 0;
	look->error = ret;
	return ret == 0;
}

static bool is_handler(const struct kernel_action *action)
{
	return action->handler != (uintptr_t)SIG_DFL && action->handler != (uintptr_t)SIG_IGN;
}

/* The deadly first. */
static void advise_signals(struct pc_signals *report)
{
	static const char *const owners[] = {
		[PC_TRAP_OTHER] = "has another handler, installed after pc_init()",
		[PC_TRAP_DEFAULT] = "has its default action",
		[PC_TRAP_IGNORED] = "is ignored",
	};
	const size_t size = sizeof(report->advice);

	if (report->owner != PC_TRAP_OURS)
		snprintf(report->advice, size,
			 "SIGTRAP %s: call pc_init(), last, or use libpatchcore_guard",
			 owners[report->owner]);
	else if (report->threads_blocking)
		snprintf(report->advice, size,
			 "thread %d has SIGTRAP blocked: unblock it, or use libpatchcore_guard",
			 (int)report->first_thread);
	else if (report->handlers_blocking)
		snprintf(report->advice, size,
			 "the handler of signal %d runs with SIGTRAP blocked: take it out of "
			 "sa_mask if it may run patched code",
			 report->first_signal);
	else if (report->alternate_size && report->alternate_size < report->stack_need)
		snprintf(
			report->advice, size,
			"the alternate stack has %zu bytes and a signal of the library's needs %zu",
			report->alternate_size, report->stack_need);
}

int pc_check_signals(struct pc_signals *report)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	struct signals_look look = { .report = report };
	struct kernel_action now;
	stack_t stack;
	int ret;

	if (!report)
		return -EINVAL;
	ret = trap_now(&now);
	*report = (struct pc_signals){ .guarded = atomic_load(&guard) != NULL };
	if (ret < 0)
		return ret;
	if (ret == 0 && is_handler(&now))
		report->owner = PC_TRAP_OTHER;
	else if (ret == 0)
		report->owner =
			now.handler == (uintptr_t)SIG_IGN ? PC_TRAP_IGNORED : PC_TRAP_DEFAULT;
	ret = task_list(0, meet_thread, &look);
	if (ret < 0 || look.error < 0)
		return ret < 0 ? ret : look.error;
	/* That of SIGTRAP itself is the owner's business. libc keeps two of its own to itself. */
	for (int signal = 1; signal < NSIG; signal++) {
		struct kernel_action action;

		if (signal == SIGTRAP || set_action(signal, NULL, &action) < 0 ||
		    !is_handler(&action) || !(action.mask & kernel_bit(SIGTRAP)))
			continue;
		if (report->handlers_blocking++ == 0)
			report->first_signal = signal;
	}
	/* Of the larger of two handlers: each blocks the other's signal. */
	report->stack_need = frame ? frame : FRAME_DEFAULT;
	report->stack_need += TRAP_STACK > OTHERS_STACK ? TRAP_STACK : OTHERS_STACK;
	if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE))
		report->alternate_size = stack.ss_size;
	advise_signals(report);
	return report->owner != PC_TRAP_OURS || report->threads_blocking ? -EBUSY : 0;
}
