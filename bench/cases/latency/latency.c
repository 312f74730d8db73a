/* SPDX-License-Identifier: MIT */
#include "bench/cases/latency/latency.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/policy.h"
#include "patchcore/async.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"

enum {
	ON,
	OFF
};

/* What all cases work on. */
struct passes {
	const struct sites *sites;
	uint8_t (*code)[2][8]; /* by site, ON and OFF */
	uint64_t *word;	       /* by site: the 8 bytes it begins in, while it is on */
	struct pc_call *call;
	struct hot *hot;
	struct hot_work work;
	bool calls_ready;
};

struct pass_case;
typedef int change_fn(struct passes *l, unsigned long i, int to);

struct pass_case {
	struct passes *passes;
	change_fn *change;
	enum pc_policy policy;
	bool drains;
	unsigned executors;
	unsigned window;
};

/* --- One change --------------------------------------------------------------------------- */

static int change_patch(struct passes *l, unsigned long i, int to)
{
	return pc_patch(l->sites->site[i], l->code[i][to], SITES_LENGTH);
}

static int change_start(struct passes *l, unsigned long i, int to)
{
	return pc_start_patch(l->sites->site[i], l->code[i][to], SITES_LENGTH);
}

static int change_call(struct passes *l, unsigned long i, int to)
{
	return to == ON ? pc_activate_call(&l->call[i], NULL) : pc_deactivate_call(&l->call[i]);
}

static uint64_t *word_of(const struct passes *l, unsigned long i)
{
	return (uint64_t *)((uintptr_t)l->sites->site[i] & ~(uintptr_t)7);
}

/* The value is the one that stands there: a load of it here would fetch the line untimed. */
static int change_floor(struct passes *l, unsigned long i, int to)
{
	(void)to;
	__atomic_exchange_n(word_of(l, i), l->word[i], __ATOMIC_SEQ_CST);
	return 0;
}

/* --- One block: all off, all on ----------------------------------------------------------- */

static int pass(const struct pass_case *lc, int to, struct samples *s)
{
	struct passes *l = lc->passes;

	for (unsigned long i = 0; i < l->sites->count; i++) {
		uint64_t start = ticks_now();
		int ret = lc->change(l, i, to);

		samples_add(s, (double)(ticks_now() - start));
		if (ret == 0 && lc->drains && i % LATENCY_DRAIN == LATENCY_DRAIN - 1)
			ret = pc_drain();
		if (ret < 0)
			return ret;
	}
	return lc->drains ? pc_drain() : 0;
}

/* A change that was not made would be a cheap one. */
static int expect_all(const struct pass_case *lc, int to)
{
	const struct passes *l = lc->passes;
	bool on = to == ON || lc->change == change_floor;

	for (unsigned long i = 0; i < l->sites->count; i++)
		if ((memcmp(l->sites->site[i], l->code[i][ON], SITES_LENGTH) == 0) != on)
			return -EILSEQ;
	return 0;
}

static int block(struct bench_case *c, struct samples *s, char *why)
{
	const struct pass_case *lc = c->arg;
	int ret = pass(lc, OFF, &s[OFF]);

	if (ret == 0)
		ret = expect_all(lc, OFF);
	if (ret == 0)
		ret = pass(lc, ON, &s[ON]);
	if (ret == 0)
		ret = expect_all(lc, ON);
	if (ret < 0)
		snprintf(why, BENCH_WHY, "%s",
			 ret == -EILSEQ ? "a change was not made" : strerror(-ret));
	return ret;
}

/* Once: pc_call_init() looks at calls that are on. */
static int init_calls(struct passes *l)
{
	int ret = 0;

	for (unsigned long i = 0; i < l->sites->count && ret == 0 && !l->calls_ready; i++)
		ret = pc_call_init(&l->call[i], l->sites->site[i]);
	l->calls_ready = ret == 0;
	return ret;
}

static int choose_policy(struct pass_case *lc, char *why)
{
	struct pc_status status = { 0 };
	int ret = bench_set_policy(lc->policy, why);

	pc_get_status(&status);
	/* Calls are turned on and off by words, see call.h. */
	lc->window = lc->change == change_call ? 8 : status.atomic_window;
	return ret;
}

static int begin(struct bench_case *c, char *why)
{
	struct pass_case *lc = c->arg;
	struct passes *l = lc->passes;
	int ret = choose_policy(lc, why);

	if (ret < 0)
		return ret;
	if (lc->change == change_call)
		ret = init_calls(l);
	if (ret < 0) {
		snprintf(why, BENCH_WHY, "pc_call_init: %s", strerror(-ret));
		pc_set_policy(PC_POLICY_AUTO);
		return ret;
	}
	hot_aim(l->hot, &l->work, lc->executors);
	return 0;
}

/* A block that failed left some of it off. */
static void all_on(struct passes *l)
{
	pc_drain();
	for (unsigned long i = 0; i < l->sites->count; i++)
		if (memcmp(l->sites->site[i], l->code[i][ON], SITES_LENGTH) != 0)
			change_patch(l, i, ON);
}

static void end(struct bench_case *c)
{
	struct pass_case *lc = c->arg;

	hot_sleep(lc->passes->hot);
	all_on(lc->passes);
	pc_set_policy(PC_POLICY_AUTO);
}

/* --- Straddlers and others apart ---------------------------------------------------------- */

/* Every block has a sample per site, in their order. */
static double median_of_kind(const struct pass_case *lc, const struct samples *s, bool crosses)
{
	const struct sites *sites = lc->passes->sites;
	struct samples some = { 0 };
	double median = NAN;

	for (size_t i = 0; i < s->count; i++)
		if (sites_crosses(sites->site[i % sites->count], lc->window) == crosses)
			samples_add(&some, s->value[i]);
	samples_end_block(&some);
	if (some.blocks && !some.lost)
		median = samples_block_median(&some, 0);
	samples_free(&some);
	return median;
}

static double share_above(const struct samples *s, double limit)
{
	size_t above = 0;

	for (size_t i = 0; i < s->count; i++)
		above += s->value[i] > limit;
	return (double)above / (double)s->count;
}

static void sum_up(struct bench_case *c, struct bench_row *row)
{
	const struct pass_case *lc = c->arg;
	const struct samples *s = &c->samples[strcmp(row->measure, "off") == 0 ? OFF : ON];
	double straddlers = median_of_kind(lc, s, true), others = median_of_kind(lc, s, false);

	bench_row_extra(row, "straddlers", sites_straddlers(lc->passes->sites, 8));
	bench_row_extra(row, "straddlers_line", sites_straddlers(lc->passes->sites, 64));
	bench_row_extra(row, "window", lc->window);
	bench_row_extra(row, "p50_straddlers", straddlers);
	bench_row_extra(row, "p50_others", others);
	if (straddlers > 2 * others)
		bench_row_extra(row, "expensive", share_above(s, sqrt(straddlers * others)));
}

/* --- All cases ---------------------------------------------------------------------------- */

static const struct {
	const char *name, *policy_text;
	change_fn *change;
	enum pc_policy policy;
	bool drains;
} kinds[] = {
	{ "patch", "wait", change_patch, PC_POLICY_WAIT, false },
	{ "patch", "membarrier", change_patch, PC_POLICY_MEMBARRIER, false },
	{ "start", "wait", change_start, PC_POLICY_WAIT, true },
	{ "start", "membarrier", change_start, PC_POLICY_MEMBARRIER, true },
	{ "call", NULL, change_call, PC_POLICY_AUTO, false },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define CASES (2 * KINDS) /* with and without an executor */

static struct bench_case a_case(struct pass_case *lc)
{
	return (struct bench_case){
		.begin = begin,
		.block = block,
		.end = end,
		.arg = lc,
		.second_measure = "off",
		.rounds = LATENCY_ROUNDS,
	};
}

static struct bench_case base_case(struct passes *l, unsigned executors, struct pass_case *lc)
{
	struct bench_case c = a_case(lc);

	*lc = (struct pass_case){
		.passes = l,
		.change = change_floor,
		.policy = PC_POLICY_AUTO,
		.executors = executors,
	};
	bench_row_name(&c.row, "floor", "on", "ticks");
	return c;
}

static struct bench_case one_case(struct passes *l, size_t kind, unsigned executors,
				  struct pass_case *lc)
{
	struct bench_case c = a_case(lc);

	*lc = (struct pass_case){
		.passes = l,
		.change = kinds[kind].change,
		.policy = kinds[kind].policy,
		.drains = kinds[kind].drains,
		.executors = executors,
	};
	c.sum_up = sum_up;
	c.histogram = true;
	bench_row_name(&c.row, kinds[kind].name, "on", "ticks");
	if (kinds[kind].policy_text)
		bench_row_param_text(&c.row, "policy", kinds[kind].policy_text);
	bench_row_param(&c.row, "executors", executors);
	bench_row_param(&c.row, "sites", (double)l->sites->count);
	return c;
}

static int measure(const struct bench_run *run, struct passes *l, struct bench_result *result)
{
	struct pass_case arg[CASES], base_arg[2];
	struct bench_case cases[CASES], base[2];

	for (unsigned executors = 0; executors < 2; executors++) {
		base[executors] = base_case(l, executors, &base_arg[executors]);
		for (size_t kind = 0; kind < KINDS; kind++) {
			size_t i = executors * KINDS + kind;

			cases[i] = one_case(l, kind, executors, &arg[i]);
			cases[i].base = &base[executors];
		}
	}
	return bench_measure(run, cases, CASES, result);
}

static void note_codes(struct passes *l)
{
	for (unsigned long i = 0; i < l->sites->count; i++) {
		sites_code(l->sites, i, true, l->code[i][ON]);
		sites_code(l->sites, i, false, l->code[i][OFF]);
		l->word[i] = __atomic_load_n(word_of(l, i), __ATOMIC_RELAXED);
	}
}

static int build(const struct bench_run *run, struct passes *l)
{
	unsigned long sites = l->sites->count;

	l->code = calloc(sites, sizeof(*l->code));
	l->word = calloc(sites, sizeof(*l->word));
	l->call = calloc(sites, sizeof(*l->call));
	if (!l->code || !l->word || !l->call)
		return -ENOMEM;
	note_codes(l);
	l->work = (struct hot_work){ sites_run, (void *)l->sites };
	return hot_start(&l->hot, run->topology, &run->seating);
}

static int check_counts(const struct hot *hot)
{
	struct hot_sum sum = hot_count(hot);

	return sum.calls[0] == sum.calls[1] && sum.calls[0] <= sum.executed ? 0 : -EILSEQ;
}

int latency_measure(const struct bench_run *run, const struct sites *sites,
		    struct bench_result *result)
{
	struct passes l = { .sites = sites };
	int ret = build(run, &l);

	if (ret == 0)
		ret = measure(run, &l, result);
	if (ret == 0)
		ret = check_counts(l.hot);
	hot_stop(l.hot);
	free(l.code);
	free(l.word);
	free(l.call);
	return ret;
}

int bench_latency(const struct bench_run *run, struct bench_result *result)
{
	struct sites_spec spec = { .count = LATENCY_SITES, .seed = run->seed };
	struct sites sites;
	int ret = sites_build(&sites, &spec);

	if (ret < 0)
		return ret;
	ret = latency_measure(run, &sites, result);
	sites_free(&sites);
	return ret;
}
