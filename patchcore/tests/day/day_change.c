/* SPDX-License-Identifier: MIT */
/* The ways to change code, each as one action of a worker. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "patchcore/merge.h"
#include "patchcore/signals.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/day/day.h"

#define BATCH	    24u
#define FLIGHTS	    12u
#define BARE_TICKS  3000u
#define PAIR_STARTS 5u /* instructions start at bytes 0 and 2 */

/* 0 is a change, what is refused now and then is counted, and all else is wrong. */
static void count_change(struct day_worker *w, const char *what, int ret)
{
	w->seen.changes += ret >= 0;
	w->seen.refused += ret == -EAGAIN;
	/* In a child no other thread can hold the site. */
	if (ret < 0 && (ret != -EAGAIN || w->child))
		day_error(w, "%s%s: %s", what, w->child ? " in a child" : "", strerror(-ret));
}

/* A patch without a library: the back, and a little later the front. */
static void store_bare(const struct day_site *site, const uint8_t *code)
{
	volatile uint8_t *at = site->at;

	for (size_t i = site->len; i-- > 0;) {
		if (i + 1 == site->split)
			ticks_wait(BARE_TICKS);
		at[i] = code[i];
	}
}

int day_change_load(struct day_worker *w, const struct day_site *site, unsigned code)
{
	(void)w;
	if (!day_options.broken)
		return pc_patch(site->at, site->code[code], site->len);
	store_bare(site, site->code[code]);
	return 0;
}

static void act_patch(struct day_worker *w)
{
	for (unsigned i = 0; i < 8; i++) {
		const struct day_site *site = day_pick(w, DAY_LOAD);

		count_change(w, "pc_patch", day_change_load(w, site, day_below(w, 2)));
		day_run(site, 4, &w->seen);
	}
}

static void act_starts(struct day_worker *w)
{
	const struct day_site *site = day_pick(w, DAY_PAIR);

	count_change(
		w, "pc_patch_starts",
		pc_patch_starts(site->at, site->code[day_below(w, 2)], site->len, PAIR_STARTS));
	day_run(site, 4, &w->seen);
}

/* So many sites of that shape, each once. */
static unsigned pick_some(struct day_worker *w, enum day_shape shape, const struct day_site **some,
			  unsigned n)
{
	unsigned first = day_below(w, day_site_count), found = 0;

	for (unsigned i = 0; i < day_site_count && found < n; i++) {
		const struct day_site *site = &day_sites[(first + i) % day_site_count];

		if (site->shape == shape)
			some[found++] = site;
	}
	return found;
}

static void act_batch(struct day_worker *w)
{
	const struct day_site *some[BATCH];
	struct pc_op ops[BATCH];
	unsigned n = pick_some(w, DAY_LOAD, some, 1 + day_below(w, BATCH));
	int ret;

	for (unsigned i = 0; i < n; i++)
		ops[i] = (struct pc_op){ .addr = some[i]->at,
					 .bytes = some[i]->code[day_below(w, 2)],
					 .len = some[i]->len };
	ret = pc_patch_batch(ops, n);
	DAY_MUST(w, ret <= 0);
	for (unsigned i = 0; i < n; i++) {
		count_change(w, "pc_patch_batch", ops[i].result);
		day_run(some[i], 1, &w->seen);
	}
}

/* What was started is finished here, by a drain, or by a thread that comes by. */
static void act_start(struct day_worker *w)
{
	const struct day_site *some[FLIGHTS];
	unsigned n = pick_some(w, DAY_LOAD, some, 1 + day_below(w, FLIGHTS));
	unsigned how = day_below(w, 4);

	for (unsigned i = 0; i < n; i++)
		count_change(
			w, "pc_start_patch",
			pc_start_patch(some[i]->at, some[i]->code[day_below(w, 2)], some[i]->len));
	day_step(w, how == 0 ? "finish" : how == 1 ? "drain" : "run");
	for (unsigned i = 0; i < n && how == 0; i++) {
		int ret;

		while ((ret = pc_finish_patch(some[i]->at)) > 0)
			;
		DAY_MUST(w, ret == PC_FINISHED);
	}
	if (how == 1 || w->child)
		DAY_MUST(w, pc_drain() == 0);
	for (unsigned i = 0; i < n && how == 2; i++)
		day_run(some[i], 1, &w->seen);
}

static void act_drain(struct day_worker *w)
{
	DAY_MUST(w, pc_drain() == 0);
}

/* What a call tells of itself is one of the things that it may be. */
static void get_call(struct day_worker *w, const struct day_site *site)
{
	struct pc_call_info info;
	int ret = pc_call_get(&site->call, &info);

	if (ret == -EAGAIN)
		return;
	DAY_MUST(w, ret == 0 && info.len == CODE_LEN);
	DAY_MUST(w, info.target == (info.active ? info.target : NULL));
	if (info.active)
		DAY_MUST(w, info.target == day_target(0) || info.target == day_target(1));
}

static void act_call(struct day_worker *w)
{
	for (unsigned i = 0; i < 8; i++) {
		struct day_site *site = day_pick(w, DAY_CALL);
		unsigned how = day_below(w, 4);
		int ret;

		if (how == 0)
			ret = pc_deactivate_call(&site->call);
		else
			ret = pc_activate_call(&site->call, how == 1 ? NULL : day_target(how - 2));
		count_change(w, "call", ret);
		get_call(w, site);
		day_run(site, 4, &w->seen);
	}
}

/* Five NOPs become an instruction, and the other way round. */
static void act_merge(struct day_worker *w)
{
	const struct day_site *site = day_pick(w, DAY_NOPS);
	int ret;

	if (site->at[0] == site->code[1][0]) {
		ret = pc_patch(site->at, site->code[0], site->len);
		/* Another worker was first, and a third has merged it again. */
		if (ret != -EILSEQ)
			count_change(w, "pc_patch of NOPs", ret);
	} else {
		ret = pc_patch_merge(site->at, site->code[1], site->len, PC_CHECK_THREADS);
		/* Another worker was first; or a thread gave no answer, as when all are stopped. */
		w->seen.refused += ret == -ETIMEDOUT;
		if (ret != -EILSEQ && ret != -ETIMEDOUT)
			count_change(w, "pc_patch_merge", ret);
	}
	day_run(site, 4, &w->seen);
}

/* A page that the worker alone knows of. */
static void act_text(struct day_worker *w)
{
	uint8_t *at = day_straddler(w->page, day_below(w, 8));
	bool alias = day_below(w, 2);
	unsigned code = day_below(w, 2);
	int ret = alias ? pc_text_alias(w->page, CODE_PAGE) : pc_text_open(w->page, CODE_PAGE);

	w->seen.refused += ret == -EAGAIN;
	if (ret == -EAGAIN)
		return;
	if (ret < 0) {
		day_error(w, "%s: %s", alias ? "pc_text_alias" : "pc_text_open", strerror(-ret));
		return;
	}
	day_step(w, "patch");
	ret = pc_patch(at, day_load(code), CODE_LEN);
	count_change(w, "pc_patch of an open page", ret);
	DAY_MUST(w, ret == -EAGAIN || memcmp(at, day_load(code), CODE_LEN) == 0);
	day_run_load(at, 4, &w->seen);
	day_step(w, "close");
	/* A fork, or a patcher elsewhere, may take long on a machine that is busy. */
	do {
		ret = pc_text_close(w->page, CODE_PAGE);
	} while (ret == -EAGAIN || ret == -ETIMEDOUT);
	if (ret < 0)
		day_error(w, "pc_text_close: %s", strerror(-ret));
}

/* Code that is mapped, changed, forgotten and unmapped; a change may still be in flight. */
static void act_jit(struct day_worker *w)
{
	unsigned how = day_below(w, 3);
	uint8_t *page = day_map(1, how == 0 ? RWX : RX);

	if (!page) {
		day_error(w, "no memory for code");
		return;
	}
	if (how == 1)
		DAY_MUST(w, pc_text_open(page, CODE_PAGE) == 0);
	count_change(w, "pc_patch of new code",
		     pc_patch(day_straddler(page, 0), day_load(1), CODE_LEN));
	day_run_load(day_straddler(page, 0), 4, &w->seen);
	count_change(w, "pc_start_patch of new code",
		     pc_start_patch(day_straddler(page, 1), day_load(1), CODE_LEN));
	if (day_below(w, 2))
		day_run_load(day_straddler(page, 1), 1, &w->seen);
	day_step(w, "forget");
	/* A drain of another worker may be at work there. */
	while (pc_forget(page, CODE_PAGE) == -EBUSY)
		day_sleep(1);
	munmap(page, CODE_PAGE);
}

static void act_status(struct day_worker *w)
{
	struct pc_signals signals;
	struct pc_status status;
	int ret = pc_check_signals(&signals);

	/* A thread that waits in a handler of the library has SIGTRAP blocked. */
	DAY_MUST(w, ret == 0 || (ret == -EBUSY && signals.owner == PC_TRAP_OURS));
	DAY_MUST(w, pc_get_status(&status) == 0 && status.in_use == day_options.policy);
}

struct day_action day_change_actions[] = {
	{ "patch", 20, act_patch, false }, { "starts", 6, act_starts, false },
	{ "batch", 6, act_batch, false },  { "start", 10, act_start, false },
	{ "drain", 2, act_drain, false },  { "call", 16, act_call, false },
	{ "merge", 6, act_merge, false },  { "text", 4, act_text, false },
	{ "jit", 4, act_jit, false },	   { "status", 1, act_status, false },
	{ NULL, 0, NULL, false },
};

void day_change_any(struct day_worker *w)
{
	static void (*const changes[])(struct day_worker *) = {
		act_patch, act_starts, act_batch, act_start, act_call, act_text,
	};

	if (day_options.broken)
		act_patch(w);
	else
		changes[day_below(w, sizeof(changes) / sizeof(changes[0]))](w);
}

/* The pages are held writable, or are written elsewhere, and all sites are known. */
void day_change_in_handler(unsigned random, struct day_seen *seen)
{
	struct day_site *site = &day_sites[random / 8 % day_site_count];
	int ret;

	if (day_options.mapping == DAY_PROTECT || day_options.broken)
		return;
	if (site->shape == DAY_LOAD)
		ret = pc_patch(site->at, site->code[random & 1], site->len);
	else if (site->shape == DAY_CALL)
		ret = random & 1 ? pc_activate_call(&site->call, day_target(random >> 1 & 1))
				 : pc_deactivate_call(&site->call);
	else
		return;
	seen->changes += ret == 0;
	seen->refused += ret == -EAGAIN;
	if (ret < 0 && ret != -EAGAIN)
		day_error(NULL, "a change in a handler: %s", strerrorname_np(-ret));
}
