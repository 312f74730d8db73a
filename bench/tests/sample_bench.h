/* SPDX-License-Identifier: MIT */
/*
 * A result of a benchmark that has one of everything: rows with and without baseline,
 * one that was skipped, params of both kinds, and numbers that JSON does not have.
 */
#ifndef BENCH_TESTS_SAMPLE_BENCH_H
#define BENCH_TESTS_SAMPLE_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/method/result.h"
#include "results/tests/sample.h"

/* Figures with a baseline, as of samples with a long tail. */
static inline void sample_bench_figures(struct bench_row *row)
{
	row->samples = 4000;
	row->pairs = 20;
	row->value = (struct bench_value){ 442, 416, 468 };
	row->least = 364;
	row->p5 = 390;
	row->p25 = 416;
	row->p75 = 468;
	row->p95 = 494;
	row->p99 = 546;
	row->most = 1234567;
	row->outliers = 17;
	strcpy(row->against, "floor");
	row->base = (struct bench_value){ 390, 389, 391 };
	row->ratio = (struct bench_value){ 1.1333333333333333, 1.1251, 1.2 };
}

static inline void sample_bench_full_row(struct bench_row *row)
{
	bench_row_name(row, "call", "on", "ticks");
	bench_row_param_text(row, "split", "1|4");
	bench_row_param(row, "executors", 1);
	bench_row_param(row, "rate", 0.1);
	sample_bench_figures(row);
	row->value.low = 416.5;
	bench_row_extra(row, "balance", INFINITY);
	bench_row_extra(row, "over_empty", -0.25);
}

static inline void sample_bench_bare_row(struct bench_row *row)
{
	const struct bench_value none = { NAN, NAN, NAN };

	bench_row_name(row, "jvm-volatile", "setTarget", "ticks");
	row->peer = true;
	row->samples = 1;
	row->value = (struct bench_value){ 995, NAN, NAN };
	row->least = row->p5 = row->p25 = row->p75 = row->p95 = row->p99 = row->most = NAN;
	row->base = row->ratio = none;
}

static inline struct bench_result sample_bench(void)
{
	struct bench_result r = {
		.benchmark = "toggle",
		.date = "2026-01-31T23:59:59Z",
		.seed = INT64_MAX,
		.rounds = 20,
		.seconds = 83.25,
		.seating = { PLACEMENT_SPREAD, 0, 3, { 1, 2, 700 } },
		.waits.first = 9300,
		.waits.second = 10800,
		.waits.stretch = 4,
		.waits_from = "config",
		.distance = { 310, 249, 572 },
		.witness = sample_record(0).result.witness,
	};
	struct bench_row *row;

	sample_bench_full_row(bench_result_add(&r));
	sample_bench_bare_row(bench_result_add(&r));
	row = bench_result_add(&r);
	bench_row_name(row, "straddler", "on", "ticks");
	bench_row_param_text(row, "policy", "wait");
	bench_row_skip(row, "policy wait: %s", "microcode differs");
	return r;
}

#endif
