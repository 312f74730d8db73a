/* SPDX-License-Identifier: MIT */
/*
 * Turning a run of 1-byte NOPs into one instruction.
 *
 * gcc -fpatchable-function-entry=5 leaves five NOPs of one byte each: five
 * instructions. A thread may stand between any two of them, without a time limit
 * (pre-empted, stopped, in a signal handler), and would go on in the middle of
 * the new instruction. No wait and no membarrier alone helps against that, so
 * pc_patch() refuses it with -EILSEQ, and this is how to have it done.
 */
#ifndef PATCHCORE_MERGE_H
#define PATCHCORE_MERGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How it is known that no thread stands inside the run. */
enum pc_inside {
	/*
	 * The caller promises: from the beginning of the call to its end no
	 * thread, and no signal handler's interrupted code, is anywhere in the
	 * run but at its first byte, or gets there. For code that cannot run yet:
	 * before the first thread is made, or before a function's address is given
	 * to anybody. Then the change is made as by pc_patch().
	 */
	PC_NOBODY_INSIDE = 0,
	/*
	 * The library sees to it: INT3 on the first NOP, membarrier, and a look at
	 * every thread by a real-time signal that has no handler at that moment. A
	 * thread inside goes on behind the run, which is where its NOPs lead. Only
	 * what is said below is not seen. Policy wait does not apply here.
	 */
	PC_CHECK_THREADS = 1,
};

/*
 * pc_patch_merge - replace len (2 to 8) 1-byte NOPs at addr by one instruction.
 *
 * bytes is one instruction of len bytes; nothing else jumps behind the first NOP.
 * A branch to the middle of the run would afterwards lead into the middle of the
 * instruction, so there must be none. Executors need not be stopped: each runs
 * NOPs to the end of the run, or the new instruction.
 *
 * What PC_CHECK_THREADS does not see, and the caller must rule out:
 *   - code inside the run that a signal handler has interrupted and will go
 *     back to, if the handler was installed without a restorer of the kind that
 *     is in use when this is called (every C library has one for all handlers),
 *     or if there are more than 256 KiB of stack between the handler and where
 *     its thread is now. Else such a handler goes back to the end of the run;
 *   - a place inside the run kept in a context of the program's own (the context
 *     of a signal handler that was saved for later, and the like);
 *   - a child between vfork() and exec, or in posix_spawn(), that runs in the
 *     run: it shares the memory but is not a thread of the process.
 *
 * The way back, from one instruction to 1-byte NOPs, is a pc_patch() like any
 * other: it adds places to stand at, and takes none away.
 *
 * Side effects of PC_CHECK_THREADS: system calls that signal(7) lists as never
 * restarted may fail with EINTR in other threads. fork() in another thread waits
 * until the call is over. Signals of the calling thread wait as well.
 *
 * 0, or after which the code is as it was:
 *   -EINVAL     len, who, or bytes is NULL, or begins with INT3
 *   -EILSEQ     not len 1-byte NOPs at addr
 *   -EAGAIN     somebody patches there; or no real-time signal is free
 *   -ETIMEDOUT  a thread did not answer within a second: it runs with all signals
 *               blocked, sleeps without end in the kernel inside the run, or is
 *               held by a debugger
 *   -ENOTSUP    PC_CHECK_THREADS: the kernel has no membarrier SYNC_CORE; else as
 *               pc_patch()
 *   -EBUSY      somebody else has taken SIGTRAP
 *   -EFAULT, -EACCES, -ENOMEM, -ESHUTDOWN as pc_patch(); -EACCES also: there is
 *               no /proc, or process_vm_readv() is denied
 *
 * Thread-safe, not async-signal-safe. Costs two membarriers and an
 * interruption of every thread: tens of microseconds and some more per thread.
 * Source: AMD APM vol. 2, 7.6.1.
 */
int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who);

#ifdef __cplusplus
}
#endif
#endif
