/* SPDX-License-Identifier: MIT */
/*
 * signals: what a program's own signals mean for patching.
 *
 * An executor that runs into the INT3 of a straddler gets SIGTRAP. If it has
 * that blocked, the kernel ends the process, and no handler can help. And if
 * another handler has taken SIGTRAP since, the library never hears of it.
 *
 * libpatchcore_guard (linked before libc, or in LD_PRELOAD) keeps a program from both: it wraps the
 * functions that set handlers and masks, so that SIGTRAP is never blocked and stays with this
 * library, while the program reads back what it set. See pc_signals(3).
 *
 * An INT3 inside a restartable sequence (rseq(2)) with glibc's signature is met like any other: the
 * thread goes on at the abort handler. While the patcher is at work, an executor that waits makes
 * no system call and does not read the TSC; it makes some if that takes a million ticks, or if the
 * change was left to others.
 */
#ifndef PATCHCORE_SIGNALS_H
#define PATCHCORE_SIGNALS_H

#include <signal.h>
#include <stddef.h>
#include <sys/cdefs.h>
#include <sys/types.h>

__BEGIN_DECLS

/* Who gets a SIGTRAP of this process now. */
enum pc_trap_owner {
	PC_TRAP_OURS = 0,
	PC_TRAP_OTHER = 1, /* another handler, which may or may not pass it on */
	PC_TRAP_DEFAULT = 2,
	PC_TRAP_IGNORED = 3,
};

struct pc_signals {
	enum pc_trap_owner owner;
	int guarded;		    /* libpatchcore_guard is at work */
	unsigned threads;	    /* looked at: not those that ended meanwhile, or the kernel's */
	unsigned threads_blocking;  /* of them have SIGTRAP blocked */
	pid_t first_thread;	    /* kernel id of the first of these, 0 */
	unsigned handlers_blocking; /* signals whose handlers run with SIGTRAP blocked */
	int first_signal;	    /* number of the first of these, 0 */
	size_t stack_need;	    /* bytes that a signal of ours takes of the stack it comes on */
	size_t alternate_size;	    /* bytes of the calling thread's alternate stack, 0: none */
	char advice[256];	    /* one line: what to mend first, "" if nothing */
};

/*
 * pc_check_signals - would a thread that meets the INT3 of a straddler survive?
 * @report: filled in, also when -EBUSY is returned
 *
 * Looks at every thread (SigBlk in /proc/self/task) and every handler as they are at that moment;
 * it stops no thread. A thread counts that has SIGTRAP blocked for 3 milliseconds: libc blocks all
 * signals for a moment where threads start and end. Takes some 20 microseconds per thread, and
 * these 3 milliseconds for each that blocks. Thread-safe, not async-signal-safe. Needs no
 * pc_init(); before it the owner is simply not this library.
 *
 * Returns 0 when straddlers are safe to patch as far as this shows.
 *   -EBUSY   they are not: SIGTRAP does not come to this library, or a thread
 *            has it blocked. The report says which.
 *   -EINVAL  report is NULL
 *   -EMFILE, -ENFILE, -ENOENT, -EACCES, -ENOMEM  /proc/self/task or a file of it
 *            cannot be read
 *
 * A handler that runs with SIGTRAP blocked (sigfillset() in its sa_mask) is
 * counted and no reason for -EBUSY: it matters only if it runs patched code.
 */
int pc_check_signals(struct pc_signals *report);

/*
 * pc_set_chained_trap - the program's own disposition of SIGTRAP.
 * @new_action: as for sigaction(2); NULL: leave it
 * @old_action: what it was; may be NULL
 *
 * SIGTRAP itself stays with the library. What is not an INT3 of its own it hands to this
 * disposition, as the kernel would: SIG_DFL, SIG_IGN, sa_mask, SA_SIGINFO, SA_NODEFER, SA_RESETHAND
 * and SA_RESTART count. SA_ONSTACK does not: it is called on the stack that the library's handler
 * is on, the alternate one if there is one. pc_fini() gives SIGTRAP back to it. libpatchcore_guard
 * calls this for the program's sigaction(SIGTRAP); without the guard a program may call it itself.
 *
 * Thread-safe and async-signal-safe. On failure nothing is changed.
 *   -ESHUTDOWN  before pc_init(), or after pc_fini()
 */
int pc_set_chained_trap(const struct sigaction *new_action, struct sigaction *old_action);

__END_DECLS
#endif
