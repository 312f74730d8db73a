/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others, and a run of 1-byte NOPs by one.
 *
 * gcc -fpatchable-function-entry=5 leaves five NOPs of one byte each: five instructions. A jump of
 * five bytes that is put at the beginning of a function replaces two or three of its instructions.
 * A thread may stand between any two of them, without a time limit (pre-empted, stopped, asleep in
 * a system call, in a signal handler), and would go on in the middle of the new instruction. No
 * wait and no membarrier alone helps against that. pc_patch() cannot see it (of NOPs it can, and
 * refuses them with -EILSEQ), and this is how to have it done.
 */
#ifndef PATCHCORE_MERGE_H
#define PATCHCORE_MERGE_H

#include <stddef.h>
#include <sys/cdefs.h>

#include <patchcore/batch.h>

__BEGIN_DECLS

/* How it is known that no thread stands inside: where an instruction starts no more. */
enum pc_inside {
	/*
	 * The caller promises: from the beginning of the call to its end no thread, and no signal
	 * handler's interrupted code, is inside, or gets there. For code that cannot run yet:
	 * before the first thread is made, or before a function's address is given away. Then the
	 * change is made as by pc_patch().
	 */
	PC_NOBODY_INSIDE = 0,
	/*
	 * The library sees to it: INT3 on the first byte, membarrier, and a look at every thread by
	 * a real-time signal for which the program has no use. Of NOPs, a thread inside goes on
	 * behind them, which is where they lead; of other code it is waited for. Only what is said
	 * below is not seen. Policy wait does not apply here.
	 */
	PC_CHECK_THREADS = 1,
	/* There is no such place: every old start is a new one. Else -EINVAL. */
	PC_STARTS_KEPT = 2,
};

/*
 * pc_patch_over - replace the instructions of len (1 to 8) bytes at addr by others.
 * @old_starts: bit i: an instruction starts at addr + i in the code as it is; bit 0 is
 *              set, none beyond len. The last one may be longer than what is left of len.
 * @new_starts: the same of bytes
 *
 * Executors need not be stopped: each runs the old instructions to the end, or the new
 * ones. Old starts that are new ones too may be jumped to: an executor there may have run the
 * first old instruction and go on with the new second one, as with pc_patch_starts().
 *
 * An old start that is no new one is inside. If no start is inside, `who` makes no difference,
 * and the change is made as by pc_patch_starts(). If one is, no jump may lead to it. With
 * PC_CHECK_THREADS executors wait in the trap handler while there are threads inside; these run
 * on until they are out. A thread that sleeps in a system call inside is waited for like any
 * other, for a second; so is a signal handler that has interrupted the code. One look takes a
 * second at most, and begins when those of other callers are over; so a call takes two.
 *
 * What PC_CHECK_THREADS does not see, and the caller must rule out:
 *   - code inside that a signal handler has interrupted and will go back to, if the handler has
 *     let its own signal in (one with SA_NODEFER is seen if its action stands or an earlier
 *     change has met it), if its restorer is not in use any more and no earlier change has met
 *     it (every C library has one for all handlers), or if more than
 *     256 KiB of stack or a list of robust mutexes (set_robust_list(2)) lie between the
 *     handler's frame and where its thread is now;
 *   - a place inside kept in a context of the program's own (the context
 *     of a signal handler that was saved for later, and the like);
 *   - a child between vfork() and exec, or in posix_spawn(), that runs
 *     there: it shares the memory but is not a thread of the process.
 *
 * Side effects of PC_CHECK_THREADS: in another thread, a system call that signal(7) lists as
 * never restarted begins anew, if it is interrupted, which takes a thread that was awake a moment
 * before. It fails with EINTR where the thread is inside, or where no MOV right in front of the
 * SYSCALL tells which call it is (syscall(2), and some C libraries). fork() in another thread waits
 * until the call is over, as it does for every change. Signals of the calling thread wait as
 * well. The handler of the signal stays until pc_fini(); the next call takes another signal
 * should the program have found a use for this one.
 *
 * 0, or after which the code is as it was:
 *   -EINVAL     len, the starts, who, or bytes is NULL, or has INT3 at one of its starts; or
 *               an old CALL returns to a place inside: no look can tell which threads will
 *   -EILSEQ     the old code begins with 1-byte NOPs that are not all named in old_starts
 *   -EAGAIN     another patcher is at it; or no real-time signal is free; or another thread forks,
 *               and sleeps meanwhile
 *   -ETIMEDOUT  a thread was still inside after a second, or did not answer within one: it
 *               runs with all signals blocked, or is held inside by a debugger; or there are
 *               too many threads for a second
 *   -ENOTSUP    PC_CHECK_THREADS: the kernel has no membarrier SYNC_CORE, or the policy is
 *               PC_POLICY_QUIET; else as
 *               pc_patch()
 *   -EBUSY      another handler has taken SIGTRAP
 *   -EFAULT, -EACCES, -ENOMEM, -EPERM, -ESHUTDOWN as pc_patch(); -EACCES also: there
 *               is no /proc, or only one of another pid namespace; the process may not read the
 *               system calls of its threads, as it has changed its user or is not dumpable
 *               (prctl(2)); or process_vm_readv() is denied
 *
 * Thread-safe, not async-signal-safe. Costs two membarriers and one or more looks, which
 * interrupt the threads that do not sleep: tens of microseconds for each thread, and a fifth of a
 * millisecond in which they are seen not to. On pages that are not open (pc_text_open()) also a
 * look at the list of mappings, and mprotect(). Source: AMD APM vol. 2, 7.6.1.
 */
int pc_patch_over(void *addr, const void *bytes, size_t len, unsigned old_starts,
		  unsigned new_starts, enum pc_inside who);

/* One change of several instructions of a batch. */
struct pc_over {
	struct pc_op op;     /* addr, bytes and len as for pc_patch_over(); result is filled in */
	unsigned old_starts; /* 0: len 1-byte NOPs that become one, as by pc_patch_merge() */
	unsigned new_starts;
};

/*
 * pc_patch_over_batch - make n changes as by pc_patch_over() or pc_patch_merge(), which share the
 * looks at all threads.
 *
 * What is said there holds for each of them, and each is made or not, as its result says. From the
 * beginning of the looks to the end executors wait that run into one of them, until it is made;
 * one that threads stay inside of for 20 ms is put off, and made alone when the others are over, as
 * by a call of its own: a fork() in another thread waits for the looks, or for one of those, and
 * comes in between.
 *
 * results, beside those of these two:
 *   -EINVAL     shares a byte with another of the batch; both are refused
 *   -ETIMEDOUT  also: a thread does not answer. Then it is that of all that share the look: NOPs
 *               with 0 for old_starts have one of their own, which comes first. So a call may take
 *               a second for each of the two, and one or two for each that was put off
 *   -ENOMEM     also of all, if there is none for the batch itself
 *
 * Returns 0 if all were made, else the first of the results that is not 0 (by index). n 0 is
 * nothing to do. -EINVAL: ops is NULL, or there is no such who. -ESHUTDOWN: the results are not
 * filled in. Thread-safe, not async-signal-safe. On open pages it costs what one pc_patch_over()
 * costs, some hundred nanoseconds more for each, and as much again where NOPs are among others. On
 * others each op pays for its pages by itself: open them before.
 */
int pc_patch_over_batch(struct pc_over *ops, size_t n, enum pc_inside who);

/*
 * pc_patch_merge - replace len (2 to 8) 1-byte NOPs at addr by one instruction.
 *
 * bytes is one instruction of len bytes; nothing else jumps behind the first NOP.
 * A branch to the middle of the run would afterwards lead into the middle of the
 * instruction, so there must be none. Executors need not be stopped: each runs
 * NOPs to the end of the run, or the new instruction.
 *
 * This is pc_patch_over() with a start at every byte, but that no thread inside is waited
 * for: it goes on behind the run. So does one that a signal handler has interrupted inside.
 * All else that is said there holds here.
 *
 * The way back, from one instruction to 1-byte NOPs, is a pc_patch() like any
 * other: it adds places to stand at, and takes none away.
 *
 * Errors as pc_patch_over(); -EILSEQ: not len 1-byte NOPs at addr.
 */
int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who);

__END_DECLS
#endif
