/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others, of which merging a run of 1-byte NOPs into
 * one is a special case.
 */
#include "patchcore/merge.h"

#include <errno.h>

#include "patchcore/machine/policy.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/patch/patch.h"
#include "patchcore/site/lock.h"
#include "patchcore/text/text.h"
#include "patchcore/trap/trap.h"

static int merge_span(struct merge *merge, void *addr, size_t len, enum pc_inside who)
{
	const struct sync *sync = choice_sync();
	struct change change;
	int ret, cancel;

	if (!sync)
		return -ESHUTDOWN;
	ret = text_begin(&merge->span, addr, len);
	if (ret < 0)
		return ret;
	merge_read(merge);
	ret = merge->old[0] == WORD_INT3 ? -EAGAIN : merge_check_old(merge);
	if (ret == 0 && who == PC_CHECK_THREADS && (merge->old_starts & ~merge->new_starts)) {
		/* What needs libc is done before signals are blocked. */
		ret = merge_check_calls(merge);
		if (ret == 0 && membarrier_register() < 0)
			ret = -ENOTSUP;
		else if (ret == 0 && !trap_was_ours_lately())
			ret = -EBUSY;
		if (ret == 0)
			ret = merge_find(merge);
		if (ret == 0) {
			cancel = cancel_hold();
			ret = merge_undisturbed(merge);
			cancel_let(cancel);
		}
	} else if (ret == 0) {
		/* No thread is at a start that is lost, so it is a change like any other. */
		change = (struct change){
			.span = merge->span,
			.bytes = merge->bytes,
			.starts = (uint8_t)(merge->old_starts & merge->new_starts),
			.merges = true,
		};
		if (word_straddles(addr, len, sync->window)) {
			if (word_sync(sync, addr, len)->policy == PC_POLICY_AUTO)
				ret = -ENOTSUP;
			else if (!trap_was_ours_lately())
				ret = -EBUSY;
		}
		if (ret == 0)
			return change_make(&change, sync);
	}
	text_end(&merge->span);
	return ret;
}

int pc_patch_over(void *addr, const void *bytes, size_t len, unsigned old_starts,
		  unsigned new_starts, enum pc_inside who)
{
	struct merge over = { .bytes = bytes, .old_starts = old_starts, .new_starts = new_starts };
	int ret = change_check(addr, bytes, len, new_starts);

	if (ret < 0)
		return ret;
	if (!(old_starts & 1) || old_starts >> len)
		return -EINVAL;
	if (who != PC_NOBODY_INSIDE && who != PC_CHECK_THREADS &&
	    !(who == PC_STARTS_KEPT && !(old_starts & ~new_starts)))
		return -EINVAL;
	return merge_span(&over, addr, len, who);
}

int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who)
{
	struct merge nops = { .bytes = bytes, .new_starts = 1, .move = true };
	int ret = change_check(addr, bytes, len, 1);

	if (ret < 0)
		return ret;
	if (len < 2 || (who != PC_NOBODY_INSIDE && who != PC_CHECK_THREADS))
		return -EINVAL;
	nops.old_starts = (1u << len) - 1;
	return merge_span(&nops, addr, len, who);
}
