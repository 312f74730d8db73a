/* SPDX-License-Identifier: MIT */
/*
 * tmax bench throughput: what executors lose while one patcher toggles the site that they
 * are hot on (paper, section 8.4, figures 11 to 13).
 *
 * A block is a slice of some milliseconds. The baseline, "untouched", is the same loop, run by
 * as many executors, half of a slice in either state, with no change made while anything is
 * counted; the patcher spins as it does between changes. So the ratio of calls per second is
 * the share that toggling leaves, also between a call and none, where half of the time there
 * is nothing to call.
 *
 * Peers count for themselves, and their baseline is their own flow at rate 0. With that
 * their site is on all of the time, so between a call and none half of it is the baseline.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/throughput/flow.h"
#include "bench/method/method.h"
#include "bench/peers/peer.h"
#include "bench/ways/ways.h"
#include "patchcore/machine/identity.h"

#define PEER_SLICE  0.030
#define PEER_ROUNDS 6
#define PEER_TRY    0.002

static const double rates[] = { 0, 1e3, 1e4, 1e5, 1e6, 1e7 };
#define RATES	(sizeof(rates) / sizeof(*rates))
#define FASTEST 1e7 /* of them: as fast as possible */

/* The first ones with all numbers of executors, the others with 1 and most. */
static const struct line {
	enum way_name way;
	unsigned split;
	bool on_off; /* else between two targets */
	enum pc_policy policy;
} lines[] = {
	{ WAY_RETARGET, 0, false, PC_POLICY_AUTO },
	{ WAY_CALL, 0, true, PC_POLICY_AUTO },
	{ WAY_RETARGET, 3, false, PC_POLICY_AUTO },
	{ WAY_CALL, 3, true, PC_POLICY_AUTO },
	{ WAY_ALIGNED, 0, false, PC_POLICY_AUTO },
	{ WAY_ALIGNED, 0, true, PC_POLICY_AUTO },
	{ WAY_STRADDLER, 3, false, PC_POLICY_WAIT },
	{ WAY_STRADDLER, 3, true, PC_POLICY_WAIT },
	{ WAY_STRADDLER, 3, false, PC_POLICY_MEMBARRIER },
	{ WAY_STRADDLER, 3, true, PC_POLICY_MEMBARRIER },
	{ WAY_STORE, 0, false, PC_POLICY_AUTO },
	{ WAY_STORE, 0, true, PC_POLICY_AUTO },
	{ WAY_POINTER, 0, false, PC_POLICY_AUTO },
	{ WAY_FLAG, 0, true, PC_POLICY_AUTO },
};
#define LINES	      (sizeof(lines) / sizeof(*lines))
#define SCALING_LINES 2

/* What a case works on; its baseline has one of its own. */
struct point {
	struct throughput *all;
	const struct line *line; /* NULL: the peer's */
	struct bench_site *site;
	struct peer *peer;
	bool on_off;
	unsigned executors;
	double rate; /* 0: untouched */
	struct flow_tally tally;
	struct point *base;
};

struct throughput {
	const struct bench_run *run;
	double slice; /* seconds */
	struct hot *hot;
	struct flow *flow;
	struct bench_site *site;  /* by line */
	struct bench_case *cases; /* the first `count` are measured, baselines grow from the end */
	struct point *points;	  /* one per case */
	size_t count, room, bases;
};

/* --- Blocks ----------------------------------------------------------------------------- */

/* Calls per second; between a call and none they are what state 0 does. */
static int take_sample(struct point *point, const struct flow_sum *sum, struct samples *s)
{
	samples_add(s, sum->per_second[0] + (point->on_off ? 0 : sum->per_second[1]));
	return flow_tally_add(&point->tally, sum);
}

static int begin_site(struct bench_case *c, char *why)
{
	struct point *point = c->arg;
	int ret = bench_site_begin(point->site, point->line->policy, why);

	if (ret == 0)
		flow_aim(point->all->flow, &point->site->loop, point->executors, point->on_off);
	return ret;
}

static void end_site(struct bench_case *c)
{
	const struct point *point = c->arg;

	flow_sleep(point->all->flow);
	bench_site_end(point->site);
}

static int block_of_site(struct bench_case *c, struct samples *s, char *why)
{
	struct point *point = c->arg;
	struct flow *flow = point->all->flow;
	double slice = point->all->slice;
	struct flow_sum sum;
	/* A warm-up leaves it in either state. */
	int ret = bench_site_set(point->site, 0);

	if (ret == 0 && point->rate > 0)
		ret = flow_toggle(flow, bench_site_set, point->site,
				  point->rate == FASTEST ? INFINITY : point->rate, slice, &sum);
	else if (ret == 0)
		ret = flow_untouched(flow, bench_site_set, point->site, slice, &sum);
	if (ret < 0)
		return bench_say(why, "a change failed", ret);
	ret = flow_check(&sum, point->on_off);
	if (ret < 0) {
		snprintf(why, BENCH_WHY, "%llu executions, but %llu and %llu calls",
			 (unsigned long long)sum.executed, (unsigned long long)sum.calls[0],
			 (unsigned long long)sum.calls[1]);
		return ret;
	}
	return take_sample(point, &sum, &s[0]);
}

static int block_of_peer(struct bench_case *c, struct samples *s, char *why)
{
	struct point *point = c->arg;
	struct peer_flow told = { 0 };
	struct flow_sum sum = { 0 };
	double half = point->on_off && point->rate == 0 ? 0.5 : 1;
	int ret = point->peer->flow(point->peer, point->rate == FASTEST ? INFINITY : point->rate,
				    PEER_SLICE, point->on_off, &told, why);

	if (ret < 0)
		return ret;
	sum.seconds = told.seconds;
	sum.toggles = told.toggles;
	for (unsigned t = 0; t < 2; t++) {
		sum.ran[t] = told.calls[t];
		sum.per_second[t] = half * (double)told.calls[t] / told.seconds;
	}
	return take_sample(point, &sum, &s[0]);
}

/*
 * What is wrong with a library of ours is no figure. Of a peer it is a finding: the balance
 * is infinite.
 */
static void sum_up(struct bench_case *c, struct bench_row *row)
{
	const struct point *point = c->arg;
	bool ours = point->site, weigh = ours && point->on_off;

	flow_tally_extras(&point->tally, weigh ? &point->base->tally : NULL, row);
	if (ours && flow_tally_stuck(&point->tally))
		bench_row_skip(row, "it was toggled, but executors saw only one of its states");
}

/* --- Cases ------------------------------------------------------------------------------ */

static struct bench_case *put_case(struct throughput *all, size_t at, const struct point *point)
{
	struct bench_case *c = &all->cases[at];

	all->points[at] = *point;
	*c = (struct bench_case){
		.begin = point->site ? begin_site : NULL,
		.block = point->site ? block_of_site : block_of_peer,
		.end = point->site ? end_site : NULL,
		.sum_up = sum_up,
		.arg = &all->points[at],
		.rounds = point->peer ? PEER_ROUNDS : 0,
	};
	return c;
}

static void name_row(struct bench_row *row, const struct point *point)
{
	const struct line *line = point->line;

	bench_row_name(row, line ? ways[line->way].name : point->peer->name, "calls", "calls/s");
	row->peer = !line || ways[line->way].peer;
	if (!row->peer)
		bench_row_param_text(row, "split", loop_split_name(line->split));
	if (line && line->policy != PC_POLICY_AUTO)
		bench_row_param_text(row, "policy", bench_policy_name(line->policy));
	bench_row_param_text(row, "mode", point->on_off ? "call-nop" : "call-call");
}

/* At every rate, and untouched. */
static void add_points(struct throughput *all, struct point point)
{
	struct bench_case *base = put_case(all, all->room - ++all->bases, &point);

	point.base = base->arg;
	bench_row_name(&base->row, "untouched", "calls", "calls/s");
	for (size_t i = 0; i < RATES; i++) {
		struct bench_case *c;

		point.rate = rates[i];
		c = put_case(all, all->count++, &point);
		c->base = base;
		name_row(&c->row, &point);
		bench_row_param(&c->row, "executors", point.executors);
		bench_row_param(&c->row, "rate", point.rate);
	}
}

/* 1, 2, 4 ..., most. 0: that was all. */
static unsigned next_executors(unsigned executors, unsigned most)
{
	if (executors == most)
		return 0;
	return executors && 2 * executors < most ? 2 * executors : executors ? most : 1;
}

/* Of a peer that is not to be had one row tells why, and not one per rate. */
static int add_peer(struct throughput *all, struct peer *peer, bool on_off,
		    struct bench_result *result)
{
	struct point point = { .all = all, .peer = peer, .on_off = on_off, .executors = 1 };
	struct bench_row *row;
	struct peer_flow flow;
	char why[BENCH_WHY] = "";
	int ret = peer->ret;

	if (ret < 0)
		snprintf(why, BENCH_WHY, "%s", peer->why);
	else
		ret = peer->flow(peer, 0, PEER_TRY, on_off, &flow, why);
	if (ret == 0) {
		add_points(all, point);
		return 0;
	}
	row = bench_result_add(result);
	if (!row)
		return -ENOMEM;
	name_row(row, &point);
	bench_row_skip(row, "%s", why[0] ? why : strerror(-ret));
	return 0;
}

int throughput_measure(const struct bench_run *run, double slice, struct bench_result *result)
{
	struct throughput all = { .run = run, .slice = slice };
	unsigned most = run->seating.executors;
	char why[BENCH_WHY];
	struct identity id;
	size_t series = 0;
	int ret = identity_read(&id);

	if (ret == 0)
		ret = hot_start(&all.hot, run->topology, &run->seating);
	if (ret == 0)
		ret = flow_open(&all.flow, all.hot, 1000.0 * (double)id.tsc_khz);
	/* No more than all lines and peers with every number of executors. */
	for (unsigned n = next_executors(0, most); n; n = next_executors(n, most))
		series += LINES;
	for (const struct peer *peer = peers; peer->name; peer++)
		series += 2;
	all.room = series * (RATES + 1);
	all.cases = calloc(all.room, sizeof(*all.cases));
	all.points = calloc(all.room, sizeof(*all.points));
	all.site = aligned_alloc(128, LINES * sizeof(*all.site));
	if (ret == 0 && (!all.cases || !all.points || !all.site))
		ret = -ENOMEM;
	if (all.site)
		memset(all.site, 0, LINES * sizeof(*all.site));
	for (unsigned i = 0; i < LINES && ret == 0; i++) {
		struct site_spec spec = { .way = &ways[lines[i].way],
					  .split = lines[i].split,
					  .target = LOOP_COUNT,
					  .two_targets = !lines[i].on_off };
		struct point point = { .all = &all,
				       .line = &lines[i],
				       .site = &all.site[i],
				       .on_off = lines[i].on_off };

		ret = bench_site_build(&all.site[i], &spec, why);
		for (unsigned n = next_executors(0, most); n; n = next_executors(n, most)) {
			point.executors = n;
			if (i < SCALING_LINES || n == 1 || n == most)
				add_points(&all, point);
		}
	}
	for (struct peer *peer = peers; peer->name && ret == 0; peer++)
		for (unsigned on_off = 0; on_off < 2 && peer->flow && ret == 0; on_off++)
			ret = add_peer(&all, peer, on_off, result);
	if (ret == 0)
		ret = bench_measure(run, all.cases, all.count, result);
	for (size_t i = 0; all.points && i < all.room; i++)
		flow_tally_free(&all.points[i].tally);
	flow_close(all.flow);
	hot_stop(all.hot);
	for (unsigned i = 0; i < LINES && all.site; i++)
		bench_site_free(&all.site[i]);
	free(all.site);
	free(all.cases);
	free(all.points);
	return ret;
}

int bench_throughput(const struct bench_run *run, struct bench_result *result)
{
	return throughput_measure(run, THROUGHPUT_SLICE, result);
}
