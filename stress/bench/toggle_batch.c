/* SPDX-License-Identifier: MIT */
/*
 * Batches: the first site is the one that the executors run, the others are run by nobody.
 */
#include "stress/bench/toggle_case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/wait.h"

/* Lines to spare between two sites, or the prefetchers would bring one with the other. */
enum {
	LINE = 64,
	STRIDE = 256,
	BYTES = TOGGLE_BATCH_MAX * STRIDE
};

/* mov eax, imm32 */
static const uint8_t codes[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

int toggle_pool_open(struct toggle_pool *pool)
{
	uint8_t *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	pool->map = map;
	pool->op = calloc(TOGGLE_BATCH_MAX, sizeof(*pool->op));
	if (!pool->op)
		return -ENOMEM;
	for (unsigned i = 0; i < TOGGLE_BATCH_MAX; i++) {
		uint8_t *at = map + i * STRIDE + LINE - TOGGLE_SPLIT;

		memcpy(at, codes[0], LOOP_SITE_BYTES);
		pool->op[i] = (struct pc_op){ .addr = at, .len = LOOP_SITE_BYTES };
	}
	return pc_text_open(map, BYTES);
}

void toggle_pool_close(struct toggle_pool *pool)
{
	if (pool->map) {
		pc_text_close(pool->map, BYTES);
		pc_forget(pool->map, BYTES);
		munmap(pool->map, BYTES);
	}
	free(pool->op);
	*pool = (struct toggle_pool){ 0 };
}

static void fill_in(struct toggle_case *c, unsigned which)
{
	struct pc_op *op = c->toggle->pool.op;
	const struct loop *loop = &c->site.loop;

	for (unsigned i = 1; i < c->spec.batch; i++)
		op[i].bytes = codes[which];
	op[0] = (struct pc_op){ .addr = loop->site,
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
