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
#include "bench/cases/throughput/flow_site.h"
#include "bench/cases/throughput/flow_tally.h"
#include "bench/cases/throughput/throughput.h"
#include "bench/method/method.h"
#include "bench/peers/peer.h"
#include "patchcore/machine/identity.h"

#define PEER_SLICE  0.030
#define PEER_ROUNDS 6
#define PEER_TRY    0.002

static const double rates[] = { 0, 1e3, 1e4, 1e5, 1e6, 1e7 };
#define RATES	(sizeof(rates) / sizeof(*rates))
#define FASTEST 1e7 /* of them: as fast as possible */

static const struct flow_way ways[] = {
	{ "call", FLOW_CALL, 0, false, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 0, true, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 3, false, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 3, true, PC_POLICY_AUTO },
	{ "aligned", FLOW_PATCH, 0, false, PC_POLICY_AUTO },
	{ "aligned", FLOW_PATCH, 0, true, PC_POLICY_AUTO },
	{ "straddler", FLOW_PATCH, 3, false, PC_POLICY_WAIT },
	{ "straddler", FLOW_PATCH, 3, true, PC_POLICY_WAIT },
	{ "straddler", FLOW_PATCH, 3, false, PC_POLICY_MEMBARRIER },
	{ "straddler", FLOW_PATCH, 3, true, PC_POLICY_MEMBARRIER },
	{ "floor", FLOW_STORE, 0, false, PC_POLICY_AUTO },
	{ "floor", FLOW_STORE, 0, true, PC_POLICY_AUTO },
	{ "pointer", FLOW_POINTER, 0, false, PC_POLICY_AUTO },
	{ "flag", FLOW_FLAG, 0, true, PC_POLICY_AUTO },
};
#define WAYS	     (sizeof(ways) / sizeof(*ways))
#define SCALING_WAYS 2 /* the first: with all numbers of executors, others with 1 and most */

/* What a case works on; its baseline has one of its own. */
struct point {
	struct throughput *all;
	struct flow_site *site; /* NULL: it is the peer's */
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
	struct flow_site *site[WAYS];
	struct bench_case *cases; /* the first `count` are measured, baselines grow from the end */
	struct point *points;	  /* one per case */
	size_t count, room, bases;
};

static double asked(double rate)
{
	return rate == FASTEST ? INFINITY : rate;
}

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
	int ret = flow_site_begin(point->site, why);

	if (ret == 0)
		flow_aim(point->all->flow, &point->site->loop, point->executors, point->on_off);
	return ret;
}

static void end_site(struct bench_case *c)
{
	const struct point *point = c->arg;

	flow_sleep(point->all->flow);
	flow_site_end();
}

static int flow_through(const struct point *point, struct flow_sum *sum)
{
	struct flow *flow = point->all->flow;
	double slice = point->all->slice;
	/* A warm-up leaves it in either state. */
	int ret = flow_site_set(point->site, 0);

	if (ret < 0)
		return ret;
	if (point->rate > 0)
		return flow_toggle(flow, flow_site_set, point->site, asked(point->rate), slice,
				   sum);
	return flow_untouched(flow, flow_site_set, point->site, slice, sum);
}

static int block_site(struct bench_case *c, struct samples *s, char *why)
{
	struct point *point = c->arg;
	struct flow_sum sum;
	int ret = flow_through(point, &sum);

	if (ret < 0) {
		snprintf(why, BENCH_WHY, "a change failed: %s", strerror(-ret));
		return ret;
	}
	ret = flow_check(&sum, point->on_off);
	if (ret < 0) {
		snprintf(why, BENCH_WHY, "%llu executions, but %llu and %llu calls",
			 (unsigned long long)sum.executed, (unsigned long long)sum.calls[0],
			 (unsigned long long)sum.calls[1]);
		return ret;
	}
	return take_sample(point, &sum, &s[0]);
}

static int block_peer(struct bench_case *c, struct samples *s, char *why)
{
	struct point *point = c->arg;
	struct peer_flow told = { 0 };
	struct flow_sum sum = { 0 };
	double half = point->on_off && point->rate == 0 ? 0.5 : 1;
	int ret = point->peer->flow(point->peer, asked(point->rate), PEER_SLICE, point->on_off,
				    &told, why);

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
		.block = point->site ? block_site : block_peer,
		.end = point->site ? end_site : NULL,
		.sum_up = sum_up,
		.arg = &all->points[at],
		.rounds = point->peer ? PEER_ROUNDS : 0,
	};
	return c;
}

static struct bench_case *add_base(struct throughput *all, const struct point *point)
{
	struct point untouched = *point;
	struct bench_case *c;

	untouched.rate = 0;
	c = put_case(all, all->room - ++all->bases, &untouched);
	bench_row_name(&c->row, "untouched", "calls", "calls/s");
	return c;
}

static void describe_way(struct bench_row *row, const struct flow_way *way)
{
	static const char *const policies[] = { [PC_POLICY_AUTO] = "auto",
						[PC_POLICY_WAIT] = "wait",
						[PC_POLICY_MEMBARRIER] = "membarrier" };

	bench_row_name(row, way->name, "calls", "calls/s");
	row->peer =
		way->means == FLOW_STORE || way->means == FLOW_POINTER || way->means == FLOW_FLAG;
	if (!row->peer)
		bench_row_param_text(row, "split", way->split ? "3|2" : "0");
	if (way->policy != PC_POLICY_AUTO)
		bench_row_param_text(row, "policy", policies[way->policy]);
}

static void describe_point(struct bench_row *row, const struct point *point)
{
	bench_row_param_text(row, "mode", point->on_off ? "call-nop" : "call-call");
	bench_row_param(row, "executors", point->executors);
	bench_row_param(row, "rate", point->rate);
}

static struct bench_row *add_point(struct throughput *all, const struct point *point,
				   struct bench_case *base)
{
	struct bench_case *c = put_case(all, all->count++, point);

	c->base = base;
	all->points[all->count - 1].base = base->arg;
	return &c->row;
}

static void add_way(struct throughput *all, unsigned way, unsigned executors)
{
	struct point point = { .all = all,
			       .site = all->site[way],
			       .on_off = ways[way].on_off,
			       .executors = executors };
	struct bench_case *base = add_base(all, &point);

	for (size_t i = 0; i < RATES; i++) {
		struct bench_row *row;

		point.rate = rates[i];
		row = add_point(all, &point, base);
		describe_way(row, &ways[way]);
		describe_point(row, &point);
	}
}

static void add_peer(struct throughput *all, struct peer *peer, bool on_off)
{
	struct point point = { .all = all, .peer = peer, .on_off = on_off, .executors = 1 };
	struct bench_case *base = add_base(all, &point);

	for (size_t i = 0; i < RATES; i++) {
		struct bench_row *row;

		point.rate = rates[i];
		row = add_point(all, &point, base);
		bench_row_name(row, peer->name, "calls", "calls/s");
		row->peer = true;
		describe_point(row, &point);
	}
}

/* 1, 2, 4 ..., most. 0: that was all. */
static unsigned next_executors(unsigned executors, unsigned most)
{
	if (executors == most)
		return 0;
	return executors && 2 * executors < most ? 2 * executors : executors ? most : 1;
}

static void add_ways(struct throughput *all)
{
	unsigned most = hot_executors(all->hot);

	for (unsigned way = 0; way < WAYS; way++)
		for (unsigned n = next_executors(0, most); n; n = next_executors(n, most))
			if (way < SCALING_WAYS || n == 1 || n == most)
				add_way(all, way, n);
}

/* --- Peers that are not to be had: one row tells why, and not one per rate ---------------- */

static int try_peer(struct peer *peer, bool on_off, char *why)
{
	struct peer_flow flow;

	if (peer->ret < 0) {
		snprintf(why, BENCH_WHY, "%s", peer->why);
		return peer->ret;
	}
	return peer->flow(peer, 0, PEER_TRY, on_off, &flow, why);
}

static int refuse_peer(struct bench_result *result, const struct peer *peer, bool on_off, int ret,
		       const char *why)
{
	struct bench_row *row = bench_result_add(result);

	if (!row)
		return -ENOMEM;
	bench_row_name(row, peer->name, "calls", "calls/s");
	row->peer = true;
	bench_row_param_text(row, "mode", on_off ? "call-nop" : "call-call");
	bench_row_skip(row, "%s", why[0] ? why : strerror(-ret));
	return 0;
}

static int add_peers(struct throughput *all, struct bench_result *result)
{
	int ret = 0;

	for (struct peer *peer = peers; peer->name && ret == 0; peer++)
		for (unsigned on_off = 0; on_off < 2 && peer->flow && ret == 0; on_off++) {
			char why[BENCH_WHY] = "";
			int had = try_peer(peer, on_off, why);

			if (had < 0)
				ret = refuse_peer(result, peer, on_off, had, why);
			else
				add_peer(all, peer, on_off);
		}
	return ret;
}

/* --- All of it -------------------------------------------------------------------------- */

/* No more than all ways and peers with every number of executors. */
static size_t most_cases(const struct throughput *all)
{
	unsigned most = hot_executors(all->hot);
	size_t steps = 0, peer_modes = 0;

	for (unsigned n = next_executors(0, most); n; n = next_executors(n, most))
		steps++;
	for (const struct peer *peer = peers; peer->name; peer++)
		peer_modes += 2;
	return (WAYS * steps + peer_modes) * (RATES + 1);
}

static int make_room(struct throughput *all)
{
	all->room = most_cases(all);
	all->cases = calloc(all->room, sizeof(*all->cases));
	all->points = calloc(all->room, sizeof(*all->points));
	return all->cases && all->points ? 0 : -ENOMEM;
}

static int open_flow(struct throughput *all)
{
	const struct bench_run *run = all->run;
	struct identity id;
	int ret = identity_read(&id);

	if (ret == 0)
		ret = hot_start(&all->hot, run->topology, &run->seating);
	return ret < 0 ? ret : flow_open(&all->flow, all->hot, 1000.0 * (double)id.tsc_khz);
}

static int build_sites(struct throughput *all)
{
	int ret = 0;

	for (unsigned way = 0; way < WAYS && ret == 0; way++)
		ret = flow_site_build(&all->site[way], &ways[way]);
	return ret;
}

static void close_all(struct throughput *all)
{
	for (size_t i = 0; all->points && i < all->room; i++)
		flow_tally_free(&all->points[i].tally);
	flow_close(all->flow);
	hot_stop(all->hot);
	for (unsigned way = 0; way < WAYS; way++)
		flow_site_free(all->site[way]);
	free(all->cases);
	free(all->points);
}

int throughput_measure(const struct bench_run *run, double slice, struct bench_result *result)
{
	struct throughput all = { .run = run, .slice = slice };
	int ret = open_flow(&all);

	if (ret == 0)
		ret = build_sites(&all);
	if (ret == 0)
		ret = make_room(&all);
	if (ret == 0) {
		add_ways(&all);
		ret = add_peers(&all, result);
	}
	if (ret == 0)
		ret = bench_measure(run, all.cases, all.count, result);
	close_all(&all);
	return ret;
}

int bench_throughput(const struct bench_run *run, struct bench_result *result)
{
	return throughput_measure(run, THROUGHPUT_SLICE, result);
}
