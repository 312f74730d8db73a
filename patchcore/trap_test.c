/* SPDX-License-Identifier: MIT */
/*
 * An INT3 may never reach the handler: a tracer swallows it, a hypervisor turns
 * it into something else (KVM has delivered #UD in an encrypted guest), an
 * emulator calls it by another si_code. Better to learn it from one of our own.
 *
 * 1. In a child with this memory and handlers of its own: if INT3 is deadly, it
 *    is the child that dies. It is made like that of vfork(): the caller stands
 *    still meanwhile. Its end sends no signal, and nobody's wait() sees it who
 *    does not ask for __WCLONE.
 * 2. In the process itself, because a tracer may follow this one and not the
 *    child. After 1 it is known that INT3 is SIGTRAP, for which there is a handler.
 */
#include "patchcore/trap_test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHILD_STACK (128u << 10)

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

/*
 * The INT3, as a function; and the way back from the handler, byte for byte as
 * in libc, by which unwinders know a signal frame.
 */
extern const uint8_t trap_test_int3[] __attribute__((visibility("hidden")));
void trap_test_run(void) __attribute__((visibility("hidden")));
void trap_test_return(void) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
	".globl trap_test_run, trap_test_int3, trap_test_return\n"
	".hidden trap_test_run, trap_test_int3, trap_test_return\n"
	".type trap_test_run, @function\n"
	".type trap_test_return, @function\n"
	"trap_test_run:\n"
	"	endbr64\n"
	"trap_test_int3:\n"
	"	int3\n"
	"	ret\n"
	".size trap_test_run, . - trap_test_run\n"
	"trap_test_return:\n"
	"	movq $15, %rax\n" /* rt_sigreturn */
	"	syscall\n"
	".size trap_test_return, . - trap_test_return\n"
	".popsection\n");

static _Atomic(int) seen; /* what the child saw, unless its memory was its own */
static _Atomic(bool) met;

bool trap_test_met(uintptr_t addr)
{
	if (addr != (uintptr_t)trap_test_int3)
		return false;
	atomic_store(&met, true);
	return true;
}

/* --- In the child: no libc, whose state it shares, and no sanitizer's records --- */

#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

IN_CHILD static int classify(int signal, const siginfo_t *info, uintptr_t rip)
{
	if (signal == SIGILL)
		return SEEN_ILLEGAL;
	if (signal != SIGTRAP)
		return SEEN_FAULT;
	if (info->si_code != SI_KERNEL)
		return SEEN_OTHER_CODE;
	return rip == (uintptr_t)trap_test_int3 + 1 ? SEEN_TRAP : SEEN_OTHER_PLACE;
}

/* Whatever it was, the child goes no further. */
IN_CHILD static void leave(int what)
{
	atomic_store(&seen, what);
	for (;;)
		syscall(SYS_exit, what);
}

IN_CHILD static void on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t rip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	leave(classify(signal, info, (uintptr_t)rip));
}

/* What the kernel takes; libc's sigaction() may be wrapped. */
struct kernel_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

IN_CHILD static bool handle(int signal)
{
	const struct kernel_sigaction action = {
		.handler = on_signal,
		.flags = SA_SIGINFO | 0x04000000, /* SA_RESTORER */
		.restorer = trap_test_return,
	};

	return syscall(SYS_rt_sigaction, signal, &action, NULL, sizeof(action.mask)) == 0;
}

/* The signals that an INT3 may come as; all others stay blocked. */
IN_CHILD static void child(void)
{
	const uint64_t mask = ~(UINT64_C(1) << (SIGTRAP - 1) | UINT64_C(1) << (SIGILL - 1) |
				UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1));

	if (!handle(SIGTRAP) || !handle(SIGILL) || !handle(SIGSEGV) || !handle(SIGBUS))
		leave(SEEN_NO_HANDLER);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	trap_test_run();
	leave(SEEN_NOTHING);
}

/* --- In the process ------------------------------------------------------------- */

static int wait_for(int pid)
{
	int status = 0;
	long ret;

	do {
		ret = syscall(SYS_wait4, pid, &status, __WCLONE, NULL);
	} while (ret < 0 && errno == EINTR);
	if (atomic_load(&seen))
		return atomic_load(&seen);
	/* An emulator may have made it a child with memory of its own. */
	if (ret < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

/*
 * Not by libc's clone(), which sanitizers wrap and take for a fork(). Returns the
 * process id, or a negative errno.
 */
static int make_child(void *stack_end)
{
	register long no_tid __asm__("r10") = 0;
	register long no_tls __asm__("r8") = 0;
	long ret = SYS_clone;

	__asm__ volatile("	syscall\n"
			 "	testq %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	xorl %%ebp, %%ebp\n"
			 "	call *%[child]\n"
			 "	ud2\n"
			 "1:\n"
			 : "+a"(ret)
			 : [child] "b"(child), "D"((long)(CLONE_VM | CLONE_VFORK)), "S"(stack_end),
			   "d"(0L), "r"(no_tid), "r"(no_tls)
			 : "rcx", "r11", "memory", "cc");
	return (int)ret;
}

/* All signals blocked: the program's handlers are nothing for the child. */
static int run_child(void *stack)
{
	const uint64_t all = ~UINT64_C(0);
	uint64_t mask = 0;
	int pid, ret;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	atomic_store(&seen, 0);
	pid = make_child((char *)stack + CHILD_STACK);
	ret = pid < 0 ? pid : wait_for(pid);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	return ret;
}

static int see_in_child(void)
{
	void *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int ret;

	if (stack == MAP_FAILED)
		return -errno;
	ret = run_child(stack);
	munmap(stack, CHILD_STACK);
	return ret;
}

static int see_here(void)
{
	const uint64_t trap = UINT64_C(1) << (SIGTRAP - 1);
	uint64_t mask = 0;

	atomic_store(&met, false);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, &mask, sizeof(trap));
	trap_test_run();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	return atomic_load(&met) ? SEEN_TRAP : SEEN_NOTHING;
}

static const char *meaning(int what)
{
	switch (what) {
	case SEEN_NOTHING:
		return "INT3 raises no SIGTRAP here: a tracer swallows it";
	case SEEN_OTHER_CODE:
		return "INT3 raises a SIGTRAP with a foreign si_code: an emulator?";
	case SEEN_OTHER_PLACE:
		return "INT3 raises SIGTRAP at another address: an emulator?";
	case SEEN_ILLEGAL:
		return "INT3 raises SIGILL: this hypervisor delivers it as #UD";
	case SEEN_FAULT:
		return "INT3 raises SIGSEGV or SIGBUS";
	case SEEN_NO_HANDLER:
		return "INT3 could not be tested: sigaction failed in a child";
	default:
		return "INT3 ends a process in spite of its SIGTRAP handler";
	}
}

int trap_self_test(char *why, size_t size)
{
	int what = see_in_child();

	if (what == SEEN_TRAP)
		what = see_here();
	if (what == SEEN_TRAP)
		return 0;
	if (what < 0)
		snprintf(why, size, "INT3 could not be tested in a child: %s", strerror(-what));
	else
		snprintf(why, size, "%s", meaning(what));
	return what < 0 ? what : -ENOTSUP;
}
