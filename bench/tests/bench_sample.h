/* SPDX-License-Identifier: MIT */
/* Results of every benchmark as they might be, made up: no figure in here was measured. */
#ifndef BENCH_TESTS_BENCH_SAMPLE_H
#define BENCH_TESTS_BENCH_SAMPLE_H

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/benchmarks.h"

#define SAMPLE_FLOOR  150.0 /* ticks */
#define SAMPLE_FIRST  4000
#define SAMPLE_SECOND 2000

/* The newest row; good until the next. */
static inline struct bench_row *sample_row(struct bench_result *r, const char *name,
					   const char *measure, const char *unit, double median)
{
	struct bench_row *row = bench_result_add(r);

	assert(row);
	bench_row_name(row, name, measure, unit);
	row->samples = 4000;
	row->pairs = 40;
	row->value = (struct bench_value){ median, median * 0.97, median * 1.03 };
	row->least = median * 0.8;
	row->p5 = median * 0.9;
	row->p25 = median * 0.95;
	row->p75 = median * 1.1;
	row->p95 = median * 1.4;
	row->p99 = median * 2;
	row->most = median * 12 + 3000;
	row->outliers = 17;
	row->base = row->ratio = (struct bench_value){ NAN, NAN, NAN };
	return row;
}

static inline struct bench_row *sample_against(struct bench_row *row, const char *baseline,
					       double base)
{
	double ratio = row->value.median / base;

	snprintf(row->against, sizeof(row->against), "%s", baseline);
	row->base = (struct bench_value){ base, base * 0.97, base * 1.03 };
	row->ratio = (struct bench_value){ ratio, ratio * 0.97, ratio * 1.03 };
	return row;
}

static inline struct bench_result sample_result(const char *benchmark)
{
	struct bench_result r = { .seed = 7,
				  .rounds = 20,
				  .seconds = 61.5,
				  .waits.first = SAMPLE_FIRST,
				  .waits.second = SAMPLE_SECOND,
				  .waits.stretch = 4,
				  .distance = { 140, 120, 390 } };

	snprintf(r.benchmark, sizeof(r.benchmark), "%s", benchmark);
	snprintf(r.date, sizeof(r.date), "2026-01-31T12:00:00Z");
	snprintf(r.waits_from, sizeof(r.waits_from), "config");
	r.seating.executors = 1;
	r.seating.executor[0] = 1;
	r.witness.involuntary = 12;
	r.witness.interrupts = 900;
	r.witness.smis = WITNESS_UNKNOWN;
	r.witness.steal = 0.002;
	r.witness.load = 1.25;
	return r;
}

/* --- toggle ------------------------------------------------------------------------- */

static const char *const sample_splits[] = { "0", "1|4", "2|3", "3|2", "4|1" };

/* On and off of a case in so many floors; off is a little cheaper. */
static inline void sample_pair(struct bench_result *r, const char *name, double floors, bool peer,
			       const char *split, const char *policy, double executors)
{
	static const char *const measures[] = { "on", "off" };

	for (unsigned i = 0; i < 2; i++) {
		struct bench_row *row = sample_row(r, name, measures[i], "ticks",
						   floors * SAMPLE_FLOOR * (1 - 0.05 * i));

		row->peer = peer;
		sample_against(row, "floor", SAMPLE_FLOOR);
		if (split)
			bench_row_param_text(row, "split", split);
		if (policy)
			bench_row_param_text(row, "policy", policy);
		if (!isnan(executors))
			bench_row_param(row, "executors", executors);
	}
}

static inline void sample_skip(struct bench_result *r, const char *name, const char *why)
{
	struct bench_row *row = bench_result_add(r);

	assert(row);
	bench_row_name(row, name, "on", "ticks");
	row->peer = true;
	bench_row_skip(row, "%s", why);
}

static inline struct bench_row *sample_batch(struct bench_result *r, unsigned size,
					     const char *policy, double apart)
{
	struct bench_row *row =
		sample_row(r, "batch", "change", "ticks", SAMPLE_FLOOR * (3 + apart / size));

	sample_against(row, "floor", SAMPLE_FLOOR);
	bench_row_param(row, "batch", size);
	bench_row_param_text(row, "policy", policy);
	bench_row_param(row, "executors", 1);
	return row;
}

static inline void sample_batches(struct bench_result *r)
{
	static const unsigned sizes[] = { 1, 10, 100, 1000, 1024, 10000 };
	static const char *const policies[] = { "wait", "membarrier", "auto" };
	static const double apart[] = { 45, 800, 45 };

	for (unsigned p = 0; p < 3; p++)
		for (unsigned i = 0; i < 6; i++)
			sample_batch(r, sizes[i], policies[p], apart[p]);
	bench_row_param_text(sample_batch(r, 1, "auto", 45), "risk", "any");
	bench_row_param_text(sample_batch(r, 1024, "auto", 45), "risk", "any");
}

static inline void sample_mappings(struct bench_result *r)
{
	static const char *const mappings[] = { "protect", "alias" };

	for (unsigned i = 0; i < 2; i++) {
		struct bench_row *row =
			sample_row(r, "aligned", "on", "ticks", SAMPLE_FLOOR * (i ? 1.2 : 40));

		sample_against(row, "floor", SAMPLE_FLOOR);
		bench_row_param_text(row, "mapping", mappings[i]);
		bench_row_param(row, "executors", 1);
	}
}

static inline struct bench_result sample_toggle(void)
{
	struct bench_result r = sample_result("toggle");

	for (unsigned hot = 0; hot < 2; hot++) {
		sample_pair(&r, "aligned", 1.1, false, NULL, NULL, hot);
		for (unsigned i = 0; i < 5; i++)
			sample_pair(&r, "call", (1.08 + 0.02 * i) * (hot ? 1 : 0.5), false,
				    sample_splits[i], NULL, hot);
		for (unsigned i = 1; i < 5; i++) {
			sample_pair(&r, "straddler", 42 + 0.2 * i, false, sample_splits[i], "wait",
				    hot);
			sample_pair(&r, "straddler", 700, false, sample_splits[i], "membarrier",
				    hot);
		}
		sample_pair(&r, "start", 1.7, false, "1|4", "wait", hot);
	}
	sample_mappings(&r);
	sample_batches(&r);
	sample_pair(&r, "flag", 1.0, true, NULL, NULL, 1);
	sample_pair(&r, "hand-membarrier", 760, true, "1|4", NULL, 1);
	sample_pair(&r, "stop-the-world", 90, true, "1|4", NULL, 1);
	sample_skip(&r, "ptrace", "ptrace: Operation not permitted");
	sample_pair(&r, "jvm-volatile", 5.5, true, NULL, NULL, 1);
	sample_pair(&r, "jvm-volatile", 1.5, true, NULL, NULL, 0);
	sample_row(&r, "pc_init", "start", "us", 830);
	return r;
}

/* --- throughput ---------------------------------------------------------------------- */

static inline void sample_flow(struct bench_result *r, const char *name, const char *split,
			       const char *policy, unsigned mode, unsigned executors, double cost)
{
	static const double rates[] = { 0, 1e3, 1e4, 1e5, 1e6, 1e7 };
	static const char *const modes[] = { "call-call", "call-nop" };

	for (unsigned i = 0; i < 6; i++) {
		double got = rates[i] < 1e9 / cost ? rates[i] : 1e9 / cost;
		double share = 1 / (1 + got * cost * 0.3 / 1e9);
		struct bench_row *row =
			sample_row(r, name, "calls", "calls/s", 6e8 * executors * share);

		sample_against(row, "untouched", 6e8 * executors);
		if (split)
			bench_row_param_text(row, "split", split);
		if (policy)
			bench_row_param_text(row, "policy", policy);
		bench_row_param_text(row, "mode", modes[mode]);
		bench_row_param(row, "rate", rates[i]);
		bench_row_param(row, "executors", executors);
		bench_row_extra(row, "toggles_per_s", got);
		if (rates[i] > 0)
			bench_row_extra(row, "balance", 1.02 + 0.05 * i);
	}
}

static inline struct bench_result sample_throughput(void)
{
	struct bench_result r = sample_result("throughput");

	for (unsigned mode = 0; mode < 2; mode++) {
		for (unsigned executors = 1; executors <= 4; executors *= 2) {
			sample_flow(&r, "call", "0", NULL, mode, executors, 130);
			sample_flow(&r, "call", "3|2", NULL, mode, executors, 140);
			sample_flow(&r, "aligned", NULL, NULL, mode, executors, 125);
		}
		sample_flow(&r, "straddler", NULL, "wait", mode, 1, 3000);
		sample_flow(&r, "straddler", NULL, "membarrier", mode, 1, 60000);
		sample_flow(&r, mode ? "flag" : "pointer", NULL, NULL, mode, 1, 110);
		for (unsigned i = 1; i <= 6; i++)
			r.row[r.rows - i].peer = true;
	}
	return r;
}

/* --- The others ----------------------------------------------------------------------- */

static inline struct bench_result sample_latent(void)
{
	static const double over[] = { 0.3, 3.6, 1.2, 1.1, 0.9 };
	struct bench_result r = sample_result("latent");

	for (unsigned i = 0; i < 5; i++) {
		struct bench_row *row = sample_row(&r, "call", "pass", "ticks", 1 + over[i]);

		row->most = 20;
		sample_against(row, "empty", 1);
		bench_row_param_text(row, "split", sample_splits[i]);
		bench_row_extra(row, "over_empty", over[i]);
		row = sample_row(&r, "nop", "pass", "ticks", 1.3);
		row->most = 20;
		sample_against(row, "empty", 1);
		bench_row_param_text(row, "split", sample_splits[i]);
		bench_row_extra(row, "over_empty", 0.3);
	}
	sample_against(sample_row(&r, "flag", "pass", "ticks", 2.1), "empty", 1)->peer = true;
	return r;
}

static inline struct bench_result sample_stall(void)
{
	static const char *const policies[] = { "wait", "membarrier" };
	struct bench_result r = sample_result("stall");

	sample_against(sample_row(&r, "aligned", "stall", "ticks", 310), "idle", 70);
	sample_against(sample_row(&r, "call", "stall", "ticks", 320), "idle", 70);
	for (unsigned i = 0; i < 2; i++) {
		struct bench_row *row =
			sample_row(&r, "straddler", "stall", "ticks", i ? 120000 : 7000);

		sample_against(row, "idle", 70);
		bench_row_param_text(row, "policy", policies[i]);
		bench_row_extra(row, "worst", 190000);
	}
	sample_against(sample_row(&r, "stop-the-world", "stall", "ticks", 21000), "idle", 70)
		->peer = true;
	return r;
}

static inline struct bench_result sample_invoke(void)
{
	struct bench_result r = sample_result("invoke");
	struct bench_row *row;

	for (unsigned i = 0; i < 5; i++) {
		row = sample_row(&r, "call", "call", "ticks", 5.1);
		sample_against(row, "direct", 5);
		row->most = 40;
		bench_row_param_text(row, "split", sample_splits[i]);
		bench_row_extra(row, "over_empty", 4.1);
	}
	row = sample_against(sample_row(&r, "flag", "call", "ticks", 6.3), "direct", 5);
	row->peer = true;
	return r;
}

static inline void sample_uprobe(struct bench_result *r)
{
	static const struct {
		const char *measure;
		double ticks, over, executors;
	} rows[] = {
		{ "off", 4, 0.5, NAN },	      { "on", 3700, 3696, NAN },
		{ "activate", 2e7, NAN, 0 },  { "deactivate", 2e8, NAN, 0 },
		{ "activate", 21e6, NAN, 1 }, { "deactivate", 22e7, NAN, 1 },
	};

	for (unsigned i = 0; i < 6; i++) {
		struct bench_row *row =
			sample_row(r, "uprobe", rows[i].measure, "ticks", rows[i].ticks);

		row->peer = true;
		if (isnan(rows[i].executors))
			bench_row_extra(row, "over_empty", rows[i].over);
		else
			bench_row_param(row, "executors", rows[i].executors);
	}
}

static inline struct bench_result sample_probes(void)
{
	static const char *const names[] = { "counts", "keeps", "any", "vectors" };
	struct bench_result r = sample_result("probes");
	struct bench_row *row;

	for (unsigned i = 0; i < 4; i++) {
		row = sample_row(&r, names[i], "on", "ticks", 6.3 + 8.5 * i);
		sample_against(row, "guard", 6.3);
		bench_row_param_text(row, "site", "entry");
		bench_row_extra(row, "over_empty", 2.8 + 8.5 * i);
	}
	row = sample_against(sample_row(&r, "probe", "activate", "ticks", 156), "call", 104);
	bench_row_param_text(row, "split", "0");
	bench_row_param_text(row, "mapping", "open");
	sample_uprobe(&r);
	return r;
}

static inline struct bench_result sample_growth(void)
{
	static const double sizes[] = { 100, 3000, 100000 };
	struct bench_result r = sample_result("growth");
	struct bench_row *row;

	for (unsigned i = 0; i < 6; i++) {
		double size = sizes[i % 3];

		row = sample_row(&r, i < 3 ? "forget" : "alias", "operation", "us",
				 i < 3 ? 0.7 + size / 100 : 220);
		bench_row_param(row, i < 3 ? "sites" : "aliases", size);
		bench_row_extra(row, "heap_kept", 313);
		if (i == 2)
			bench_row_extra(row, "cut_at", 40000);
	}
	row = sample_row(&r, "forget", "slope", "x per doubling", 1.97);
	bench_row_param_text(row, "of", "sites");
	bench_row_param_text(row, "verdict", "grows");
	return r;
}

/* --- All ---------------------------------------------------------------------------------- */

#define SAMPLE_BENCHMARKS BENCHMARK_COUNT

#define SAMPLE_ROW(name) sample_##name,

static inline struct bench_result sample_bench(unsigned i)
{
	static struct bench_result (*const make[])(void) = { BENCHMARKS(SAMPLE_ROW) };

	assert(i < SAMPLE_BENCHMARKS);
	return make[i]();
}

#endif
