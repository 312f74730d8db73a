/* SPDX-License-Identifier: MIT */
/* What every way to patch does before and after. Private. */
#ifndef PATCHCORE_PATCH_PATCH_H
#define PATCHCORE_PATCH_PATCH_H

#include "patchcore/batch.h"
#include "patchcore/word/word.h"

/*
 * change_check - is that a change that can be asked for at all? 0, -EINVAL, or -EPERM: NOPATCH
 * code. change_begin - the same, and begin its span. Errors as pc_patch(), but for those that only
 * the site itself can tell.
 */
int change_check(const void *addr, const void *bytes, size_t len, unsigned starts);
int change_begin(struct change *change, void *addr, const void *bytes, size_t len, unsigned starts,
		 const struct sync *sync);

/* change_make - now; one more try if it may go better then. Ends the span. Errors as pc_patch(). */
int change_make(struct change *change, const struct sync *sync);

/*
 * change_try_again - after -EAGAIN: may it go better now? A change whose patcher is gone is taken
 * as much further as is due, so that a caller that tries again gets through in the end. An owner
 * may also have only looked for what to do.
 */
bool change_try_again(const struct change *change);

/*
 * ops_sort - in order of address. Those without an error that share a byte with another one get
 * -EINVAL.
 */
void ops_sort(struct pc_op **ops, size_t n);

#endif
