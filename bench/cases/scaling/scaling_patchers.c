/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/scaling/scaling.h"
#include "bench/method/crew.h"
#include "bench/method/hot.h"
#include "bench/method/policy.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"
#include "stress/base/clock.h"

#define SPLIT	      3 /* of the straddler */
#define LOOK_EVERY    8 /* changes between two looks at the clock */
#define SLICE	      0.004
#define SLICES	      2
#define SHARED_SLICE  5 /* times as long where threads share CPUs */
#define SHARED_ROUNDS 8

enum op {
	OP_CALL,
	OP_ALIGNED,
	OP_STRADDLER,
	OPS
};

/* One patcher, and all that it alone writes. */
struct patcher {
	struct loop loop[OPS];
	struct pc_call call;
	unsigned to; /* code to put next */
	uint64_t changes, refused;
	double seconds;
	int ret;
} __attribute__((aligned(128)));

struct gang {
	struct hot *hot;
	struct crew *crew;
	struct seating seating; /* executors: also those that share a CPU */
	unsigned patchers;	/* at most */
	double slice;		/* seconds */
	struct patcher *patcher;
};

struct mix_case {
	struct gang *gang;
	struct scaling_mix mix;
	enum op op;
	enum pc_policy policy;
	bool against_one; /* is the baseline a single patcher? */
	struct hot_work work;
	uint64_t changes, refused;
};

/* --- One patcher ------------------------------------------------------------------------------ */

static int change(struct patcher *site, enum op op, unsigned to)
{
	struct loop *loop = &site->loop[op];

	if (op == OP_CALL)
		return to == LOOP_NOP ? pc_deactivate_call(&site->call)
				      : pc_activate_call(&site->call, NULL);
	return pc_patch(loop->site, loop->bytes[to], LOOP_SITE_BYTES);
}

/* A refused one is tried again: the next code stays the same. */
static void toggle(struct patcher *me, struct patcher *site, enum op op)
{
	int ret = change(site, op, me->to);

	if (ret == 0) {
		me->changes++;
		me->to = me->to == LOOP_NOP ? LOOP_CALL_0 : LOOP_NOP;
	} else if (ret == -EAGAIN) {
		me->refused++;
	} else {
		me->ret = ret;
	}
}

static void patch_for_a_slice(void *arg, unsigned member)
{
	const struct mix_case *mc = arg;
	struct patcher *me = &mc->gang->patcher[member];
	struct patcher *site = mc->mix.one_site ? &mc->gang->patcher[0] : me;
	double slice = mc->gang->slice * (mc->mix.shared ? SHARED_SLICE : 1);
	double begin = seconds_now();

	me->changes = me->refused = 0;
	me->ret = 0;
	do {
		for (unsigned i = 0; i < LOOK_EVERY; i++)
			toggle(me, site, mc->op);
		me->seconds = seconds_now() - begin;
	} while (me->ret == 0 && me->seconds < slice);
}

/* --- One block ----------------------------------------------------------------------------------
 */

/* Executors are dealt out to the sites in turn. */
static void run_a_site(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct mix_case *mc = work->arg;
	unsigned sites = mc->mix.one_site ? 1 : mc->mix.patchers;
	const struct hot_work loop = {
		.arg = &mc->gang->patcher[executor % sites].loop[mc->op],
	};

	hot_loop(&loop, executor, counts);
}

/* Changes per second of all together. */
static int one_slice(struct mix_case *mc, double *rate)
{
	struct gang *gang = mc->gang;

	*rate = 0;
	crew_run(gang->crew, mc->mix.patchers, patch_for_a_slice, mc);
	for (unsigned i = 0; i < mc->mix.patchers; i++) {
		const struct patcher *p = &gang->patcher[i];

		if (p->ret < 0)
			return p->ret;
		*rate += (double)p->changes / p->seconds;
		mc->changes += p->changes;
		mc->refused += p->refused;
	}
	return 0;
}

static int block(struct bench_case *c, struct samples *s, char *why)
{
	struct mix_case *mc = c->arg;

	for (unsigned i = 0; i < (mc->mix.shared ? 1 : SLICES); i++) {
		double rate;
		int ret = one_slice(mc, &rate);

		if (ret < 0) {
			snprintf(why, BENCH_WHY, "a change failed: %s", strerror(-ret));
			return ret;
		}
		samples_add(&s[0], rate);
	}
	return 0;
}

static int begin(struct bench_case *c, char *why)
{
	struct mix_case *mc = c->arg;
	int ret = bench_set_policy(mc->policy, why);

	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < mc->mix.patchers; i++)
		mc->gang->patcher[i].to = LOOP_NOP;
	hot_aim(mc->gang->hot, &mc->work, mc->mix.executors);
	return 0;
}

/* All sites are calls again, as begin() expects. */
static void end(struct bench_case *c)
{
	struct mix_case *mc = c->arg;

	hot_sleep(mc->gang->hot);
	for (unsigned i = 0; i < mc->mix.patchers; i++)
		change(&mc->gang->patcher[i], mc->op, LOOP_CALL_0);
	pc_set_policy(PC_POLICY_AUTO);
}

static void sum_up(struct bench_case *c, struct bench_row *row)
{
	const struct mix_case *mc = c->arg;
	double attempts = (double)(mc->changes + mc->refused);

	bench_row_extra(row, "per_patcher", row->value.median / mc->mix.patchers);
	/* With executors, each site of many has fewer of them than the one of a single patcher. */
	if (mc->against_one && !mc->mix.executors)
		bench_row_extra(row, "efficiency", row->ratio.median / mc->mix.patchers);
	if (mc->mix.one_site && attempts > 0)
		bench_row_extra(row, "refused", (double)mc->refused / attempts);
}

/* --- Which are measured ----------------------------------------------------------------------- */

static const struct {
	const char *name, *policy_text;
	enum op op;
	enum pc_policy policy;
} ops[] = {
	{ "call", NULL, OP_CALL, PC_POLICY_AUTO },
	{ "aligned", NULL, OP_ALIGNED, PC_POLICY_AUTO },
	{ "straddler", "wait", OP_STRADDLER, PC_POLICY_WAIT },
	{ "straddler", "membarrier", OP_STRADDLER, PC_POLICY_MEMBARRIER },
};

#define OPS_ALL (sizeof(ops) / sizeof(*ops))

static struct bench_case a_case(struct mix_case *mc, struct gang *gang, size_t op,
				struct scaling_mix mix)
{
	*mc = (struct mix_case){
		.gang = gang,
		.mix = mix,
		.op = ops[op].op,
		.policy = ops[op].policy,
		.work = { run_a_site, mc },
	};
	return (struct bench_case){ .begin = begin, .block = block, .end = end, .arg = mc };
}

static struct bench_case row_case(struct mix_case *mc, struct gang *gang, size_t op,
				  struct scaling_mix mix)
{
	struct bench_case c = a_case(mc, gang, op, mix);

	c.sum_up = sum_up;
	c.rounds = mix.shared ? SHARED_ROUNDS : 0;
	bench_row_name(&c.row, ops[op].name, "changes", "changes/s");
	if (ops[op].policy_text)
		bench_row_param_text(&c.row, "policy", ops[op].policy_text);
	bench_row_param(&c.row, "patchers", mix.patchers);
	bench_row_param(&c.row, "executors", mix.executors);
	if (mix.one_site)
		bench_row_param(&c.row, "one-site", 1);
	if (mix.shared)
		bench_row_param(&c.row, "oversubscribed", 1);
	return c;
}

static void add_base(struct bench_case *c, struct bench_case *base, struct mix_case *base_arg,
		     size_t op)
{
	struct mix_case *mc = c->arg;
	struct scaling_mix mix;
	const char *name = scaling_base(mc->mix, &mix);

	if (!name)
		return;
	*base = a_case(base_arg, mc->gang, op, mix);
	bench_row_name(&base->row, name, "changes", "changes/s");
	c->base = base;
	mc->against_one = strcmp(name, "one-patcher") == 0;
}

static int measure(const struct bench_run *run, struct gang *gang, const struct scaling_mix *mixes,
		   unsigned count, struct bench_result *result)
{
	size_t all = count * OPS_ALL;
	struct bench_case *cases = calloc(2 * all, sizeof(*cases));
	struct mix_case *arg = calloc(2 * all, sizeof(*arg));
	int ret = -ENOMEM;

	if (cases && arg) {
		for (size_t i = 0; i < all; i++) {
			size_t op = i / count;

			cases[i] = row_case(&arg[i], gang, op, mixes[i % count]);
			add_base(&cases[i], &cases[all + i], &arg[all + i], op);
		}
		ret = bench_measure(run, cases, all, result);
	}
	free(cases);
	free(arg);
	return ret;
}

/* --- Getting ready ------------------------------------------------------------------------------
 */

static int build_patcher(struct patcher *p)
{
	for (int op = 0; op < OPS; op++) {
		struct loop_spec spec = {
			.kind = LOOP_SITE,
			.target = LOOP_COUNT,
			.split = op == OP_STRADDLER ? SPLIT : 0,
		};
		int ret = loop_build(&p->loop[op], &spec);

		if (ret == 0)
			ret = pc_text_open(p->loop[op].site, LOOP_SITE_BYTES);
		if (ret < 0)
			return ret;
	}
	return pc_call_init(&p->call, p->loop[OP_CALL].site);
}

/*
 * Executors have their seats; patchers but the first get those at the other end, so that
 * they meet only where there are more threads than CPUs. There the last executor sits with
 * the first patcher.
 */
static void seat(const struct bench_run *run, struct gang *gang, unsigned *cpu)
{
	struct seating *seating = &gang->seating;
	unsigned others = run->seating.executors;

	*seating = run->seating;
	cpu[0] = seating->patcher;
	for (unsigned i = 1; i < gang->patchers; i++)
		cpu[i] = seating->executor[others - 1 - (i - 1) % others];
	if (others == 1)
		seating->executor[seating->executors++] = seating->patcher;
}

static int build(const struct bench_run *run, struct gang *gang)
{
	size_t size = gang->patchers * sizeof(*gang->patcher);
	unsigned cpu[PLACEMENT_EXECUTORS_MAX + 1];
	int ret = 0;

	gang->patcher = aligned_alloc(128, size);
	if (!gang->patcher)
		return -ENOMEM;
	memset(gang->patcher, 0, size);
	for (unsigned i = 0; i < gang->patchers && ret == 0; i++)
		ret = build_patcher(&gang->patcher[i]);
	if (ret < 0)
		return ret;
	seat(run, gang, cpu);
	ret = hot_start(&gang->hot, run->topology, &gang->seating);
	return ret < 0 ? ret : crew_start(&gang->crew, run->topology, cpu, gang->patchers);
}

static void tear_down(struct gang *gang)
{
	hot_stop(gang->hot);
	crew_stop(gang->crew);
	for (unsigned i = 0; i < gang->patchers && gang->patcher; i++)
		for (int op = 0; op < OPS; op++)
			loop_free(&gang->patcher[i].loop[op]);
	free(gang->patcher);
}

int scaling_patchers(const struct bench_run *run, double slice, struct bench_result *result)
{
	struct gang gang = { .patchers = run->seating.executors + 1, .slice = slice };
	struct scaling_mix mixes[SCALING_MIXES];
	unsigned count = scaling_mixes(run->seating.executors + 1, mixes);
	int ret = build(run, &gang);

	if (ret == 0)
		ret = measure(run, &gang, mixes, count, result);
	tear_down(&gang);
	return ret;
}
