/* SPDX-License-Identifier: MIT */
/*
 * What more patchers and executors cost. Baselines are other cases of the same operation;
 * tmax-bench(1) has rows, baselines and extras.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/peers/ways.h"

#define SCALING_MIXES 64
#define SPLIT	      3 /* of the straddler */
#define LOOK_EVERY    8 /* changes between two looks at the clock */
#define SLICES	      2
#define SITES	      3 /* of each patcher: call, aligned, straddler */

static double slice = 0.004; /* seconds of one sample of "changes" */

/* So many patchers and executors. */
struct scaling_mix {
	unsigned patchers, executors;
	bool one_site; /* for all patchers */
};

/* A patcher has a site for each of the first three; the last uses the site of the third. */
static const struct site_spec ops[] = {
	{ WAY_CALL, .target = LOOP_COUNT },
	{ WAY_ALIGNED, .target = LOOP_COUNT },
	{ WAY_STRADDLER, SPLIT, SITE_WAIT, .target = LOOP_COUNT },
	{ WAY_STRADDLER, SPLIT, SITE_MEMBARRIER, .target = LOOP_COUNT },
};
#define OPS (sizeof(ops) / sizeof(*ops))

/* One patcher, and all that it alone writes. */
struct patcher {
	struct bench_site site[SITES];
	unsigned state; /* to bring about next */
	uint64_t changes, refused;
	double begin, seconds; /* of this slice; 0: it has not begun */
	int ret;
} __attribute__((aligned(128)));

struct gang {
	struct hot *hot, *others; /* executors; patchers, but for the caller, which is the first */
	unsigned patchers;	  /* at most */
	_Atomic(bool) go;	  /* patchers may change their sites */
	struct patcher *patcher;
};

struct mix_case {
	struct gang *gang;
	struct scaling_mix mix;
	const struct site_spec *op;
	unsigned site;	  /* of each patcher */
	bool against_one; /* is the baseline a single patcher? */
	struct hot_work work, patching;
	uint64_t changes, refused;
};

/* --- Which are measured ----------------------------------------------------------------------- */

/* 0, 1, 2, 4, and then in steps of four: more would take too long on a large machine. */
static unsigned next_number(unsigned n)
{
	return n < 2 ? n + 1 : n < 4 ? 2 * n : 4 * n;
}

/* Those that are measured on so many CPUs: each thread has one. */
static unsigned scaling_mixes(unsigned cpus, struct scaling_mix *mixes)
{
	unsigned count = 0;

	for (unsigned p = 1; p <= cpus; p = next_number(p))
		for (unsigned e = 0; p + e <= cpus && count < SCALING_MIXES; e = next_number(e))
			mixes[count++] = (struct scaling_mix){ p, e, false };
	for (unsigned e = 0; e < 2 && 2 + e <= cpus && count < SCALING_MIXES; e++)
		mixes[count++] = (struct scaling_mix){ 2, e, true };
	return count;
}

/* What a mix is compared with, and the name of that. NULL: with nothing. */
static const char *scaling_base(struct scaling_mix mix, struct scaling_mix *base)
{
	*base = mix;
	base->one_site = false;
	if (mix.one_site)
		return "own-sites";
	if (mix.patchers > 1) {
		base->patchers = 1;
		return "one-patcher";
	}
	base->executors = 0;
	return mix.executors ? "no-executor" : NULL;
}

/* --- One block -------------------------------------------------------------------------------- */

/* A change that is refused is tried again: the next state stays the same. */
static void patch_some(const struct mix_case *mc, unsigned member)
{
	struct patcher *me = &mc->gang->patcher[member];
	struct bench_site *site = &mc->gang->patcher[mc->mix.one_site ? 0 : member].site[mc->site];

	if (me->begin == 0)
		me->begin = seconds_now();
	for (unsigned i = 0; i < LOOK_EVERY && me->ret == 0; i++) {
		int ret = ways[mc->op->way].set(site, me->state);

		me->changes += ret == 0;
		me->state ^= ret == 0;
		me->refused += ret == -EAGAIN;
		if (ret < 0 && ret != -EAGAIN)
			me->ret = ret;
	}
	me->seconds = seconds_now() - me->begin;
}

static void patch_beside(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct mix_case *mc = work->arg;

	(void)counts;
	if (atomic_load_explicit(&mc->gang->go, memory_order_acquire))
		patch_some(mc, executor + 1);
}

/* Executors are dealt out to the sites in turn. */
static void run_a_site(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct mix_case *mc = work->arg;
	unsigned sites = mc->mix.one_site ? 1 : mc->mix.patchers;
	const struct hot_work loop = {
		.arg = &mc->gang->patcher[executor % sites].site[mc->site].loop,
	};

	hot_loop(&loop, executor, counts);
}

/* All patchers are awake before one begins. */
static int block_of_slices(struct bench_case *c, struct samples *s, char *why)
{
	struct mix_case *mc = c->arg;
	struct gang *gang = mc->gang;

	for (unsigned i = 0; i < SLICES; i++) {
		struct patcher *first = gang->patcher;
		double rate = 0;

		hot_aim(gang->others, &mc->patching, mc->mix.patchers - 1);
		for (struct patcher *p = first; p < first + mc->mix.patchers; p++) {
			p->changes = p->refused = 0;
			p->begin = p->seconds = 0;
			p->ret = 0;
		}
		atomic_store_explicit(&gang->go, true, memory_order_release);
		do
			patch_some(mc, 0);
		while (first->ret == 0 && first->seconds < slice);
		atomic_store_explicit(&gang->go, false, memory_order_relaxed);
		hot_sleep(gang->others);
		for (struct patcher *p = first; p < first + mc->mix.patchers; p++) {
			if (p->ret < 0)
				return bench_say(why, "a change failed", p->ret);
			rate += p->changes ? (double)p->changes / p->seconds : 0;
			mc->changes += p->changes;
			mc->refused += p->refused;
		}
		samples_add(&s[0], rate);
	}
	return 0;
}

static int begin_mix(struct bench_case *c, char *why)
{
	struct mix_case *mc = c->arg;

	(void)why;
	for (unsigned i = 0; i < mc->mix.patchers; i++)
		mc->gang->patcher[i].state = 1;
	return 0;
}

/* All sites are calls again, as begin_mix() expects. */
static void end_mix(struct bench_case *c)
{
	struct mix_case *mc = c->arg;

	for (unsigned i = 0; i < mc->mix.patchers; i++)
		bench_site_set(&mc->gang->patcher[i].site[mc->site], 0);
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

/* --- Cases ------------------------------------------------------------------------------------ */

static struct bench_case a_case(struct mix_case *mc, struct gang *gang, const struct site_spec *op,
				struct scaling_mix mix)
{
	*mc = (struct mix_case){
		.gang = gang,
		.mix = mix,
		.op = op,
		.site = op - ops < SITES ? (unsigned)(op - ops) : SITES - 1,
		.work = { run_a_site, mc },
		.patching = { patch_beside, mc },
	};
	return (struct bench_case){
		.begin = begin_mix,
		.block = block_of_slices,
		.end = end_mix,
		.arg = mc,
		.policy = op->policy,
		.hot = gang->hot,
		.work = &mc->work,
		.executors = mix.executors,
	};
}

/* A case, its row, and the baseline if it has one. */
static void make_case(struct bench_case *c, struct mix_case *mc, struct bench_case *base,
		      struct mix_case *base_arg, struct gang *gang, const struct site_spec *op,
		      struct scaling_mix mix)
{
	struct scaling_mix base_mix;
	const char *name = scaling_base(mix, &base_mix);

	*c = a_case(mc, gang, op, mix);
	c->sum_up = sum_up;
	bench_row_name(&c->row, ways[op->way].name, "changes", "changes/s");
	bench_site_params(&c->row, op);
	bench_row_param(&c->row, "patchers", mix.patchers);
	bench_row_param(&c->row, "executors", mix.executors);
	if (mix.one_site)
		bench_row_param(&c->row, "one-site", 1);
	if (!name)
		return;
	*base = a_case(base_arg, gang, op, base_mix);
	bench_row_name(&base->row, name, "changes", "changes/s");
	c->base = base;
	mc->against_one = strcmp(name, "one-patcher") == 0;
}

/* Executors have their seats; patchers but the first get those at the other end. */
static int measure_scaling(const struct bench_run *run, struct bench_result *result)
{
	unsigned others = run->seating.executors;
	struct gang gang = { .patchers = others + 1 };
	size_t size = gang.patchers * sizeof(*gang.patcher);
	struct seating patchers = run->seating;
	struct scaling_mix mixes[SCALING_MIXES];
	unsigned count = scaling_mixes(gang.patchers, mixes);
	size_t all = count * OPS;
	struct bench_case *cases = calloc(2 * all, sizeof(*cases));
	struct mix_case *arg = calloc(2 * all, sizeof(*arg));
	char why[BENCH_WHY];
	int ret = cases && arg ? 0 : -ENOMEM;

	gang.patcher = aligned_alloc(128, size);
	if (gang.patcher)
		memset(gang.patcher, 0, size);
	else
		ret = -ENOMEM;
	for (unsigned i = 0; i < gang.patchers * SITES && ret == 0; i++)
		ret = bench_site_build(&gang.patcher[i / SITES].site[i % SITES], &ops[i % SITES],
				       why);
	for (unsigned i = 0; i < others; i++)
		patchers.executor[i] = run->seating.executor[others - 1 - i];
	if (ret == 0)
		ret = hot_start(&gang.hot, run->topology, &run->seating);
	if (ret == 0)
		ret = hot_start(&gang.others, run->topology, &patchers);
	for (size_t i = 0; i < all && ret == 0; i++)
		make_case(&cases[i], &arg[i], &cases[all + i], &arg[all + i], &gang,
			  &ops[i / count], mixes[i % count]);
	if (ret == 0)
		ret = bench_measure(run, cases, all, result);
	hot_stop(gang.hot);
	hot_stop(gang.others);
	for (unsigned i = 0; i < gang.patchers * SITES && gang.patcher; i++)
		bench_site_free(&gang.patcher[i / SITES].site[i % SITES]);
	free(gang.patcher);
	free(cases);
	free(arg);
	return ret;
}

const struct benchmark bench_scaling = {
	.name = "scaling",
	.about = "more patchers and executors",
	.title = "Scaling",
	.caption =
		"Changes per second of all patchers together, each with a site of its own unless "
		"it says otherwise.",
	.run = measure_scaling,
};
