/* SPDX-License-Identifier: MIT */
/*
 * Ways to change a site, or what stands for one: from on to off and back in turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/async.h"
#include "patchcore/baseline/baseline.h"
#include "stress/bench/stall.h"
#include "stress/peers/hand.h"

enum {
	STRIDE = 256,
	BYTES = STALL_BATCH * STRIDE
};

typedef int patch_fn(void *addr, const void *bytes, size_t len);

/* --- One change each ------------------------------------------------------------------------ */

static int change_by(struct stall_case *c, patch_fn *patch)
{
	const uint8_t *bytes = c->loop.bytes[c->off ? LOOP_CALL_0 : LOOP_NOP];

	return patch(c->loop.site, bytes, LOOP_SITE_BYTES);
}

static int change_patch(struct stall_case *c)
{
	return change_by(c, pc_patch);
}

static int change_hand(struct stall_case *c)
{
	return change_by(c, hand_patch);
}

static int change_stop(struct stall_case *c)
{
	return change_by(c, baseline_stop_patch);
}

static int change_ptrace(struct stall_case *c)
{
	return change_by(c, baseline_ptrace_patch);
}

static int change_call(struct stall_case *c)
{
	return c->off ? pc_activate_call(&c->call, NULL) : pc_deactivate_call(&c->call);
}

static int change_start(struct stall_case *c)
{
	int ret = change_by(c, pc_start_patch);

	if (ret == 0)
		while ((ret = pc_finish_patch(c->loop.site)) > PC_FINISHED)
			;
	return ret;
}

static int change_batch(struct stall_case *c)
{
	static const uint8_t code[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

	c->batch[0].bytes = c->loop.bytes[c->off ? LOOP_CALL_0 : LOOP_NOP];
	for (unsigned i = 1; i < STALL_BATCH; i++)
		c->batch[i].bytes = code[!c->off];
	return pc_patch_batch(c->batch, STALL_BATCH);
}

static int change_flag(struct stall_case *c)
{
	atomic_store_explicit(c->loop.flag, c->off, memory_order_seq_cst);
	return 0;
}

static int change_pointer(struct stall_case *c)
{
	atomic_store_explicit(c->loop.pointer, c->loop.target[!c->off], memory_order_seq_cst);
	return 0;
}

static void close_ptrace(void)
{
	baseline_ptrace_close();
}

/* --- Once ----------------------------------------------------------------------------------- */

static int ready_call(struct stall_case *c)
{
	return pc_call_init(&c->call, c->loop.site);
}

/*
 * Sites that nobody runs, each across a line of its own: mov eax, imm32. With lines to spare
 * between them, or the prefetchers would bring one with the other.
 */
static int ready_batch(struct stall_case *c)
{
	uint8_t *code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return -errno;
	c->batch_code = code;
	c->batch = calloc(STALL_BATCH, sizeof(*c->batch));
	if (!c->batch)
		return -ENOMEM;
	for (unsigned i = 0; i < STALL_BATCH; i++) {
		uint8_t *at = code + i * STRIDE + 64 - STALL_SPLIT;

		*at = 0xb8;
		c->batch[i] =
			(struct pc_op){ .addr = i ? at : c->loop.site, .len = LOOP_SITE_BYTES };
	}
	return pc_text_open(code, BYTES);
}

static void free_batch(struct stall_case *c)
{
	free(c->batch);
	if (c->batch_code) {
		pc_forget(c->batch_code, BYTES);
		munmap(c->batch_code, BYTES);
	}
}

/* --- The table ------------------------------------------------------------------------------ */

#define STRADDLER                                                                                  \
	{                                                                                          \
		.kind = LOOP_SITE, .target = LOOP_COUNT, .split = STALL_SPLIT                      \
	}
#define KIND(k)                                                                                    \
	{                                                                                          \
		.kind = (k), .target = LOOP_COUNT                                                  \
	}
#define BY(p) .protocol = true, .policy = (p)

static const struct stall_spec specs[] = {
	{ .name = "aligned", .loop = KIND(LOOP_SITE), .all = true, .change = change_patch },
	{ .name = "call", .loop = KIND(LOOP_SITE), .change = change_call, .ready = ready_call },
	{ .name = "call",
	  .loop = STRADDLER,
	  .all = true,
	  .change = change_call,
	  .ready = ready_call },
	{ .name = "straddler",
	  .loop = STRADDLER,
	  .all = true,
	  .change = change_patch,
	  BY(PC_POLICY_WAIT) },
	{ .name = "straddler",
	  .loop = STRADDLER,
	  .all = true,
	  .change = change_patch,
	  BY(PC_POLICY_MEMBARRIER) },
	{ .name = "start", .loop = STRADDLER, .change = change_start, BY(PC_POLICY_WAIT) },
	{ .name = "start", .loop = STRADDLER, .change = change_start, BY(PC_POLICY_MEMBARRIER) },
	{ .name = "batch",
	  .loop = STRADDLER,
	  .batch = STALL_BATCH,
	  .change = change_batch,
	  .ready = ready_batch,
	  BY(PC_POLICY_WAIT) },
	{ .name = "batch",
	  .loop = STRADDLER,
	  .batch = STALL_BATCH,
	  .change = change_batch,
	  .ready = ready_batch,
	  BY(PC_POLICY_MEMBARRIER) },
	{ .name = "flag", .peer = true, .loop = KIND(LOOP_FLAG), .change = change_flag },
	{ .name = "pointer", .peer = true, .loop = KIND(LOOP_POINTER), .change = change_pointer },
	{ .name = "hand-membarrier",
	  .peer = true,
	  .loop = STRADDLER,
	  .all = true,
	  .open = hand_open,
	  .close = hand_close,
	  .change = change_hand },
	{ .name = "stop-the-world",
	  .peer = true,
	  .loop = STRADDLER,
	  .windows = 40,
	  .change = change_stop },
	{ .name = "ptrace",
	  .peer = true,
	  .loop = STRADDLER,
	  .windows = 20,
	  .open = baseline_ptrace_open,
	  .close = close_ptrace,
	  .change = change_ptrace },
};

const struct stall_spec *stall_specs(size_t *count)
{
	*count = sizeof(specs) / sizeof(*specs);
	return specs;
}

int stall_build(struct stall_case *c, const struct stall_spec *spec)
{
	int ret = loop_build(&c->loop, &spec->loop);

	c->spec = spec;
	if (ret < 0)
		return ret;
	if (c->loop.site)
		ret = pc_text_open(c->loop.site, LOOP_SITE_BYTES);
	if (ret == 0 && spec->ready)
		ret = spec->ready(c);
	if (ret < 0)
		stall_free(c);
	return ret;
}

void stall_free(struct stall_case *c)
{
	loop_free(&c->loop);
	free_batch(c);
	c->batch = NULL;
	c->batch_code = NULL;
}
