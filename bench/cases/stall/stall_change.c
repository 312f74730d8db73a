/* SPDX-License-Identifier: MIT */
/*
 * Ways to change a site, or what stands for one: from on to off and back in turn.
 */

#include "bench/cases/stall/stall.h"
#include "bench/peers/hand.h"
#include "patchcore/async.h"
#include "patchcore/baseline/baseline.h"

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
	spare_set(&c->batch, STALL_BATCH, !c->off);
	c->batch.op[0].bytes = c->loop.bytes[c->off ? LOOP_CALL_0 : LOOP_NOP];
	return pc_patch_batch(c->batch.op, STALL_BATCH);
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

static int ready_batch(struct stall_case *c)
{
	int ret = spare_open(&c->batch, STALL_BATCH, STALL_SPLIT);

	if (ret == 0)
		c->batch.op[0].addr = c->loop.site;
	return ret;
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
	spare_close(&c->batch);
}
