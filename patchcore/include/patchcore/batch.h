/* SPDX-License-Identifier: MIT */
/* Many changes that share their waits. */
#ifndef PATCHCORE_BATCH_H
#define PATCHCORE_BATCH_H

#include <stddef.h>
#include <sys/cdefs.h>

#include <patchcore/patchcore.h>

__BEGIN_DECLS

/* One change of a batch. */
struct pc_op {
	void *addr;	   /* as for pc_patch() */
	const void *bytes; /* as for pc_patch() */
	size_t len;	   /* 1 to 8 bytes */
	int result;	   /* filled in: 0, or a negative errno and this code is as it was */
};

/*
 * pc_patch_batch - make n changes, with one pair of waits or two membarriers for
 * all straddlers among them together.
 *
 * The changes are independent: each is made or not, its result says so, and none is left half made.
 * They become visible in no particular order, those inside the atomic window before the straddlers.
 * Until the end executors that run into one of the straddlers wait. The ops are not reordered.
 *
 * results, beside those of pc_patch():
 *   -EINVAL    shares a byte with another op of the batch; both are refused, as
 *              nothing says which should win
 *   -ENOMEM    also of all ops, if there is none for the batch itself
 *   -ENOTSUP   also of all ops, if the policy is PC_POLICY_QUIET and n above PC_QUIET_BATCH
 *
 * Returns 0 if all were made, else the first of the results that is not 0 (by index). n 0 is
 * nothing to do. -EINVAL: ops is NULL. -ESHUTDOWN: the results are not filled in. Thread-safe.
 * Paper: section 5; Linux text_poke() batches likewise.
 */
int pc_patch_batch(struct pc_op *ops, size_t n);

__END_DECLS
#endif
