/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others, of which merging a run of 1-byte NOPs into
 * one is a special case.
 */
#include "patchcore/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "patchcore/machine/policy.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/others.h"
#include "patchcore/pages/text.h"
#include "patchcore/patch/patch.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/lock.h"

#define NEEDS_LOOK 1

/* No thread is at a start that is lost, so it is a change like any other. Ends the span. */
static int change_now(struct merge *merge, const struct sync *sync)
{
	struct text_span *span = &merge->span;
	struct change change = {
		.span = *span,
		.bytes = merge->bytes,
		.starts = (uint8_t)(merge->old_starts & merge->new_starts),
		.merges = true,
	};

	if (word_straddles(span->addr, span->len, sync->window) &&
	    word_sync(sync, span->addr, span->len)->policy != PC_POLICY_AUTO &&
	    !trap_was_ours_lately()) {
		text_end(span);
		return -EBUSY;
	}
	return change_make(&change, sync);
}

/* What needs libc is done before signals are blocked. */
static int prepare_look(struct merge *merge)
{
	int ret;

	if (choice_is_quiet() || membarrier_register() < 0)
		return -ENOTSUP;
	if (!trap_was_ours_lately())
		return -EBUSY;
	ret = others_may_look();
	if (ret == 0)
		ret = merge_find(merge);
	return ret < 0 ? ret : NEEDS_LOOK;
}

/* Made at once; or its span is begun and it waits for a look. */
static int over_begin(struct merge *merge, const struct pc_op *op, enum pc_inside who,
		      const struct sync *sync)
{
	int ret = text_begin(&merge->span, op->addr, op->len);

	if (ret < 0)
		return ret;
	merge_read(merge);
	ret = merge->old[0] == WORD_INT3 ? -EAGAIN : merge_check_old(merge);
	if (ret == 0 && (who != PC_CHECK_THREADS || !(merge->old_starts & ~merge->new_starts)))
		return change_now(merge, sync);
	if (ret == 0)
		ret = prepare_look(merge);
	if (ret < 0)
		text_end(&merge->span);
	return ret;
}

/* --- One -------------------------------------------------------------------------------------- */

/* Without starts: NOPs that are merged. */
static int over_check(struct merge *merge, const struct pc_over *over, enum pc_inside who)
{
	const struct pc_op *op = &over->op;
	int ret = change_check(op->addr, op->bytes, op->len, over->new_starts);

	if (ret < 0)
		return ret;
	*merge = (struct merge){ .bytes = op->bytes,
				 .old_starts = over->old_starts,
				 .new_starts = over->new_starts };
	if (!over->old_starts) {
		merge->move = true;
		merge->old_starts = (1u << op->len) - 1;
		if (op->len < 2 || over->new_starts != 1)
			return -EINVAL;
	}
	if (!(merge->old_starts & 1) || merge->old_starts >> op->len ||
	    (unsigned)who > PC_STARTS_KEPT)
		return -EINVAL;
	return who == PC_STARTS_KEPT && (merge->old_starts & ~merge->new_starts) ? -EINVAL : 0;
}

static int make_one(const struct pc_over *over, enum pc_inside who)
{
	const struct sync *sync = choice_sync();
	struct merge one;
	struct frames_inside inside = { .merge = &one };
	struct frames_places places = { &inside, 1 };
	int ret = over_check(&one, over, who);

	if (ret < 0)
		return ret;
	if (!sync)
		return -ESHUTDOWN;
	ret = over_begin(&one, &over->op, who, sync);
	if (ret != NEEDS_LOOK)
		return ret;
	merge_undisturbed(&places);
	text_end(&one.span);
	return one.result;
}

int pc_patch_over(void *addr, const void *bytes, size_t len, unsigned old_starts,
		  unsigned new_starts, enum pc_inside who)
{
	const struct pc_over over = { { addr, bytes, len, 0 }, old_starts, new_starts };

	return old_starts ? make_one(&over, who) : -EINVAL;
}

int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who)
{
	return make_one(&(struct pc_over){ { addr, bytes, len, 0 }, 0, 1 }, who);
}

/* --- Many ------------------------------------------------------------------------------------- */

/* What a batch takes of memory: as many of each as it has ops. */
struct over_batch {
	struct merge *merges; /* in the order of the ops */
	struct frames_inside *inside;
	struct pc_op **by_addr;
	size_t n;
};

/* Those that are moved over, or those that are waited for. */
static void look_for_some(const struct over_batch *batch, const struct pc_over *ops, bool move)
{
	struct frames_places places = { batch->inside, 0 };
	const struct pc_over *over;
	struct merge *merge;

	for (size_t i = 0; i < batch->n; i++) {
		over = (const struct pc_over *)batch->by_addr[i];
		merge = &batch->merges[over - ops];
		if (over->op.result == NEEDS_LOOK && merge->move == move)
			places.inside[places.n++].merge = merge;
	}
	if (places.n)
		merge_undisturbed(&places);
}

static void begin_all(struct over_batch *batch, struct pc_over *ops, enum pc_inside who,
		      const struct sync *sync)
{
	struct pc_over *over;

	for (size_t i = 0; i < batch->n; i++) {
		ops[i].op.result = over_check(&batch->merges[i], &ops[i], who);
		batch->by_addr[i] = &ops[i].op;
	}
	ops_sort(batch->by_addr, batch->n);
	for (size_t i = 0; i < batch->n; i++) {
		over = (struct pc_over *)batch->by_addr[i];
		if (over->op.result == 0)
			over->op.result =
				over_begin(&batch->merges[over - ops], &over->op, who, sync);
		/* The batch as a whole is inside. */
		if (over->op.result == NEEDS_LOOK)
			fork_leave(thread_here);
	}
}

static void make_batch(struct over_batch *batch, struct pc_over *ops, enum pc_inside who,
		       const struct sync *sync)
{
	batch->inside = (struct frames_inside *)(batch->merges + batch->n);
	batch->by_addr = (struct pc_op **)(batch->inside + batch->n);
	begin_all(batch, ops, who, sync);
	look_for_some(batch, ops, true);
	look_for_some(batch, ops, false);
	for (size_t i = 0; i < batch->n; i++) {
		if (ops[i].op.result != NEEDS_LOOK)
			continue;
		text_return_kept(&batch->merges[i].span);
		ops[i].op.result = batch->merges[i].result;
	}
}

int pc_patch_over_batch(struct pc_over *ops, size_t n, enum pc_inside who)
{
	const struct sync *sync = choice_sync();
	struct over_batch batch = { .n = n };
	struct thread *self;
	int ret;

	if (!sync)
		return -ESHUTDOWN;
	if (n == 0)
		return 0;
	if (!ops || (unsigned)who > PC_STARTS_KEPT)
		return -EINVAL;
	ret = choice_is_quiet() ? -ENOTSUP : fork_enter(&self);
	if (ret == 0) {
		signals_hold();
		batch.merges = calloc(n, sizeof(*batch.merges) + sizeof(*batch.inside) +
						 sizeof(*batch.by_addr));
		if (batch.merges)
			make_batch(&batch, ops, who, sync);
		else
			ret = -ENOMEM;
		free(batch.merges);
		signals_let();
		fork_leave(self);
	}
	for (size_t i = 0; ret < 0 && i < n; i++)
		ops[i].op.result = ret;
	/* Each of them may take a second. Forks and signals wait for one at most. */
	for (size_t i = 0; i < n; i++)
		if (ops[i].op.result == MERGE_PENDING)
			ops[i].op.result = make_one(&ops[i], who);
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = ops[i].op.result;
	return ret;
}
