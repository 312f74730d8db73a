/* SPDX-License-Identifier: MIT */
/*
 * What people use instead, as far as it is code in this process.
 *
 * Flag and pointer: the store is sequentially consistent, which gcc and clang make an XCHG. A
 * plain store would be over in a tick or two, and its value in nobody's sight until the
 * line has come: that long it stands in the store buffer. Ours return when the change is
 * visible, so that is what is timed of theirs. MOV and MFENCE wait for the same line.
 */
#include "bench/cases/toggle/toggle_case.h"

#include <stdatomic.h>

#include "bench/peers/hand.h"
#include "patchcore/baseline/baseline.h"
#include "patchcore/machine/wait.h"

/* --- Data ----------------------------------------------------------------------------- */

static int change_flag(struct toggle_case *c, unsigned which, double *ticks)
{
	_Atomic(uint8_t) *flag = c->site.loop.flag;
	uint64_t start = ticks_now();

	atomic_store_explicit(flag, !which, memory_order_seq_cst);
	*ticks = (double)(ticks_now() - start);
	return 0;
}

static int change_pointer(struct toggle_case *c, unsigned which, double *ticks)
{
	_Atomic(void *) *pointer = c->site.loop.pointer;
	void *target = c->site.loop.target[which];
	uint64_t start = ticks_now();

	atomic_store_explicit(pointer, target, memory_order_seq_cst);
	*ticks = (double)(ticks_now() - start);
	return 0;
}

const struct toggle_op toggle_flag = {
	.name = "flag",
	.first = "on",
	.second = "off",
	.peer = true,
	.loop = LOOP_FLAG,
	.pairs = 100,
	.change = change_flag,
};

const struct toggle_op toggle_pointer = {
	.name = "pointer",
	.first = "retarget",
	.peer = true,
	.loop = LOOP_POINTER,
	.pairs = 100,
	.change = change_pointer,
};

/* --- Code ----------------------------------------------------------------------------- */

static int begin_hand(struct toggle_case *c, char *why)
{
	int ret = hand_open();

	(void)c;
	return ret < 0 ? toggle_say(why, "membarrier SYNC_CORE, or SIGTRAP", ret) : 0;
}

static void end_hand(struct toggle_case *c)
{
	(void)c;
	hand_close();
}

static int change_hand(struct toggle_case *c, unsigned which, double *ticks)
{
	return toggle_time_patch(hand_patch, &c->site.loop, which, ticks);
}

static int change_stop(struct toggle_case *c, unsigned which, double *ticks)
{
	return toggle_time_patch(baseline_stop_patch, &c->site.loop, which, ticks);
}

static int begin_ptrace(struct toggle_case *c, char *why)
{
	int ret = baseline_ptrace_open();

	(void)c;
	return ret < 0 ? toggle_say(why, "ptrace", ret) : 0;
}

static void end_ptrace(struct toggle_case *c)
{
	(void)c;
	baseline_ptrace_close();
}

static int change_ptrace(struct toggle_case *c, unsigned which, double *ticks)
{
	return toggle_time_patch(baseline_ptrace_patch, &c->site.loop, which, ticks);
}

const struct toggle_op toggle_hand = {
	.name = "hand-membarrier",
	.first = "on",
	.second = "off",
	.peer = true,
	.loop = LOOP_SITE,
	.pairs = 50,
	.begin = begin_hand,
	.end = end_hand,
	.change = change_hand,
};

const struct toggle_op toggle_stop = {
	.name = "stop-the-world",
	.first = "on",
	.second = "off",
	.peer = true,
	.loop = LOOP_SITE,
	.pairs = 20,
	.change = change_stop,
};

const struct toggle_op toggle_ptrace = {
	.name = "ptrace",
	.first = "on",
	.second = "off",
	.peer = true,
	.loop = LOOP_SITE,
	.pairs = 10,
	.begin = begin_ptrace,
	.end = end_ptrace,
	.change = change_ptrace,
};

/* Its name is the peer's; the site is the floor's. */
const struct toggle_op toggle_process = {
	.name = "process",
	.first = "on",
	.second = "off",
	.peer = true,
	.loop = LOOP_SITE,
	.pairs = 25,
};
