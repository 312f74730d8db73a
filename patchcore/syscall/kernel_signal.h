/* SPDX-License-Identifier: MIT */
/* Signals as the kernel has them: by system calls, past libc and past wrappers of libc. Private. */
#ifndef PATCHCORE_SYSCALL_KERNEL_SIGNAL_H
#define PATCHCORE_SYSCALL_KERNEL_SIGNAL_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#include "patchcore/syscall/sys.h"

#define KERNEL_SIGNALS	64
#define KERNEL_RESTORER 0x04000000ul /* SA_RESTORER, which libc keeps to itself */

/* kernel_bit - of a signal in a mask. */
#define kernel_bit(signal) (UINT64_C(1) << ((signal)-1))

/* Signals that code raises where it runs; they must be handled there. All others are sent. */
#define KERNEL_RAISED                                                                              \
	(kernel_bit(SIGTRAP) | kernel_bit(SIGSEGV) | kernel_bit(SIGBUS) | kernel_bit(SIGILL) |     \
	 kernel_bit(SIGFPE) | kernel_bit(SIGSYS))

struct kernel_action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

/*
 * kernel_sigreturn - the restorer for handlers that run with SIGTRAP blocked: libc's may be
 * patched. Byte for byte the same, by which unwinders know a signal frame.
 */
void kernel_sigreturn(void) __attribute__((visibility("hidden")));

/* kernel_action - as sigaction(2). 0 or a negative errno. Async-signal-safe. */
NOPATCH_INLINE long kernel_action(int signal, const struct kernel_action *new_action,
				  struct kernel_action *old_action)
{
	return sys_call(SYS_rt_sigaction, signal, new_action, old_action, sizeof(uint64_t));
}

/* kernel_mask - as sigprocmask(2). The mask as it was. Async-signal-safe. */
NOPATCH_INLINE uint64_t kernel_mask(int how, uint64_t mask)
{
	uint64_t before = 0;

	sys_call(SYS_rt_sigprocmask, how, &mask, &before, sizeof(mask));
	return before;
}

/* kernel_reads - may 8 bytes there be read? The mask is copied before how is refused. */
NOPATCH_INLINE bool kernel_reads(uintptr_t addr)
{
	return sys_call(SYS_rt_sigprocmask, -1, addr, 0, sizeof(uint64_t)) != -EFAULT;
}

#endif
