/* SPDX-License-Identifier: MIT */
/*
 * Batches: the first site is the one that the executors run, the others are run by nobody.
 */
#include "bench/cases/toggle/toggle_case.h"

#include "patchcore/machine/wait.h"

static void fill_in(struct toggle_case *c, unsigned which)
{
	struct spare *pool = &c->toggle->pool;
	const struct loop *loop = &c->site.loop;

	spare_set(pool, c->spec.batch, which);
	pool->op[0] = (struct pc_op){ .addr = loop->site,
				      .bytes = loop->bytes[which ? LOOP_NOP : LOOP_CALL_0],
				      .len = LOOP_SITE_BYTES };
}

static int change_batch(struct toggle_case *c, unsigned which, double *ticks)
{
	uint64_t start;
	int ret;

	fill_in(c, which);
	start = ticks_now();
	ret = pc_patch_batch(c->toggle->pool.op, c->spec.batch);
	*ticks = (double)(ticks_now() - start) / c->spec.batch;
	return ret;
}

/* Another batch, of another size, may have left them otherwise. */
static int begin_batch(struct toggle_case *c, char *why)
{
	double ticks;
	int ret = change_batch(c, 0, &ticks);

	return ret < 0 ? toggle_say(why, "pc_patch_batch", ret) : 0;
}

const struct toggle_op toggle_batch = {
	.name = "batch",
	.first = "change",
	.loop = LOOP_SITE,
	.pairs = 20,
	.begin = begin_batch,
	.change = change_batch,
};
