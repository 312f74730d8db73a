/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others: the protocol. Private; merge_steps.h has its steps.
 */
#ifndef PATCHCORE_MERGE_MERGE_H
#define PATCHCORE_MERGE_MERGE_H

#include "patchcore/merge/merge_steps.h"

/* merge_check_old - is the old code, which was read, what it must be? 0, or -EILSEQ. */
int merge_check_old(const struct merge *merge);

/* merge_check_calls - and may a thread come back from a call to the middle of it? 0, or -EINVAL. */
int merge_check_calls(const struct merge *merge);

/*
 * merge_undisturbed - the protocol, with all signals blocked; of a merge that merge_find() has
 * looked up. 0, the errors of merge_hold(), of the checks above or of merge_look(), -ETIMEDOUT: a
 * thread stayed inside, or what membarrier failed with; then the code is as it was.
 */
int merge_undisturbed(struct merge *merge);

#endif
