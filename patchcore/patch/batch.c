/* SPDX-License-Identifier: MIT */
#include "patchcore/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/pages/text.h"
#include "patchcore/patch/patch.h"
#include "patchcore/site/fork.h"
#include "patchcore/word/flight.h"

struct batch {
	struct pc_op **ops;  /* by address; those that are held move to the front */
	struct site **sites; /* that are held */
	size_t n;	     /* of these */
	const struct sync *sync;
	const struct sync *picked[2]; /* for sites inside a page, for others; NULL: none yet */
};

static int compare_ops(const void *a, const void *b)
{
	const struct pc_op *one = *(struct pc_op *const *)a, *two = *(struct pc_op *const *)b;

	return ((uintptr_t)one->addr > (uintptr_t)two->addr) -
	       ((uintptr_t)one->addr < (uintptr_t)two->addr);
}

void ops_sort(struct pc_op **ops, size_t n)
{
	struct pc_op *op, *far = NULL;

	qsort(ops, n, sizeof(struct pc_op *), compare_ops);
	/* In order of address none may reach into the one that reaches farthest before it. */
	for (size_t i = 0; i < n; i++) {
		op = ops[i];
		if (op->result < 0)
			continue;
		if (far && (uintptr_t)op->addr - (uintptr_t)far->addr < far->len)
			far->result = op->result = -EINVAL;
		if (!far || (uintptr_t)op->addr + op->len > (uintptr_t)far->addr + far->len)
			far = op;
	}
}

/* A straddler is held, and its INT3 is yet to come; what one store changes is made at once. */
static int begin_op(struct batch *batch, struct pc_op *op)
{
	const struct sync *sync, **picked;
	struct change change;
	struct word *word;
	int ret = change_begin(&change, op->addr, op->bytes, op->len, 1, batch->sync);

	if (ret < 0)
		return ret;
	if (!word_straddles(op->addr, op->len, batch->sync->window))
		return change_make(&change, batch->sync);
	/* One sync for all sites of a kind, so that they share it. */
	sync = word_sync(batch->sync, op->addr, op->len);
	picked = &batch->picked[sync == batch->sync];
	if (!*picked)
		*picked = sync_pick(sync);
	sync = sync_within_rate(*picked);
	ret = word_hold(&word, &change, sync);
	if (ret == -EAGAIN && change_try_again(&change))
		ret = word_hold(&word, &change, sync);
	if (ret < 0) {
		text_end(&change.span);
		return ret;
	}
	batch->sites[batch->n] = word->site;
	batch->ops[batch->n++] = op;
	/* The batch as a whole is inside. */
	fork_leave(thread_here);
	return 0;
}

/*
 * The word protocol for all straddlers together:
 *
 *   0. hold all, and make their pages writable (begin_op()). What cannot be had is left out,
 *      and its op says why.
 *   1. all INT3
 *   2. to 5.: word_finish_all()
 *
 * If the first sync fails, every INT3 is taken back, and nothing was changed. From the first
 * INT3 on nothing is allocated and no lock is taken: a thread that holds that lock may be
 * an executor, and wait in the trap handler for us.
 */
NOPATCH static void make_straddlers(struct batch *batch)
{
	struct moment now;
	size_t standing = 0;
	int ret = 0;

	word_await_rest(batch->sites, batch->n);
	now = moment_now();
	for (size_t i = 0; i < batch->n; i++) {
		struct site *site = batch->sites[i];
		struct pc_op *op = batch->ops[i];

		site->word.asked = now;
		op->result = word_put_int3(&site->word);
		now = moment_now();
		/* One that has an INT3 already is left out, and its op says so. */
		if (op->result < 0)
			continue;
		word_note_visible(&site->word, WORD_PART_INT3, site->word.asked, now);
		/* Those that stand come first. */
		batch->sites[i] = batch->sites[standing];
		batch->ops[i] = batch->ops[standing];
		batch->sites[standing] = site;
		batch->ops[standing++] = op;
	}
	if (standing)
		ret = word_finish_all(batch->sites, standing);
	for (size_t i = 0; ret < 0 && i < standing; i++)
		/* What a signal handler of this thread has completed is made. */
		if (word_undo(&batch->sites[i]->word))
			batch->ops[i]->result = ret;
}

static void make_batch(struct batch *batch, struct pc_op *ops, size_t n)
{
	struct pc_op *op;

	batch->sites = (struct site **)(batch->ops + n);
	for (size_t i = 0; i < n; i++) {
		ops[i].result = change_check(ops[i].addr, ops[i].bytes, ops[i].len, 1);
		batch->ops[i] = &ops[i];
	}
	ops_sort(batch->ops, n);
	for (size_t i = 0; i < n; i++) {
		op = batch->ops[i];
		if (op->result == 0)
			op->result = begin_op(batch, op);
	}
	make_straddlers(batch);
	for (size_t i = 0; i < batch->n; i++) {
		if (site_state(batch->sites[i]) == WORD_UNDONE && batch->ops[i]->result == 0)
			batch->ops[i]->result = -ECANCELED;
		flight_end(batch->sites[i]);
	}
}

int pc_patch_batch(struct pc_op *ops, size_t n)
{
	const struct sync *sync = choice_sync();
	struct batch batch = { .sync = sync };
	/* Memory that is given back may make the kernel interrupt other CPUs. */
	bool is_few = n <= PC_QUIET_BATCH;
	void *few[2 * PC_QUIET_BATCH];
	struct thread *self;
	int ret;

	if (!sync)
		return -ESHUTDOWN;
	if (n == 0)
		return 0;
	if (!ops)
		return -EINVAL;
	ret = sync->quiet && !is_few ? -ENOTSUP : fork_enter(&self);
	if (ret == 0) {
		/* No handler runs, and no thread ends, with some of it in hand. */
		signals_hold();
		batch.ops = is_few ? (struct pc_op **)few
				   : calloc(n, sizeof(*batch.ops) + sizeof(*batch.sites));
		if (batch.ops)
			make_batch(&batch, ops, n);
		else
			ret = -ENOMEM;
		if (!is_few)
			free(batch.ops);
		signals_let();
		fork_leave(self);
	}
	for (size_t i = 0; ret < 0 && i < n; i++)
		ops[i].result = ret;
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = ops[i].result;
	return ret;
}
