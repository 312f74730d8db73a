/* SPDX-License-Identifier: MIT */
/*
 * Writes a journal with every name that there is, for validation against the
 * schema: sample_journal FILE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/record/bench_record.h"
#include "bench/tests/sample_bench.h"
#include "calibrate/statistics/evidence.h"
#include "results/journal/journal.h"
#include "results/tests/sample.h"

/* At least as many as the longest list of names has. */
#define RECORDS 12

_Static_assert(PLACEMENT_COUNT <= RECORDS && CROSSING_COUNT <= RECORDS && PAIR_COUNT <= RECORDS &&
		       PROTOCOL_COUNT <= RECORDS && PROVOKER_COUNT < RECORDS &&
		       OUTCOME_COUNT <= RECORDS,
	       "some names would not be written");

static int write_cells(struct journal *journal)
{
	int rc = 0;

	for (unsigned i = 0; i < RECORDS && !rc; i++) {
		struct cell_record r = sample_record(i);

		r.cell.placement = (enum placement)(i % PLACEMENT_COUNT);
		r.cell.crossing = (enum crossing)(i % CROSSING_COUNT);
		r.cell.pair = (enum code_pair)(i % PAIR_COUNT);
		r.cell.protocol = (enum protocol)(i % PROTOCOL_COUNT);
		r.cell.oracle = (enum oracle)(i % ORACLE_KINDS);
		r.cell.provokers = i < PROVOKER_COUNT ? 1u << i : PROVOKERS_ALL;
		r.result.event[0].kind = (enum tear_kind)(i % TEAR_KINDS);
		r.result.outcome = (enum outcome)(i % OUTCOME_COUNT);
		r.result.signal = r.result.outcome == OUTCOME_CRASH ? 11 : 0;
		r.result.error = r.result.outcome == OUTCOME_ERROR ? -12 : 0;
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

static json_t *section(void)
{
	return json_pack("{s:s, s:s, s:I, s:i, s:f, s:i, s:n}", "placement", "spread", "crossing",
			 "page", "toggles", (json_int_t)3000000000, "tears", 0, "upper_p", 1e-9,
			 "torn_first", 2000, "torn_second");
}

static json_t *claim(const char *crossing)
{
	return json_pack("{s:s, s:i, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:b, s:n, s:i}", "crossing",
			 crossing, "first_wait", 3000, "second_wait", 2500, "toggles",
			 (json_int_t)3000000000, "tears", 2, "far_toggles", 1000, "far_tears", 1,
			 "upper_p", 1e-9, "drift_p", 0.25, "drifted", 0, "torn_first",
			 "torn_second", 2000);
}

static json_t *arm(unsigned provokers, json_t *ratio)
{
	char names[PROVOKERS_MAX];

	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:o, s:f}", "provokers",
			 provokers_name(provokers, names), "rest", 2000, "loop", 64, "toggles",
			 1000000, "tears", 3, "rate", 3e-6, "lower", 0.0, "upper", 8e-6, "ratio",
			 ratio, "p", 0.5);
}

static json_t *worst(void)
{
	char command[1024];
	struct cell cell;

	cell_defaults(&cell);
	cell_command(&cell, command, sizeof(command));
	return json_pack("{s:s, s:i, s:i}", "command", command, "toggles", 1000000, "tears", 2);
}

static int write_estimate_of_waits(struct journal *journal)
{
	json_t *body;
	int rc;

	body = json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:i, s:f, s:f, s:f, s:i, s:n, s:b, s:i, "
			 "s:i, s:f, s:{s:i, s:i, s:[{s:s, s:i, s:i}]}, s:i, s:i, s:[o,o], s:[o], "
			 "s:[o,o], s:[o], s:s}",
			 "verdict", "pass", "reason", "", "first_wait", 3000, "second_wait", 2500,
			 "stretch", 4, "toggles", (json_int_t)3000000000, "tears", 4, "upper_p",
			 1e-9, "pooled_p", 1e-10, "confidence", 0.95, "torn_first", 2000,
			 "torn_second", "tears_here", 1, "window", 16, "window_toggles", 1000,
			 "window_p", 1.0, "distance", "cells", 30, "far", 12, "placements",
			 "placement", "spread", "least", 150, "greatest", 640, "cells", 40, "noisy",
			 3, "claims", claim("line"), claim("page"), "sections", section(), "arms",
			 arm(0, json_null()), arm(1u << PROVOKER_CHAIN, json_real(2.5)), "worst",
			 worst(), "torn_cell", "bracket/3");
	rc = journal_write_line(journal, "estimate", body);
	json_decref(body);
	return rc;
}

/* Two slices at one rung, and one by membarrier. */
static int make_sums(struct sums *sums)
{
	struct cell_record r = sample_record(0);
	int rc = 0;

	r.cell.oracle = ORACLE_COUNT;
	r.cell.waits.first = r.cell.waits.second = 400;
	r.cell.waits.stretch = LADDER_STRETCH;
	r.cell.placement = PLACEMENT_SPREAD;
	r.result.outcome = OUTCOME_DONE;
	for (unsigned i = 0; i < 3 && !rc; i++) {
		r.cell.protocol = i < 2 ? PROTOCOL_WAIT : PROTOCOL_MEMBARRIER;
		r.cell.crossing = i % 2 ? CROSSING_PAGE : CROSSING_LINE;
		rc = sums_add_record(sums, &r);
	}
	return rc;
}

static int write_estimate(struct journal *journal, const struct sums *sums)
{
	static struct estimate e;
	struct plan plan = *plan_find("default");
	struct sums run = *sums;
	json_t *body;
	int rc;

	plan.seat[plan.seats++] = (struct seat){ PLACEMENT_SPREAD, 1 };
	estimate_make(&e, &run, 1, &plan);
	body = estimate_to_json(&e);
	rc = body ? journal_write_line(journal, "estimate", body) : -ENOMEM;
	json_decref(body);
	return rc;
}

static int write_evidence(const char *path, const struct identity *id, const struct sums *sums)
{
	struct evidence_run run = { .sums = *sums };
	int rc;

	evidence_stamp(&run, "default", id, &(struct cpus){ { 3 } }, NULL);
	rc = evidence_append(path, &run);
	return rc ? rc : evidence_begin_epoch(path, "dropped by the user");
}

static int write_gaps(struct journal *journal)
{
	static struct gap_result r;
	struct cell cell;
	json_t *body;
	int rc;

	gap_defaults(&cell);
	cell.crossing = CROSSING_PAGE;
	r.stores = 1000000;
	r.executions = 3000000000;
	r.seconds = 5;
	r.offset.offset = -12;
	r.offset.error = 34;
	for (unsigned i = 0; i < GAP_REASONS; i++)
		r.discarded[i] = i + 1;
	for (unsigned i = 0; i < GAP_KINDS; i++) {
		gap_tally_add(&r.kind[i], 910, 5);
		gap_tally_add(&r.kind[i], 950, 77);
	}
	r.witness = sample_record(0).result.witness;
	r.seating.executors = 1;
	r.seating.executor[0] = 1;
	body = gap_to_json(&cell, &r);
	rc = journal_write_line(journal, "gaps", body);
	json_decref(body);
	return rc;
}

static int write_tail(struct journal *journal)
{
	json_t *body;
	int rc;

	body = json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:b, s:s, "
			 "s:f, s:n, s:n, s:f, s:[[f,i,f,f]]}",
			 "source", "gaps", "crossing", "page", "kind", "old-front", "provokers",
			 "cold-back+load", "stores", 1000000, "threshold", 900.0, "exceedances",
			 123, "xi", -0.125, "sigma", 80.5, "independence_p", 0.5, "stationarity_p",
			 0.25, "fit_p", 0.001, "accepted", 0, "reason", "does not fit", "target_p",
			 1e-9, "level", "level_upper", "confidence", 0.95, "thresholds", 900.0, 123,
			 0.001, -0.125);
	rc = journal_write_line(journal, "tail", body);
	json_decref(body);
	return rc;
}

static int write_one_bench(struct journal *journal, const struct bench_result *result)
{
	json_t *body = bench_to_json(result);
	int rc = journal_write_line(journal, "bench", body);

	json_decref(body);
	return rc;
}

/* Full, and with as little as there can be. */
static int write_bench(struct journal *journal)
{
	static const char *const names[] = { "toggle", "throughput", "latent",
					     "stall",  "invoke",     "probes" };
	struct bench_result full = sample_bench();
	int rc = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !rc; i++) {
		struct bench_result bare = { .distance = { NAN, NAN, NAN } };

		strcpy(full.benchmark, names[i]);
		strcpy(bare.benchmark, names[i]);
		rc = write_one_bench(journal, &full);
		if (!rc)
			rc = write_one_bench(journal, &bare);
	}
	bench_result_free(&full);
	return rc;
}

static int write_run(struct journal *journal, const struct identity *id)
{
	json_t *gaps = sample_gaps();
	int rc = journal_write_run(journal, "default", id, gaps, JOURNAL_NO_SEED);

	json_decref(gaps);
	return rc;
}

static int write_concluded(struct journal *journal, const char *path)
{
	struct identity known = sample_identity();
	struct sums sums = { 0 };
	int rc = make_sums(&sums);

	if (!rc)
		rc = write_estimate(journal, &sums);
	if (!rc)
		rc = write_estimate_of_waits(journal);
	if (!rc)
		rc = write_evidence(path, &known, &sums);
	sums_free(&sums);
	return rc;
}

static int write_all(struct journal *journal, const char *path)
{
	struct identity known = sample_identity(), here;
	int rc = write_run(journal, &known);

	if (!rc)
		rc = identity_read(&here);
	if (!rc)
		rc = write_run(journal, &here);
	if (!rc)
		rc = write_cells(journal);
	if (!rc)
		rc = write_gaps(journal);
	if (!rc)
		rc = write_tail(journal);
	if (!rc)
		rc = write_bench(journal);
	return rc ? rc : write_concluded(journal, path);
}

int main(int argc, char **argv)
{
	struct journal *journal = NULL;
	int rc, closed;

	if (argc != 2)
		return 2;
	rc = journal_open(&journal, argv[1]);
	if (!rc)
		rc = write_all(journal, argv[1]);
	closed = journal_close(journal);
	rc = rc ? rc : closed;
	if (rc)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
	return rc != 0;
}
