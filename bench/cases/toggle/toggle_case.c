/* SPDX-License-Identifier: MIT */
#include "bench/cases/toggle/toggle_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/method/policy.h"
#include "patchcore/machine/wait.h"

#define PAGE	    4096u
#define COLD_PAIRS  10 /* a sweep of the caches takes as long as a hundred changes */
#define FLOOR_LEAST 20 /* pairs, also where the operation is slow */

int toggle_say(char *why, const char *what, int ret)
{
	snprintf(why, BENCH_WHY, "%s: %s", what, strerror(-ret));
	return ret;
}

/* --- Policies ------------------------------------------------------------------------- */

/* Batches under policy auto may be let take the wait, whatever its bound. */
static int accept_any(struct toggle_case *c, const struct pc_status *status, char *why)
{
	if (!c->spec.any_risk)
		return 0;
	if (!status->conf_valid) {
		snprintf(why, BENCH_WHY, "there is no bound to accept: %.120s", status->reason);
		return -ENOTSUP;
	}
	return pc_set_accept_p(status->upper_p);
}

static int set_policy(struct toggle_case *c, char *why)
{
	struct pc_status status;
	int ret = pc_get_status(&status);

	if (ret < 0)
		return toggle_say(why, "pc_get_status", ret);
	c->accept_p = status.accept_p;
	ret = accept_any(c, &status, why);
	if (ret < 0 || !c->spec.has_policy)
		return ret;
	ret = pc_set_policy(c->spec.policy);
	if (ret < 0) {
		bench_policy_refused(c->spec.policy, why);
		return ret;
	}
	if (pc_get_status(&status) == 0)
		c->may_wait = status.in_use == PC_POLICY_WAIT;
	return 0;
}

static void reset_policy(struct toggle_case *c)
{
	pc_set_policy(PC_POLICY_AUTO);
	if (c->spec.any_risk)
		pc_set_accept_p(c->accept_p);
}

/* --- The operation -------------------------------------------------------------------- */

static struct hot *hot_of(const struct toggle_case *c)
{
	return c->toggle->hot;
}

static void await_executors(struct toggle_case *c, const struct toggle_site *site)
{
	if (c->spec.cold)
		toggle_chill(c->toggle, site->loop.site);
	hot_cool(hot_of(c));
}

static int begin(struct bench_case *bench, char *why)
{
	struct toggle_case *c = bench->arg;
	const struct toggle_op *op = c->spec.op;
	int ret = c->ret;

	if (ret < 0) {
		snprintf(why, BENCH_WHY, "%s", c->why);
		return ret;
	}
	ret = set_policy(c, why);
	if (ret == 0 && op->begin)
		ret = op->begin(c, why);
	if (ret < 0) {
		reset_policy(c);
		return ret;
	}
	c->executed_before = hot_count(hot_of(c)).executed;
	hot_aim(hot_of(c), &c->site.work, c->spec.executors);
	return 0;
}

static void end(struct bench_case *bench)
{
	struct toggle_case *c = bench->arg;

	hot_sleep(hot_of(c));
	c->executed += hot_count(hot_of(c)).executed - c->executed_before;
	if (c->spec.op->end)
		c->spec.op->end(c);
	reset_policy(c);
}

static int one_change(struct toggle_case *c, unsigned which, struct samples *s)
{
	const struct toggle_op *op = c->spec.op;
	double ticks;
	int ret;

	await_executors(c, &c->site);
	ret = op->change(c, which, &ticks);
	if (ret < 0)
		return ret;
	samples_add(&s[op->second ? which : 0], ticks);
	return op->settle ? op->settle(c) : 0;
}

/* Off, and on again: what stands there first stands there last. */
static int block(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;
	unsigned changes = 2 * toggle_case_pairs(&c->spec);
	int ret = 0;

	for (unsigned i = 0; i < changes && ret == 0; i++)
		ret = one_change(c, !(i % 2), s);
	return ret < 0 ? toggle_say(why, c->spec.op->name, ret) : 0;
}

static void sum_up(struct bench_case *bench, struct bench_row *row)
{
	struct toggle_case *c = bench->arg;

	if (c->spec.executors)
		bench_row_extra(row, "executed", (double)c->executed);
	if (c->spec.has_policy && c->spec.policy == PC_POLICY_AUTO)
		bench_row_extra(row, "may_wait", c->may_wait);
}

/* --- A process's ---------------------------------------------------------------------- */

static int begin_process(struct bench_case *bench, char *why)
{
	struct toggle_case *c = bench->arg;

	if (c->spec.peer->ret == 0)
		return 0;
	snprintf(why, BENCH_WHY, "%s", c->spec.peer->why);
	return -ENOTSUP;
}

static int block_process(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;
	struct peer *peer = c->spec.peer;

	return peer->toggle(peer, toggle_case_pairs(&c->spec), c->spec.executors > 0, s, why);
}

/* --- The floor ------------------------------------------------------------------------ */

static const struct toggle_site *floor_site(const struct toggle_case *c)
{
	return c->twin.word ? &c->twin : &c->site;
}

static int begin_floor(struct bench_case *bench, char *why)
{
	struct toggle_case *c = bench->arg;

	(void)why;
	hot_aim(hot_of(c), &floor_site(c)->work, c->spec.executors);
	return 0;
}

static void end_floor(struct bench_case *bench)
{
	struct toggle_case *c = bench->arg;

	hot_sleep(hot_of(c));
}

/* The value is the one that stands there; a load here would fetch the line untimed. */
static double time_floor(uint64_t *word, uint64_t same)
{
	uint64_t start = ticks_now();

	__atomic_exchange_n(word, same, __ATOMIC_SEQ_CST);
	return (double)(ticks_now() - start);
}

static unsigned floor_pairs(const struct toggle_case *c)
{
	unsigned pairs = toggle_case_pairs(&c->spec);

	return pairs < FLOOR_LEAST && !c->spec.cold ? FLOOR_LEAST : pairs;
}

static int block_floor(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;
	const struct toggle_site *site = floor_site(c);
	uint64_t same = __atomic_load_n(site->word, __ATOMIC_RELAXED);

	(void)why;
	for (unsigned i = 0; i < 2 * floor_pairs(c); i++) {
		await_executors(c, site);
		samples_add(&s[c->spec.op->second ? i % 2 : 0], time_floor(site->word, same));
	}
	return 0;
}

/* --- Building ------------------------------------------------------------------------- */

unsigned toggle_case_pairs(const struct toggle_spec *spec)
{
	if (spec->cold)
		return COLD_PAIRS;
	if (spec->batch >= TOGGLE_BATCH_MAX)
		return 2;
	if (spec->batch >= 1000)
		return 5;
	return spec->op->pairs;
}

static uint64_t *word_of(const void *addr)
{
	return (uint64_t *)((uintptr_t)addr & ~(uintptr_t)7);
}

/* The word that the site begins in; or that of the flag or the pointer. */
static uint64_t *word_of_loop(const struct loop *loop)
{
	if (loop->flag)
		return word_of((const void *)loop->flag);
	if (loop->pointer)
		return word_of((const void *)loop->pointer);
	return word_of(loop->site);
}

static int build_site(struct toggle_site *site, const struct toggle_spec *spec)
{
	struct loop_spec loop = {
		.kind = spec->op->loop,
		.target = LOOP_RETURN,
		.split = spec->split,
		.boundary = spec->page ? PAGE : 0,
	};
	int ret = loop_build(&site->loop, &loop);

	if (ret < 0)
		return ret;
	site->work = (struct hot_work){ .run = hot_loop, .arg = &site->loop };
	site->word = word_of_loop(&site->loop);
	return 0;
}

/* Both pages, where it crosses. */
static int protect(uint8_t *site)
{
	uintptr_t first = (uintptr_t)site & ~(uintptr_t)(PAGE - 1);
	uintptr_t last = ((uintptr_t)site + LOOP_SITE_BYTES - 1) & ~(uintptr_t)(PAGE - 1);

	return mprotect((void *)first, last - first + PAGE, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

static int map_site(struct toggle_case *c)
{
	uint8_t *site = c->site.loop.site;
	int ret;

	if (c->spec.mapping == TOGGLE_PROTECT)
		return protect(site);
	ret = c->spec.mapping == TOGGLE_ALIAS ? pc_text_alias(site, LOOP_SITE_BYTES)
					      : pc_text_open(site, LOOP_SITE_BYTES);
	c->opened = ret == 0;
	return ret;
}

static const char *mapping_name(const struct toggle_spec *spec)
{
	static const char *const names[] = { "open", "protect", "alias" };

	return names[spec->mapping];
}

/* Who cannot be built here is skipped later, in turn. */
static int build(struct toggle_case *c)
{
	const struct toggle_op *op = c->spec.op;
	int ret = build_site(&c->site, &c->spec);

	if (ret == 0 && c->spec.mapping != TOGGLE_OPEN)
		ret = build_site(&c->twin, &c->spec);
	if (ret < 0)
		return ret;
	if (op->loop != LOOP_SITE || op == &toggle_process)
		return 0;
	c->ret = map_site(c);
	if (c->ret < 0)
		toggle_say(c->why, mapping_name(&c->spec), c->ret);
	else if (op->build && (c->ret = op->build(c)) < 0)
		toggle_say(c->why, op->name, c->ret);
	return 0;
}

static const char *split_name(unsigned split)
{
	static const char *const names[] = { "0", "1|4", "2|3", "3|2", "4|1" };

	return names[split];
}

static const char *policy_name(enum pc_policy policy)
{
	static const char *const names[] = {
		[PC_POLICY_AUTO] = "auto",
		[PC_POLICY_WAIT] = "wait",
		[PC_POLICY_MEMBARRIER] = "membarrier",
	};

	return names[policy];
}

/* What is as in most cases is not told: mapping open, hot, across a line. */
static void name_row(struct bench_row *row, const struct toggle_spec *spec)
{
	const struct toggle_op *op = spec->op;

	bench_row_name(row, spec->peer ? spec->peer->name : op->name, op->first, "ticks");
	row->peer = op->peer;
	if (spec->batch)
		bench_row_param(row, "batch", spec->batch);
	if (spec->has_split)
		bench_row_param_text(row, "split", split_name(spec->split));
	if (spec->page)
		bench_row_param_text(row, "crossing", "page");
	if (spec->has_policy)
		bench_row_param_text(row, "policy", policy_name(spec->policy));
	if (spec->any_risk)
		bench_row_param_text(row, "risk", "any");
	if (spec->mapping != TOGGLE_OPEN)
		bench_row_param_text(row, "mapping", mapping_name(spec));
	bench_row_param(row, "executors", spec->executors);
	if (spec->cold)
		bench_row_param_text(row, "cache", "cold");
}

static void make_cases(struct toggle_case *c, struct bench_case *bench, struct bench_case *floor)
{
	*floor = (struct bench_case){
		.begin = begin_floor,
		.block = block_floor,
		.end = end_floor,
		.arg = c,
	};
	bench_row_name(&floor->row, "floor", c->spec.op->first, "ticks");
	*bench = (struct bench_case){
		.begin = c->spec.peer ? begin_process : begin,
		.block = c->spec.peer ? block_process : block,
		.end = c->spec.peer ? NULL : end,
		.sum_up = c->spec.peer ? NULL : sum_up,
		.arg = c,
		.base = floor,
		.rounds = c->spec.op->rounds,
		.second_measure = c->spec.op->second,
	};
	name_row(&bench->row, &c->spec);
}

int toggle_case_build(struct toggle_case *c, const struct toggle_spec *spec, struct toggle *toggle,
		      struct bench_case *bench, struct bench_case *floor)
{
	memset(c, 0, sizeof(*c));
	c->spec = *spec;
	c->toggle = toggle;
	make_cases(c, bench, floor);
	return build(c);
}

void toggle_case_free(struct toggle_case *c)
{
	if (c->opened)
		pc_text_close(c->site.loop.site, LOOP_SITE_BYTES);
	loop_free(&c->site.loop);
	loop_free(&c->twin.loop);
}
