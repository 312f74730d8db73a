/* SPDX-License-Identifier: MIT */
#include "patchcore/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "patchcore/machine/choice.h"
#include "patchcore/machine/wait.h"
#include "patchcore/patch/patch.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

struct batch {
	struct pc_op **by_addr; /* all ops, sorted */
	struct site **sites;	/* of straddlers that are held, ... */
	struct pc_op **ops;	/* ... and their ops */
	size_t n;		/* of those two */
	size_t standing;	/* the first so many have their INT3 */
	const struct sync *sync;
	const struct sync *picked[2]; /* for sites inside a page, for others; NULL: none yet */
};

static int compare_ops(const void *a, const void *b)
{
	const struct pc_op *one = *(struct pc_op *const *)a, *two = *(struct pc_op *const *)b;

	return ((uintptr_t)one->addr > (uintptr_t)two->addr) -
	       ((uintptr_t)one->addr < (uintptr_t)two->addr);
}

/* Of ops in order of address: none reaches farther than the farthest before it. */
static void refuse_overlaps(struct pc_op **by_addr, size_t n)
{
	struct pc_op *far = NULL;

	for (size_t i = 0; i < n; i++) {
		struct pc_op *op = by_addr[i];

		if (op->result < 0)
			continue;
		if (far && (uintptr_t)op->addr - (uintptr_t)far->addr < far->len) {
			far->result = -EINVAL;
			op->result = -EINVAL;
		}
		if (!far || (uintptr_t)op->addr + op->len > (uintptr_t)far->addr + far->len)
			far = op;
	}
}

/* One for all sites of a kind, so that they share it. */
static const struct sync *pick_sync(struct batch *batch, const struct pc_op *op)
{
	const struct sync *sync = word_sync(batch->sync, op->addr, op->len);
	const struct sync **picked = &batch->picked[sync == batch->sync];

	if (!*picked)
		*picked = sync_pick(sync);
	return *picked;
}

static int hold(struct batch *batch, struct pc_op *op, const struct change *change)
{
	const struct sync *sync = pick_sync(batch, op);
	struct word *word;
	int ret = word_hold(&word, change, sync);

	if (ret == -EAGAIN && change_try_again(change))
		ret = word_hold(&word, change, sync);
	if (ret < 0)
		return ret;
	batch->sites[batch->n] = word->site;
	batch->ops[batch->n++] = op;
	return 0;
}

static int begin_op(struct batch *batch, struct pc_op *op)
{
	struct change change;
	int ret = change_begin(&change, op->addr, op->bytes, op->len, 1, batch->sync);

	if (ret < 0)
		return ret;
	if (word_straddles(op->addr, op->len, batch->sync->window)) {
		ret = hold(batch, op, &change);
		if (ret == 0) {
			/* The batch as a whole is inside. */
			text_keep(&change.span);
			return 0;
		}
	} else {
		ret = word_patch(&change, batch->sync);
	}
	text_end(&change.span);
	return ret;
}

NOPATCH static void swap(struct batch *batch, size_t i, size_t j)
{
	struct site *site = batch->sites[i];
	struct pc_op *op = batch->ops[i];

	batch->sites[i] = batch->sites[j];
	batch->ops[i] = batch->ops[j];
	batch->sites[j] = site;
	batch->ops[j] = op;
}

/*
 * A site that has an INT3 already is left out, and its op says so. From the first
 * INT3 on nothing is allocated and no lock is taken: a thread that holds that lock may be
 * interrupted by a signal, and wait in the handler for us.
 */
NOPATCH static void put_int3(struct batch *batch)
{
	struct moment now = moment_now();
	size_t kept = 0;

	for (size_t i = 0; i < batch->n; i++) {
		struct word *word = &batch->sites[i]->word;

		word->asked = now;
		batch->ops[i]->result = word_put_int3(word);
		now = moment_now();
		if (batch->ops[i]->result < 0)
			continue;
		word_note_visible(word, WORD_PART_INT3, word->asked, now);
		swap(batch, kept++, i);
	}
	batch->standing = kept;
}

/*
 * The word protocol for all straddlers together:
 *
 *   0. hold all, and make their pages writable. What cannot be had is left out,
 *      and its op says why.
 *   1. all INT3
 *   2. one sync, the longest that any of them calls for, counted from the last INT3: no
 *      executor is left with any of the old fronts and without its back.
 *   3. all backs
 *   4. one sync
 *   5. all fronts
 *
 * If the first sync fails, every INT3 is taken back, and nothing was changed.
 */
NOPATCH static void make_straddlers(struct batch *batch)
{
	int ret;

	put_int3(batch);
	ret = batch->standing ? flight_complete(batch->sites, batch->standing) : 0;
	for (size_t i = 0; ret < 0 && i < batch->standing; i++)
		/* What a signal handler of this thread has completed is made. */
		if (word_undo(&batch->sites[i]->word))
			batch->ops[i]->result = ret;
}

static void end_straddlers(struct batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		if (site_state(batch->sites[i]) == WORD_UNDONE && batch->ops[i]->result == 0)
			batch->ops[i]->result = -ECANCELED;
		flight_end(batch->sites[i]);
	}
}

static int first_error(const struct pc_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i].result < 0)
			return ops[i].result;
	return 0;
}

static int make_batch(struct batch *batch, struct pc_op *ops, size_t n)
{
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < n; i++) {
		ops[i].result = change_check(ops[i].addr, ops[i].bytes, ops[i].len, 1);
		batch->by_addr[i] = &ops[i];
	}
	qsort(batch->by_addr, n, sizeof(*batch->by_addr), compare_ops);
	refuse_overlaps(batch->by_addr, n);
	for (size_t i = 0; i < n; i++)
		if (batch->by_addr[i]->result == 0)
			batch->by_addr[i]->result = begin_op(batch, batch->by_addr[i]);
	make_straddlers(batch);
	end_straddlers(batch);
	fork_leave(self);
	return 0;
}

int pc_patch_batch_by(struct pc_op *ops, size_t n, const struct pc_choice *choice)
{
	const struct sync *sync = choice_sync_of(choice);
	struct batch batch = { .sync = sync };
	int ret;

	if (!sync)
		return -ESHUTDOWN;
	if (n == 0)
		return 0;
	if (!ops)
		return -EINVAL;
	batch.by_addr = calloc(n, sizeof(*batch.by_addr));
	batch.sites = calloc(n, sizeof(*batch.sites));
	batch.ops = calloc(n, sizeof(*batch.ops));
	ret = batch.by_addr && batch.sites && batch.ops ? make_batch(&batch, ops, n) : -ENOMEM;
	for (size_t i = 0; ret < 0 && i < n; i++)
		ops[i].result = ret;
	free(batch.by_addr);
	free(batch.sites);
	free(batch.ops);
	return first_error(ops, n);
}

int pc_patch_batch(struct pc_op *ops, size_t n)
{
	return pc_patch_batch_by(ops, n, NULL);
}
