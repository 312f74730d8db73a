/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others, and a run of 1-byte NOPs by one.
 *
 * A thread may stand between any two of them, without a time limit (pre-empted, asleep in a system
 * call, in a signal handler), and would go on in the middle of the new instruction. No wait and no
 * membarrier alone helps against that. See pc_merge(3), also for what PC_CHECK_THREADS does not see
 * and the caller must rule out.
 */
#ifndef PATCHCORE_MERGE_H
#define PATCHCORE_MERGE_H

#include <stddef.h>
#include <sys/cdefs.h>

#include <patchcore/batch.h>

__BEGIN_DECLS

/* How it is known that no thread stands inside: where an instruction starts no more. */
enum pc_inside {
	/* The caller promises: no thread, and no handler's interrupted code, is, or gets there. */
	PC_NOBODY_INSIDE = 0,
	/* The library sees to it: INT3, membarrier, and a look at every thread by a signal. */
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
 * Executors need not be stopped: each runs the old instructions to the end, or the new ones. Old
 * starts that are new ones too may be jumped to: an executor there may have run the first old
 * instruction and go on with the new second one, as with pc_patch_starts().
 *
 * An old start that is no new one is inside, and no jump may lead to it. If no start is inside,
 * `who` makes no difference. With PC_CHECK_THREADS executors wait in the trap handler while there
 * are threads inside: of NOPs, these go on behind the run, of other code they are waited for, for a
 * second. In another thread, a system call that signal(7) lists as never restarted may fail with
 * EINTR.
 *
 * Thread-safe, not async-signal-safe. -ETIMEDOUT: a thread was still inside after a second, or did
 * not answer within one. -EAGAIN also: no real-time signal is free. -EINVAL also: an old CALL
 * returns to a place inside. -EILSEQ: not all 1-byte NOPs that the old code begins with are named
 * in old_starts. -EACCES also: /proc does not tell of the threads. Else as pc_patch(). Source: AMD
 * APM vol. 2, 7.6.1.
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
 * Each is made or not, as its result says. Executors wait from the beginning of the looks until the
 * one that they run into is made; one that threads stay inside of for 20 ms is put off, and made
 * alone when the others are over. Two that share a byte are both refused: -EINVAL.
 *
 * Returns 0 if all were made, else the first of the results that is not 0 (by index). -ESHUTDOWN:
 * the results are not filled in. Not async-signal-safe. Open the pages before: else each op pays
 * for its own.
 */
int pc_patch_over_batch(struct pc_over *ops, size_t n, enum pc_inside who);

/*
 * pc_patch_merge - replace len (2 to 8) 1-byte NOPs at addr by one instruction.
 *
 * This is pc_patch_over() with a start at every byte, but that no thread inside is waited for: it
 * goes on behind the run. The way back is a pc_patch() like any other: it takes no place to stand
 * at away. -EILSEQ: not len 1-byte NOPs at addr.
 */
int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who);

__END_DECLS
#endif
