/* SPDX-License-Identifier: MIT */
#include "patchcore/merge/merge.h"

#include <errno.h>
#include <signal.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/machine/sync.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/merge/others.h"

/* How long to wait before looking again for threads that were inside. */
#define PAUSE_MIN (CLOCK_MS / 20)
#define PAUSE_MAX (10 * CLOCK_MS)

/*
 * Until none is inside. Those that are not moved out go on, and are looked at again.
 *
 * A thread that is made meanwhile is not looked at, since it begins elsewhere. If a system call
 * inside has made it, the next look finds it.
 */
NOPATCH static int wait_until_empty(const struct merge *merge)
{
	bool makes_threads = merge_makes_threads(merge->old, merge->span.len, merge->old_starts);
	int64_t deadline = clock_ns() + OTHERS_MS * CLOCK_MS, pause = PAUSE_MIN;
	int found, clean = 0;

	for (;;) {
		found = merge_look(merge);
		if (found < 0)
			return found;
		clean = found ? 0 : clean + 1;
		if (clean == 1 + makes_threads)
			return 0;
		if (found == 0)
			continue;
		if (clock_ns() > deadline)
			return -ETIMEDOUT;
		clock_sleep(pause);
		pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
	}
}

/*
 * For code that is held: O P Q are its old instructions, n is the new one, 3 is INT3.
 *
 *   1. 3o PP QQ    An executor that comes from now on traps and waits in the handler. One
 *                  that is inside already runs to the end.
 *   2. membarrier  None has the first byte fetched any more, so none gets in:
 *                  the only way is over the first byte.
 *   3. look        Those inside leave by themselves, but there is no telling when:
 *                  one may be pre-empted or stopped. So every thread is interrupted. If
 *                  the old code is NOPs, one that is inside is moved to the end, where they
 *                  would have led. Else it goes on, and all are looked at again, until
 *                  none is inside. Each is looked at after step 2, so it does not get in
 *                  again. Threads that begin meanwhile begin elsewhere.
 *   4. 3n nn nn    The rest, byte by byte. No thread is there, and one that comes traps.
 *   5. membarrier  None has old bytes of the rest fetched any more, ahead of an INT3 that
 *                  it has not yet seen.
 *   6. nn nn nn    The first byte: from here on it is the new code.
 *
 * No INT3 is needed on P and Q: it would catch only those inside that run,
 * and these leave anyway; the look is for those that do not. If P starts a new instruction
 * too, it is a door like the first byte: executors may come there by a jump, or have come
 * from O. It gets its INT3 in step 1 and its byte in step 6.
 *
 * If step 2 or 3 fails, the doors get their old bytes again: nothing else was
 * changed. (A thread that was moved has missed some NOPs.) After step 4 there is no way back;
 * but membarrier has just worked, and can then only fail for want of memory, or because
 * it was forbidden since.
 */
NOPATCH static int protocol(struct merge *merge)
{
	int ret;

	merge_put_int3(merge);
	ret = membarrier_sync();
	if (ret == 0)
		ret = wait_until_empty(merge);
	if (ret < 0) {
		merge_undo(merge);
		return ret;
	}
	merge_put_rest(merge);
	membarrier_sync_surely();
	merge_put_doors(merge);
	site_count_change(merge->sites[0]);
	return 0;
}

/* Where a thread is moved over NOPs, there must be NOPs. */
NOPATCH int merge_check_old(const struct merge *merge)
{
	size_t len = merge->span.len;

	if (merge->move)
		return merge_nops(merge->old, len) == len ? 0 : -EILSEQ;
	return merge_denies_nops(merge->old, len, merge->old_starts) ? -EILSEQ : 0;
}

NOPATCH int merge_check_calls(const struct merge *merge)
{
	return merge_returns_inside(merge->old, merge->span.len, merge->old_starts,
				    merge->new_starts)
		       ? -EINVAL
		       : 0;
}

/* Looked at again now that it is held: another patcher may have been faster. */
NOPATCH static int merge_held(struct merge *merge)
{
	int ret = merge_hold(merge);

	if (ret < 0)
		return ret;
	ret = merge_check_old(merge);
	if (ret == 0)
		ret = merge_check_calls(merge);
	if (ret == 0)
		ret = protocol(merge);
	merge_release(merge);
	return ret;
}

/*
 * Without signals, as one of this thread's handlers might run into the code and
 * wait for the very thread that it has interrupted.
 */
NOPATCH_ENTRY int merge_undisturbed(struct merge *merge)
{
	uint64_t before = kernel_mask(SIG_SETMASK, ~UINT64_C(0));
	int ret;

	others_keep_off(before);
	ret = merge_held(merge);
	kernel_mask(SIG_SETMASK, before);
	return ret;
}
