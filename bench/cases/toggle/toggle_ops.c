/* SPDX-License-Identifier: MIT */
/*
 * This library's ways to make one change.
 */
#include "bench/cases/toggle/toggle_case.h"

#include <string.h>

#include "patchcore/async.h"
#include "patchcore/machine/wait.h"

int toggle_time_patch(toggle_patch_fn *patch, const struct loop *loop, unsigned which,
		      double *ticks)
{
	uint8_t bytes[8];
	uint64_t start;
	int ret;

	memcpy(bytes, loop->bytes[which ? LOOP_NOP : LOOP_CALL_0], sizeof(bytes));
	start = ticks_now();
	ret = patch(loop->site, bytes, LOOP_SITE_BYTES);
	*ticks = (double)(ticks_now() - start);
	return ret;
}

/* --- pc_patch(), pc_start_patch() ----------------------------------------------------- */

static int change_patch(struct toggle_case *c, unsigned which, double *ticks)
{
	return toggle_time_patch(pc_patch, &c->site.loop, which, ticks);
}

static int change_start(struct toggle_case *c, unsigned which, double *ticks)
{
	return toggle_time_patch(pc_start_patch, &c->site.loop, which, ticks);
}

static int drain(struct toggle_case *c)
{
	(void)c;
	return pc_drain();
}

const struct toggle_op toggle_aligned = {
	.name = "aligned",
	.first = "on",
	.second = "off",
	.loop = LOOP_SITE,
	.pairs = 100,
	.change = change_patch,
};

const struct toggle_op toggle_straddler = {
	.name = "straddler",
	.first = "on",
	.second = "off",
	.loop = LOOP_SITE,
	.pairs = 100,
	.change = change_patch,
};

const struct toggle_op toggle_start = {
	.name = "start",
	.first = "on",
	.second = "off",
	.loop = LOOP_SITE,
	.pairs = 100,
	.change = change_start,
	.settle = drain,
};

/* --- pc_call -------------------------------------------------------------------------- */

/* A displacement is in the second word where its call has a split. */
static int build_call(struct toggle_case *c)
{
	struct pc_call_info info;
	int ret = pc_call_init(&c->call, c->site.loop.site);

	if (ret == 0)
		ret = pc_call_get(&c->call, &info);
	if (ret == 0 && info.split && info.way == PC_CALL_DISPLACEMENT)
		c->site.word++;
	return ret;
}

static int change_call(struct toggle_case *c, unsigned which, double *ticks)
{
	uint64_t start = ticks_now();
	int ret = which ? pc_deactivate_call(&c->call) : pc_activate_call(&c->call, NULL);

	*ticks = (double)(ticks_now() - start);
	return ret;
}

/* The first target of its own is dear, and comes once. */
static int begin_retarget(struct toggle_case *c, char *why)
{
	int ret = pc_activate_call(&c->call, c->site.loop.target[1]);

	if (ret == 0)
		ret = pc_activate_call(&c->call, c->site.loop.target[0]);
	return ret < 0 ? toggle_say(why, "pc_activate_call", ret) : 0;
}

static int change_retarget(struct toggle_case *c, unsigned which, double *ticks)
{
	void *target = c->site.loop.target[which];
	uint64_t start = ticks_now();
	int ret = pc_activate_call(&c->call, target);

	*ticks = (double)(ticks_now() - start);
	return ret;
}

const struct toggle_op toggle_call = {
	.name = "call",
	.first = "on",
	.second = "off",
	.loop = LOOP_SITE,
	.pairs = 100,
	.build = build_call,
	.change = change_call,
};

/*
 * Beside a floor on the line of the site, also where the target has become data: a call whose
 * target is data reads it as often.
 */
const struct toggle_op toggle_retarget = {
	.name = "call",
	.first = "retarget",
	.loop = LOOP_SITE,
	.pairs = 100,
	.build = build_call,
	.begin = begin_retarget,
	.change = change_retarget,
};
