/* SPDX-License-Identifier: MIT */
/*
 * What a program's own signals mean for patching: see pc_signals(3).
 *
 * An executor that runs into the INT3 of a straddler gets SIGTRAP. If it has that blocked, the
 * kernel ends the process, and no handler can help. And if another handler has taken SIGTRAP since,
 * the library never hears of it. libpatchcore_guard (linked before libc, or in LD_PRELOAD) keeps a
 * program from both.
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
 * Looks at every thread and every handler as they are at that moment; it stops no thread. Only a
 * thread counts that has SIGTRAP blocked for 3 milliseconds: libc does so for a moment. A handler
 * that runs with SIGTRAP blocked matters only if it runs patched code, and is no reason for -EBUSY.
 *
 * 0: straddlers are safe to patch as far as this shows. -EBUSY: they are not, and the report says
 * why. -EMFILE, -ENFILE, -ENOENT, -EACCES, -ENOMEM: /proc/self/task or a file of it cannot be read.
 * Not async-signal-safe. Needs no pc_init().
 */
int pc_check_signals(struct pc_signals *report);

/*
 * pc_set_chained_trap - the program's own disposition of SIGTRAP.
 * @new_action: as for sigaction(2); NULL: leave it
 * @old_action: what it was; may be NULL
 *
 * SIGTRAP itself stays with the library. What is not an INT3 of its own it hands to this
 * disposition, as the kernel would: SIG_DFL, SIG_IGN, sa_mask, SA_SIGINFO, SA_NODEFER, SA_RESETHAND
 * and SA_RESTART count, SA_ONSTACK does not. pc_fini() gives SIGTRAP back to it. libpatchcore_guard
 * calls this for the program's sigaction(SIGTRAP). Async-signal-safe.
 */
int pc_set_chained_trap(const struct sigaction *new_action, struct sigaction *old_action);

__END_DECLS
#endif
