/* SPDX-License-Identifier: MIT */
/*
 * An INT3 may never reach the handler: a tracer swallows it, a hypervisor turns it into something
 * else (KVM has delivered #UD in an encrypted guest), an emulator calls it by another si_code.
 * Better to learn it from one of our own.
 *
 * 1. In a child with this memory and handlers of its own: if INT3 is deadly, it is the child that
 *    dies. It is made like that of vfork(): the caller stands still meanwhile. Its end sends no
 *    signal, and no wait() sees it that does not ask for __WCLONE.
 * 2. In the process itself, because a tracer may follow this one and not the child. After 1 it is
 *    known that INT3 is SIGTRAP, for which there is a handler.
 */
#include "patchcore/sigtrap/trap.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "patchcore/syscall/kernel_signal.h"

/* The exit status of the child. */
enum {
	SEEN_TRAP = 10,
	SEEN_NOTHING,	 /* the INT3 was run, and no signal came */
	SEEN_OTHER_CODE, /* SIGTRAP, but not as the kernel sends it for INT3 */
	SEEN_OTHER_PLACE,
	SEEN_ILLEGAL,
	SEEN_FAULT,
	SEEN_NO_HANDLER, /* it could not be installed */
};

/* No libc, whose state the child shares, and no sanitizer's records. */
#define IN_CHILD NOPATCH __attribute__((no_sanitize("address", "thread", "undefined")))

extern const uint8_t probe_byte[] __attribute__((visibility("hidden")));

/* The INT3. */
IN_CHILD static __attribute__((noinline)) void probe_run(void)
{
	__asm__ volatile(".globl probe_byte; .hidden probe_byte; probe_byte: int3" : : : "memory");
}

static _Atomic(int) seen; /* what the child saw, unless its memory was its own; or the process */

NOPATCH bool probe_met(uintptr_t addr)
{
	if (addr != (uintptr_t)probe_byte)
		return false;
	atomic_store(&seen, SEEN_TRAP);
	return true;
}

/* --- In the child ---------------------------------------------------------------- */

IN_CHILD static void leave(int what)
{
	atomic_store(&seen, what);
	for (;;)
		sys_call(SYS_exit, what);
}

/* Whichever signal it was, the child ends. */
IN_CHILD static void on_signal(int signal, siginfo_t *info, void *context)
{
	uintptr_t rip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (signal == SIGILL)
		leave(SEEN_ILLEGAL);
	if (signal != SIGTRAP)
		leave(SEEN_FAULT);
	if (info->si_code != SI_KERNEL)
		leave(SEEN_OTHER_CODE);
	leave(rip == (uintptr_t)probe_byte + 1 ? SEEN_TRAP : SEEN_OTHER_PLACE);
}

/* The signals that an INT3 may come as; all others stay blocked. */
IN_CHILD static __attribute__((noinline)) void child(void)
{
	const struct kernel_action action = {
		.handler = (uintptr_t)on_signal,
		.flags = SA_SIGINFO | KERNEL_RESTORER,
		.restorer = (uintptr_t)kernel_sigreturn,
	};
	const uint64_t mask = ~(kernel_bit(SIGTRAP) | kernel_bit(SIGILL) | kernel_bit(SIGSEGV) |
				kernel_bit(SIGBUS));

	for (int signal = 1; signal <= KERNEL_SIGNALS; signal++)
		if (!(mask & kernel_bit(signal)) && kernel_action(signal, &action, NULL) < 0)
			leave(SEEN_NO_HANDLER);
	/* Not kernel_mask(): gcc 12 crashes on it in a function without sanitizers. */
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	probe_run();
	leave(SEEN_NOTHING);
}

/* --- In the process ------------------------------------------------------------- */

/*
 * Not by libc's vfork(), which sanitizers wrap. All signals are blocked: the program's handlers are
 * nothing for the child. Its calls use the stack below this frame.
 */
NOPATCH_ENTRY static int run_child(void)
{
	uint64_t mask = kernel_mask(SIG_SETMASK, ~UINT64_C(0));
	long pid, ret;
	int status = 0;

	atomic_store(&seen, 0);
	ret = pid = sys_call(SYS_clone, CLONE_VM | CLONE_VFORK);
	if (pid == 0)
		child();
	while (pid > 0 && (ret = sys_call(SYS_wait4, pid, &status, __WCLONE, NULL)) == -EINTR)
		;
	kernel_mask(SIG_SETMASK, mask);
	if (pid > 0 && atomic_load(&seen))
		return atomic_load(&seen);
	/* An emulator may have made it a child with memory of its own. */
	if (ret < 0)
		return (int)ret;
	return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

int probe_int3(char *why, size_t size)
{
	static const char *const meanings[] = {
		[SEEN_NOTHING] = "INT3 raises no SIGTRAP here: a tracer swallows it",
		[SEEN_OTHER_CODE] = "INT3 raises a SIGTRAP with a foreign si_code: an emulator?",
		[SEEN_OTHER_PLACE] = "INT3 raises SIGTRAP at another address: an emulator?",
		[SEEN_ILLEGAL] = "INT3 raises SIGILL: this hypervisor delivers it as #UD",
		[SEEN_FAULT] = "INT3 raises SIGSEGV or SIGBUS",
		[SEEN_NO_HANDLER] = "INT3 could not be tested: sigaction failed in a child",
	};
	int what = run_child();
	uint64_t mask;

	if (what == SEEN_TRAP) {
		atomic_store(&seen, 0);
		mask = kernel_mask(SIG_UNBLOCK, kernel_bit(SIGTRAP));
		probe_run();
		kernel_mask(SIG_SETMASK, mask);
		if (atomic_load(&seen))
			return 0;
		what = SEEN_NOTHING;
	}
	if (what < 0)
		snprintf(why, size, "INT3 could not be tested in a child: %s", strerror(-what));
	else
		snprintf(why, size, "%s",
			 what >= SEEN_NOTHING && what <= SEEN_NO_HANDLER
				 ? meanings[what]
				 : "INT3 ends a process in spite of its SIGTRAP handler");
	return what < 0 ? what : -ENOTSUP;
}
