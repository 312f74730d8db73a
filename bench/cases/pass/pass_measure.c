/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/pass/pass.h"
#include "bench/method/over.h"
#include "patchcore/machine/wait.h"

#define SPLITS	     5
#define BODIES	     2
#define PEERS	     16
#define PEER_CALLS   10000
#define PEER_SAMPLES 2
#define CHAIN	     100 /* additions, each needs the one before */

/* A loop, and the empty one that is timed beside it, in the same block. */
struct timed {
	struct pass pass;
	struct timed *beside; /* NULL: none */
	int ret;	      /* of its being built */
	char why[BENCH_WHY];
	const struct bench_case *clock;
	bool base_empty;
};

struct timed_peer {
	struct peer *peer;
	bool on;
	bool only_empty;
};

/* All that one run of a benchmark needs. */
struct plan {
	const struct pass_bench *bench;
	struct pass_spec spec[PASS_SPECS];
	size_t specs;
	struct timed timed[PASS_SPECS];
	struct timed base[SPLITS][BODIES], empty[SPLITS][BODIES];
	struct timed_peer peer[PEERS], peer_empty[PEERS];
	struct bench_case base_case[SPLITS][BODIES], peer_base[PEERS];
	struct bench_case cases[PASS_SPECS + PEERS + 1];
	size_t count;
};

/* --- Blocks ----------------------------------------------------------------------------------- */

static double time_passes(const struct timed *t)
{
	uint64_t counts[2] = { 0, 0 }, start = ticks_now();

	t->pass.loop.run(PASS_TIMES, counts);
	return (double)(ticks_now() - start) / PASS_TIMES;
}

/*
 * Once untimed, for the caches and the branch predictors: two loops that took turns would each
 * be timed with what the other has left there.
 */
static void add_passes(const struct timed *t, struct samples *s)
{
	time_passes(t);
	for (unsigned i = 0; i < PASS_SAMPLES; i++)
		samples_add(s, time_passes(t));
}

static int timed_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct timed *t = c->arg;
	const struct timed *broken = t->ret < 0 ? t : t->beside;

	if (broken && broken->ret < 0) {
		snprintf(why, BENCH_WHY, "%s", broken->why);
		return broken->ret;
	}
	add_passes(t, &s[0]);
	if (t->beside)
		add_passes(t->beside, &s[1]);
	return 0;
}

/* What a cycle of the core takes: an addition that needs the one before is one of them. */
static int clock_block(struct bench_case *c, struct samples *s, char *why)
{
	(void)c;
	(void)why;
	for (unsigned i = 0; i < PASS_SAMPLES; i++) {
		uint64_t times = PASS_TIMES / CHAIN, sum = 0, start = ticks_now();

		__asm__ volatile("1:\n\t"
				 ".rept 100\n\t"
				 "add %1, %0\n\t"
				 ".endr\n\t"
				 "dec %1\n\t"
				 "jnz 1b"
				 : "+r"(sum), "+r"(times)
				 :
				 : "cc");
		samples_add(&s[0], (double)(ticks_now() - start) / PASS_TIMES);
	}
	return 0;
}

static int ask_peer(const struct timed_peer *p, struct peer_cost *cost, char *why)
{
	if (p->peer->ret == 0)
		return p->peer->cost(p->peer, PEER_CALLS, cost, why);
	snprintf(why, BENCH_WHY, "%s", p->peer->why);
	return -ENODEV;
}

static int peer_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct timed_peer *p = c->arg;
	struct peer_cost cost;

	for (unsigned i = 0; i < PEER_SAMPLES; i++) {
		int ret = ask_peer(p, &cost, why);

		if (ret < 0)
			return ret;
		samples_add(&s[0], p->only_empty ? cost.empty : p->on ? cost.on : cost.off);
		samples_add(&s[1], cost.empty);
	}
	return 0;
}

/* --- Rows ------------------------------------------------------------------------------------- */

static void add_over(struct bench_row *row, const struct samples *s, const struct samples *empty)
{
	struct bench_value over = over_pairs(s, empty);

	bench_row_extra(row, "over_empty", over.median);
	bench_row_extra(row, "over_low", over.low);
	bench_row_extra(row, "over_high", over.high);
}

static void sum_up_timed(struct bench_case *c, struct bench_row *row)
{
	const struct timed *t = c->arg;
	const struct bench_case *clock = t->clock;
	struct bench_row cycle = { 0 };

	add_over(row, &c->samples[0], t->base_empty ? &c->base_samples[0] : &c->samples[1]);
	if (samples_sum_up(&clock->samples[0], NULL, 1, &cycle) == 0 && cycle.samples)
		bench_row_extra(row, "over_cycles",
				bench_row_extra_of(row, "over_empty") / cycle.value.median);
}

static void sum_up_peer(struct bench_case *c, struct bench_row *row)
{
	add_over(row, &c->samples[0], &c->samples[1]);
}

static void name_row(const struct pass_bench *bench, const struct pass_spec *spec,
		     struct bench_row *row)
{
	bench_row_name(row, spec->name, bench->measure, "ticks");
	row->peer = spec->peer;
	if (spec->split)
		bench_row_param_text(row, "split", pass_split(spec->loop.split));
	if (spec->target)
		bench_row_param_text(row, "target", spec->target);
	if (bench->body)
		bench_row_param_text(row, "body", spec->loop.work ? "work" : "none");
}

/* --- The plan --------------------------------------------------------------------------------- */

static void build(struct timed *t, const struct pass_spec *spec)
{
	t->ret = pass_build(&t->pass, spec, t->why);
}

static void plan_bases(struct plan *p)
{
	for (unsigned split = 0; split < SPLITS; split++)
		for (unsigned work = 0; work < BODIES; work++) {
			struct pass_spec base = p->bench->base, empty = { .name = "empty" };
			struct bench_case *c = &p->base_case[split][work];

			base.loop.split = empty.loop.split = split;
			base.loop.work = empty.loop.work = work;
			build(&p->base[split][work], &base);
			build(&p->empty[split][work], &empty);
			if (!p->bench->base_empty)
				p->base[split][work].beside = &p->empty[split][work];
			*c = (struct bench_case){ .block = timed_block,
						  .arg = &p->base[split][work] };
			name_row(p->bench, &base, &c->row);
		}
}

static void plan_timed(struct plan *p, size_t i)
{
	const struct pass_spec *spec = &p->spec[i];
	struct timed *t = &p->timed[i];

	build(t, spec);
	t->clock = &p->cases[0];
	t->base_empty = p->bench->base_empty;
	if (!t->base_empty)
		t->beside = &p->empty[spec->loop.split][spec->loop.work];
	p->cases[p->count] = (struct bench_case){
		.block = timed_block,
		.sum_up = sum_up_timed,
		.arg = t,
		.base = &p->base_case[spec->loop.split][spec->loop.work],
	};
	name_row(p->bench, spec, &p->cases[p->count++].row);
}

/* Its own empty loop is what it is off against; on, it stands beside our base. */
static void plan_peer(struct plan *p, struct peer *peer, unsigned i)
{
	struct bench_case *c = &p->cases[p->count++];
	struct pass_spec spec = { .name = peer->name, .peer = true };

	p->peer[i] = (struct timed_peer){ peer, p->bench->peers_on, false };
	p->peer_empty[i] = (struct timed_peer){ peer, false, true };
	p->peer_base[i] = (struct bench_case){ .block = peer_block, .arg = &p->peer_empty[i] };
	bench_row_name(&p->peer_base[i].row, "empty", p->bench->measure, "ticks");
	*c = (struct bench_case){ .block = peer_block, .sum_up = sum_up_peer, .arg = &p->peer[i] };
	c->base = p->bench->peers_on ? &p->base_case[0][0] : &p->peer_base[i];
	name_row(p->bench, &spec, &c->row);
}

static void plan_peers(struct plan *p)
{
	unsigned count = 0;

	for (struct peer *peer = peers; peer->name && count < PEERS; peer++)
		if (peer->cost)
			plan_peer(p, peer, count++);
}

static struct plan *make_plan(const struct pass_bench *bench)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->bench = bench;
	p->specs = bench->specs(p->spec);
	p->cases[p->count].block = clock_block;
	bench_row_name(&p->cases[p->count++].row, "clock", "cycle", "ticks");
	plan_bases(p);
	for (size_t i = 0; i < p->specs; i++)
		plan_timed(p, i);
	plan_peers(p);
	return p;
}

static void free_timed(struct timed *t)
{
	if (t->ret == 0)
		pass_free(&t->pass);
}

static void free_plan(struct plan *p)
{
	for (size_t i = 0; i < p->specs; i++)
		free_timed(&p->timed[i]);
	for (unsigned split = 0; split < SPLITS; split++)
		for (unsigned work = 0; work < BODIES; work++) {
			free_timed(&p->base[split][work]);
			free_timed(&p->empty[split][work]);
		}
	free(p);
}

int pass_measure(const struct pass_bench *bench, const struct bench_run *run,
		 struct bench_result *result)
{
	struct plan *p = make_plan(bench);
	int ret;

	if (!p)
		return -ENOMEM;
	ret = bench_measure(run, p->cases, p->count, result);
	free_plan(p);
	return ret;
}
