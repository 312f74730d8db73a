/* SPDX-License-Identifier: MIT */
/*
 * What one change costs its patcher: bench_toggle.
 *
 * The floor is one locked 8-byte exchange on the line that the change is on, with the same
 * executors hot on it: no protocol can be cheaper than the one store that it must make visible.
 * Before each change, and each exchange, the executors are let run their site again (hot_cool()).
 *
 * In four parts, each a bench_measure() of its own:
 *
 *   - start-up of the library, which closes all code that is open, so first;
 *   - everything with one executor or none. No other executors exist: what stops the
 *     world, or lets the kernel interrupt it, stops one;
 *   - what more executors cost;
 *   - batches: their ten thousand sites stay known to the library from then on.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/peers/peer.h"
#include "bench/peers/ways.h"
#include "patchcore/machine/wait.h"

#define TOGGLE_SPLIT	 3 /* of straddlers, where only one split is measured */
#define TOGGLE_BATCH_MAX 10000

struct toggle_spec {
	struct site_spec site;
	unsigned executors;
	bool any_risk;	     /* accept what machine.conf bounds, however much it is */
	enum way_name rival; /* against this instead of the floor; 0: none */
	struct peer *peer;   /* that is asked; then there is no site but the floor's */
};

/* What the cases share. */
struct toggle {
	struct hot *hot;
	struct spare pool; /* the sites of batches but the first, which is the executors' */
};

struct toggle_case {
	struct bench_site site;
	struct bench_site twin;	  /* for the floor, where only the library may write */
	struct bench_site *floor; /* this, or the site itself */
	struct toggle_spec spec __attribute__((aligned(128)));
	struct toggle *toggle;
	unsigned pairs;	   /* of changes, per block */
	uint64_t executed; /* of the site, while it was changed */
	double accept_p;   /* as it was */
	bool may_wait;	   /* policy auto took the wait into account */
	int ret;	   /* negative: this case is not to be had, and why */
	char why[BENCH_WHY];
};

#define TOGGLE_CASES_MAX 160

struct toggle_list {
	struct toggle_spec spec[TOGGLE_CASES_MAX];
	size_t count;
};

#define PEER_PAIRS 25
/* The clock of some CPUs moves in steps of 26 ticks, a third of what these take. */
#define RIVAL_MEAN  10
#define FLOOR_LEAST 20 /* pairs, also where the operation is slow */

/* --- Which cases there are ------------------------------------------------------------ */

/*
 * A line stands for a case per number of executors and split, each a digit. Of rows that differ
 * in one thing only the usual one comes first. The world is stopped only where an executor is
 * in it.
 */
struct line {
	const char *executors;
	const char *splits; /* NULL: none, and not told */
	struct site_spec site;
	enum way_name rival;
};

/* clang-format off */
static const struct line singles[] = {
	{ "10", NULL, .site = { .way = WAY_ALIGNED } },
	{ "1", NULL, .site = { WAY_ALIGNED, .mapping = SITE_PROTECT } },
	{ "1", NULL, .site = { WAY_ALIGNED, .mapping = SITE_ALIAS } },
	{ "10", "01234", .site = { .way = WAY_CALL } },
	{ "1", "01234", .site = { .way = WAY_RETARGET } },
	{ "1", "1234", .site = { WAY_STRADDLER, SITE_WAIT } },
	{ "0", "3", .site = { WAY_STRADDLER, SITE_WAIT } },
	{ "1", "3", .site = { WAY_STRADDLER, SITE_WAIT, .page = true } },
	{ "1", "3", .site = { WAY_STRADDLER, SITE_WAIT, .mapping = SITE_PROTECT } },
	{ "1", "3", .site = { WAY_STRADDLER, SITE_WAIT, .mapping = SITE_ALIAS } },
	{ "1", "1234", .site = { WAY_STRADDLER, SITE_MEMBARRIER } },
	{ "0", "3", .site = { WAY_STRADDLER, SITE_MEMBARRIER } },
	{ "1", "3", .site = { WAY_STRADDLER, SITE_MEMBARRIER, .page = true } },
	{ "10", "3", .site = { WAY_START, SITE_WAIT } },
	{ "10", "3", .site = { WAY_START, SITE_MEMBARRIER } },
	{ "10", NULL, .site = { WAY_ALIGNED, SITE_WAIT }, .rival = WAY_PAPER },
	{ "10", NULL, .site = { WAY_ALIGNED, SITE_MEMBARRIER }, .rival = WAY_PAPER },
	{ "10", "03", .site = { WAY_CALL, SITE_WAIT }, .rival = WAY_PAPER_CALL },
	{ "10", "03", .site = { WAY_CALL, SITE_MEMBARRIER }, .rival = WAY_PAPER_CALL },
	{ "10", "3", .site = { WAY_START, SITE_WAIT }, .rival = WAY_PAPER_START },
	{ "10", "3", .site = { WAY_START, SITE_MEMBARRIER }, .rival = WAY_PAPER_START },
	{ "10", NULL, .site = { .way = WAY_FLAG } },
	{ "10", NULL, .site = { .way = WAY_POINTER } },
	{ "10", "3", .site = { .way = WAY_HAND } },
	{ "1", "3", .site = { .way = WAY_STOP } },
	{ "1", "3", .site = { .way = WAY_PTRACE } },
};

static const struct line crowds[] = {
	{ NULL, NULL, .site = { .way = WAY_ALIGNED } },
	{ NULL, "03", .site = { .way = WAY_CALL } },
	{ NULL, "3", .site = { WAY_STRADDLER, SITE_WAIT } },
	{ NULL, "3", .site = { WAY_START, SITE_WAIT } },
	{ NULL, "3", .site = { WAY_STRADDLER, SITE_MEMBARRIER } },
	{ NULL, "3", .site = { WAY_START, SITE_MEMBARRIER } },
};
/* clang-format on */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void add_spec(struct toggle_list *list, const struct toggle_spec *spec)
{
	assert(list->count < TOGGLE_CASES_MAX);
	list->spec[list->count++] = *spec;
}

static void add_line(struct toggle_list *list, const struct line *line, unsigned executors)
{
	struct toggle_spec spec = { line->site, executors, .rival = line->rival };
	const char *split = line->splits ? line->splits : "0";

	spec.site.has_split = line->splits;
	for (; *split; split++) {
		spec.site.split = (unsigned)(*split - '0');
		add_spec(list, &spec);
	}
}

/* With one executor or none; of peers[] the call sites. */
static void toggle_list_singles(struct toggle_list *list)
{
	for (size_t i = 0; i < LENGTH(singles); i++)
		for (const char *n = singles[i].executors; *n; n++)
			add_line(list, &singles[i], (unsigned)(*n - '0'));
	for (struct peer *peer = peers; peer->name; peer++)
		if (peer->site)
			add_spec(list, &(struct toggle_spec){ { WAY_STORE, .mapping = SITE_RAW },
							      .peer = peer,
							      .executors = peer->hot });
}

/* 2, 4, 8 and so on, and all. */
static void toggle_list_crowds(struct toggle_list *list, unsigned most)
{
	for (unsigned executors = 2; executors / 2 < most && most > 1; executors *= 2)
		for (size_t i = 0; i < LENGTH(crowds); i++)
			add_line(list, &crowds[i], executors < most ? executors : most);
}

/* Auto takes the wait into account only where its bound is accepted, as in the last two. */
static void toggle_list_batches(struct toggle_list *list)
{
	static const enum pc_policy policies[] = { PC_POLICY_WAIT, PC_POLICY_MEMBARRIER,
						   PC_POLICY_AUTO };
	static const unsigned sizes[] = { 1, 10, 100, 1000, 1024, TOGGLE_BATCH_MAX, 1, 1024 };
	struct toggle_spec spec = {
		.site = { WAY_BATCH, TOGGLE_SPLIT, .has_split = true, SITE_WAIT },
		.executors = 1,
	};

	for (size_t p = 0; p < LENGTH(policies); p++)
		for (size_t i = 0; i < LENGTH(sizes); i++) {
			spec.site.policy = policies[p];
			spec.site.batch = sizes[i];
			spec.any_risk = i >= 6;
			if (!spec.any_risk || policies[p] == PC_POLICY_AUTO)
				add_spec(list, &spec);
		}
}

/* --- The operation -------------------------------------------------------------------- */

/* Batches under policy auto may be let take the wait, however high its bound. */
static int accept_risk(struct toggle_case *c, char *why)
{
	struct pc_status status;
	int ret = pc_get_status(&status);

	c->accept_p = status.accept_p;
	if (ret == 0 && !status.conf_valid) {
		snprintf(why, BENCH_WHY, "there is no bound to accept: %.120s", status.reason);
		return -ENOTSUP;
	}
	return ret < 0 ? ret : pc_set_accept_p(status.upper_p);
}

static void end_case(struct bench_case *bench)
{
	struct toggle_case *c = bench->arg;

	c->executed += hot_count(c->toggle->hot).executed;
	bench_site_end(&c->site);
	if (c->spec.any_risk)
		pc_set_accept_p(c->accept_p);
}

static int begin_case(struct bench_case *bench, char *why)
{
	struct toggle_case *c = bench->arg;
	const struct site_spec *site = &c->spec.site;
	struct pc_status status;
	int ret = c->ret;

	if (ret < 0) {
		snprintf(why, BENCH_WHY, "%s", c->why);
		return ret;
	}
	if (c->spec.any_risk)
		ret = accept_risk(c, why);
	c->executed -= hot_count(c->toggle->hot).executed;
	/* A case whose policy is refused is skipped; batches have policy auto. */
	if (ret == 0 && site->has_policy && (ret = pc_set_policy(site->policy)) < 0)
		bench_policy_refused(site->policy, why);
	if (ret == 0)
		ret = bench_site_begin(&c->site, why);
	if (ret < 0)
		end_case(bench);
	c->may_wait = pc_get_status(&status) == 0 && status.in_use == PC_POLICY_WAIT;
	return ret;
}

/* Off, and on again: what stands there first stands there last. */
static int block_of_changes(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;
	struct bench_site *site = bench->base ? &c->site : &c->twin; /* a rival has no baseline */
	const struct way *way = &ways[site->spec.way];
	unsigned mean = c->spec.rival ? RIVAL_MEAN : 1;
	double sum[2] = { 0, 0 };
	int ret = 0;

	for (unsigned i = 0; i < 2 * c->pairs && ret == 0; i++) {
		unsigned state = !(i % 2);
		double ticks;

		hot_cool(c->toggle->hot);
		ret = way->time(site, state, &ticks);
		if (ret < 0)
			break;
		sum[state] += ticks / mean;
		if (i / 2 % mean == mean - 1) {
			samples_add(&s[way->second ? state : 0], sum[state]);
			sum[state] = 0;
		}
		ret = way->settle ? way->settle() : 0;
	}
	return ret < 0 ? bench_say(why, way->name, ret) : 0;
}

static void sum_up(struct bench_case *bench, struct bench_row *row)
{
	struct toggle_case *c = bench->arg;

	if (c->spec.executors)
		bench_row_extra(row, "executed", (double)c->executed);
	if (c->spec.site.has_policy && c->spec.site.policy == PC_POLICY_AUTO)
		bench_row_extra(row, "may_wait", c->may_wait);
}

static int block_of_peer(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;

	return peer_toggle(c->spec.peer, c->pairs, c->spec.executors > 0, s, why);
}

/* --- The floor ------------------------------------------------------------------------ */

/* The value is the one that stands there; a load of it in time would fetch the line untimed. */
static int block_of_floor(struct bench_case *bench, struct samples *s, char *why)
{
	struct toggle_case *c = bench->arg;
	uint64_t *word = c->floor->place, same = __atomic_load_n(word, __ATOMIC_RELAXED);

	(void)why;
	for (unsigned i = 0; i < 2 * (c->pairs < FLOOR_LEAST ? FLOOR_LEAST : c->pairs); i++) {
		uint64_t start;

		hot_cool(c->toggle->hot);
		start = ticks_now();
		__atomic_exchange_n(word, same, __ATOMIC_SEQ_CST);
		samples_add(&s[ways[c->spec.site.way].second ? i % 2 : 0],
			    (double)(ticks_now() - start));
	}
	return 0;
}

/* --- A rival in the place of the floor -------------------------------------------------- */

static int begin_rival(struct bench_case *bench, char *why)
{
	return bench_site_begin(&((struct toggle_case *)bench->arg)->twin, why);
}

static void end_rival(struct bench_case *bench)
{
	bench_site_end(&((struct toggle_case *)bench->arg)->twin);
}

/* --- Building ------------------------------------------------------------------------- */

/* What this machine does not offer makes the case one that is skipped. */
static void toggle_case_build(struct toggle_case *c, const struct toggle_spec *spec,
			      struct toggle *toggle, struct bench_case *bench,
			      struct bench_case *floor)
{
	struct site_spec site = spec->site;
	const struct way *way = &ways[site.way];
	struct bench_row *row = &bench->row;

	memset(c, 0, sizeof(*c));
	site.spare = &toggle->pool;
	c->spec = *spec;
	c->toggle = toggle;
	c->pairs = spec->peer			    ? PEER_PAIRS
		   : site.batch >= TOGGLE_BATCH_MAX ? 2
		   : site.batch >= 1000		    ? 5
						    : way->pairs;
	c->ret = bench_site_build(&c->site, &site, c->why);
	if (c->ret == 0 && !spec->peer && (spec->rival || site.mapping != SITE_OPEN)) {
		site.way = spec->rival ? spec->rival : WAY_STORE;
		site.mapping = SITE_RAW;
		c->ret = bench_site_build(&c->twin, &site, c->why);
	}
	c->floor = c->twin.place ? &c->twin : &c->site;
	*floor = (struct bench_case){
		.begin = spec->rival ? begin_rival : NULL,
		.block = spec->rival ? block_of_changes : block_of_floor,
		.end = spec->rival ? end_rival : NULL,
		.arg = c,
		.policy = spec->rival ? spec->site.policy : PC_POLICY_AUTO,
		.hot = toggle->hot,
		.work = &c->floor->work,
		.executors = spec->executors,
	};
	bench_row_name(&floor->row, spec->rival ? ways[site.way].name : "floor", way->first,
		       "ticks");
	*bench = (struct bench_case){
		.begin = begin_case,
		.block = block_of_changes,
		.end = end_case,
		.sum_up = sum_up,
		.arg = c,
		.policy = spec->site.policy,
		.hot = toggle->hot,
		.work = &c->site.work,
		.executors = spec->executors,
		.base = floor,
		.second_measure = way->second,
	};
	if (spec->peer)
		*bench = (struct bench_case){ .block = block_of_peer,
					      .arg = c,
					      .base = floor,
					      .second_measure = way->second };
	/* A row has no params for what most cases share: an open mapping, a line crossed. */
	bench_row_name(row,
		       spec->rival  ? "beside paper"
		       : spec->peer ? spec->peer->name
				    : way->name,
		       way->first, "ticks");
	if (spec->rival)
		bench_row_param_text(row, "of", way->name);
	bench_site_params(row, &c->site.spec);
	if (spec->any_risk)
		bench_row_param_text(row, "risk", "any");
	bench_row_param(row, "executors", spec->executors);
}

static void toggle_case_free(struct toggle_case *c)
{
	bench_site_free(&c->site);
	bench_site_free(&c->twin);
}

/* --- The parts ------------------------------------------------------------------------ */

/* Finding and reading the config, taking SIGTRAP, and trying it. */
static int block_of_starts(struct bench_case *c, struct samples *s, char *why)
{
	(void)c;
	for (unsigned i = 0; i < 5; i++) {
		int ret = pc_fini();
		double begin = seconds_now();

		if (ret == 0)
			ret = pc_init();
		if (ret < 0)
			return bench_say(why, "pc_fini and pc_init", ret);
		samples_add(&s[0], (seconds_now() - begin) * 1e6);
	}
	return 0;
}

/* With so many executors at hand, asleep when they are not asked for. The list is empty after. */
static int measure_list(const struct bench_run *run, struct toggle_list *list, unsigned executors,
			struct toggle *toggle, struct bench_result *result)
{
	struct toggle_case *c = aligned_alloc(128, list->count * sizeof(*c));
	struct bench_case *bench = calloc(2 * list->count, sizeof(*bench));
	struct seating seating = run->seating;
	size_t built = 0;
	int ret = c && bench ? 0 : -ENOMEM;

	if (seating.executors > executors)
		seating.executors = executors;
	if (ret == 0)
		ret = hot_start(&toggle->hot, run->topology, &seating);
	for (; ret == 0 && built < list->count; built++)
		toggle_case_build(&c[built], &list->spec[built], toggle, &bench[built],
				  &bench[list->count + built]);
	if (ret == 0)
		ret = bench_measure(run, bench, list->count, result);
	while (built > 0)
		toggle_case_free(&c[--built]);
	hot_stop(toggle->hot);
	toggle->hot = NULL;
	free(c);
	free(bench);
	list->count = 0;
	return ret;
}

static int measure_toggle(const struct bench_run *run, struct bench_result *result)
{
	struct toggle_list *list = calloc(1, sizeof(*list));
	struct toggle toggle = { 0 };
	struct bench_case start = { .block = block_of_starts };
	int ret = list ? 0 : -ENOMEM;

	bench_row_name(&start.row, "pc_init", "start", "us");
	if (ret == 0)
		ret = bench_measure(run, &start, 1, result);
	if (ret == 0) {
		toggle_list_singles(list);
		peers_open(run, true);
		ret = measure_list(run, list, 1, &toggle, result);
		peers_close();
	}
	if (ret == 0) {
		toggle_list_crowds(list, run->seating.executors);
		if (list->count)
			ret = measure_list(run, list, run->seating.executors, &toggle, result);
	}
	if (ret == 0) {
		toggle_list_batches(list);
		ret = spare_open(&toggle.pool, TOGGLE_BATCH_MAX, TOGGLE_SPLIT);
		if (ret == 0)
			ret = measure_list(run, list, 1, &toggle, result);
		spare_close(&toggle.pool);
	}
	free(list);
	return ret;
}

const struct benchmark bench_toggle = {
	.name = "toggle",
	.about = "one change, by protocol, split, policy and mapping",
	.title = "Cost of one change",
	.caption = "Time of a change, per site for batches. What is waited for in other threads "
		   "is not in here.",
	.run = measure_toggle,
};
