/* SPDX-License-Identifier: MIT */
/*
 * A journal that has something for every part of the report. Its texts hold what
 * would be markup if it got into the page as it is.
 */
#ifndef CALIBRATE_TESTS_REPORT_SAMPLE_H
#define CALIBRATE_TESTS_REPORT_SAMPLE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/statistics/estimate.h"
#include "results/journal/journal.h"
#include "results/tests/sample.h"
#include "stress/run/gap.h"

#define SAMPLE_MARKUP "<i>\"a\" & 'b'</i>"

static inline struct identity sample_machine(void)
{
	struct identity id = sample_identity();

	snprintf(id.brand, sizeof(id.brand), "Sample " SAMPLE_MARKUP);
	return id;
}

/* Cells end one second apart. */
static inline struct cell_record sample_cell(const char *stage, unsigned i)
{
	struct cell_record r = { .noisy = false };

	cell_defaults(&r.cell);
	snprintf(r.stage, sizeof(r.stage), "%s", stage);
	snprintf(r.key, sizeof(r.key), "%s %u <b>", stage, i);
	snprintf(r.date, sizeof(r.date), "2026-01-31T%02u:%02u:%02uZ", i / 3600 % 24, i / 60 % 60,
		 i % 60);
	r.cell.placement = PLACEMENT_SAME_L3;
	r.cell.seed = i + 1;
	r.result = (struct cell_result){
		.toggles = 1000000,
		.executions = 7654321,
		.old_new = { 4000000, 3654321 },
		.latency = { 480 + 40 * (i % 7), 900, 100000 },
		.ticks = 2600000000,
		.seconds = 1,
		.witness = { .involuntary = 40 + i % 9,
			     .interrupts = 250 + i % 11,
			     .smis = WITNESS_UNKNOWN,
			     .clock = { 1.25 + 0.01 * (i % 5), 1.26 },
			     .steal = 0.001 * (i % 4),
			     .load = 1 },
		.seating = { .executors = 1, .executor = { 1 } },
	};
	return r;
}

static inline void sample_add_event(struct cell_record *r, enum tear_kind kind, unsigned i)
{
	r->result.event[r->result.events++] = (struct tear_event){
		.toggle = 4000 + i,
		.kind = kind,
		.tsc = 1000000000 + i,
		.after_int3 = (int64_t)r->cell.waits.first + 900 + i,
		.after_front = kind == TEAR_OLD_FRONT ? -120 : 250,
		.latency = { 500 + i, 640, 620 },
		.waited = { r->cell.waits.first + 8, r->cell.waits.second + 6 },
		.step = { 40, 1234 + i },
	};
}

static inline void sample_tears(struct cell_record *r, unsigned old_front, unsigned new_front)
{
	r->result.tears[TEAR_OLD_FRONT] = old_front;
	r->result.tears[TEAR_NEW_FRONT] = new_front;
	for (unsigned i = 0; i < old_front && i < 3; i++)
		sample_add_event(r, TEAR_OLD_FRONT, i);
	for (unsigned i = 0; i < new_front && i < 3; i++)
		sample_add_event(r, TEAR_NEW_FRONT, i);
}

/* The paper's waits, which stand still. */
static inline int sample_paper_waits(struct journal *journal, unsigned *i)
{
	static const uint64_t waits[] = { 0, 100, 200, 400, 800, 1600, 3200 };
	int rc = 0;

	for (unsigned n = 0; n < 14 && !rc; n++) {
		struct cell_record r = sample_cell("ladder", (*i)++);
		unsigned tears = (unsigned)(2000 * exp(-(double)waits[n / 2] / 150));

		r.cell.crossing = n % 2 ? CROSSING_PAGE : CROSSING_LINE;
		r.cell.split = 1 + n % 4;
		r.cell.waits.first = r.cell.waits.second = waits[n / 2];
		r.noisy = n == 9;
		r.result.witness.steal += n == 9 ? 0.2 : 0;
		sample_tears(&r, tears * (1 + n % 2), tears / 3 + (n == 11));
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

static inline int sample_provoke(struct journal *journal, unsigned *i)
{
	static const struct {
		unsigned provokers, tears;
	} arms[] = {
		{ 0, 20 },
		{ 1u << PROVOKER_COLD_BACK, 200 },
		{ 1u << PROVOKER_BANDWIDTH, 0 },
		{ 1u << PROVOKER_COLD_BACK | 1u << PROVOKER_CHAIN, 260 },
	};
	int rc = 0;

	for (unsigned n = 0; n < 4 && !rc; n++) {
		struct cell_record r = sample_cell("ladder", (*i)++);

		r.cell.waits.stretch = 4;
		r.cell.provokers = arms[n].provokers;
		r.cell.waits.first = r.cell.waits.second = 500;
		sample_tears(&r, arms[n].tears, 0);
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

/* Of a version before the ladder. The last but one tore at the longest wait of all. */
static inline int sample_campaign(struct journal *journal, unsigned *i)
{
	int rc = 0;

	for (unsigned n = 0; n < 8 && !rc; n++) {
		struct cell_record r = sample_cell("campaign", (*i)++);

		r.cell.placement = n % 2 ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SAME_L3;
		r.cell.executors = r.result.seating.executors = n % 2 ? 2 + n / 4 * 2 : 1;
		r.cell.crossing = n / 2 % 2 ? CROSSING_PAGE : CROSSING_LINE;
		r.cell.waits.first = 4100;
		r.cell.waits.second = 2100;
		r.cell.waits.stretch = 4;
		if (n == 6)
			sample_tears(&r, 3, 0);
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

static inline int sample_others(struct journal *journal, unsigned *i)
{
	struct cell_record control = sample_cell("controls", (*i)++);
	struct cell_record crash = sample_cell("paper", (*i)++);
	int rc;

	control.cell.protocol = PROTOCOL_NO_INT3;
	control.result.tears[TEAR_OLD_FRONT] = 46187;
	rc = journal_write_cell(journal, &control);
	if (rc)
		return rc;
	crash.cell.pair = PAIR_CALL_NOP;
	crash.cell.oracle = ORACLE_CRASH;
	crash.result.outcome = OUTCOME_CRASH;
	crash.result.signal = 4;
	return journal_write_cell(journal, &crash);
}

/* Takes over body. */
static inline int sample_line(struct journal *journal, const char *type, json_t *body)
{
	int rc = body ? journal_write_line(journal, type, body) : -1;

	json_decref(body);
	return rc;
}

static inline json_t *sample_kind(const char *kind, unsigned count, unsigned longest)
{
	json_t *histogram = json_array();
	unsigned left = count;

	for (unsigned low = 128; left; low *= 2) {
		unsigned here = low * 2 > longest ? left : (left + 1) / 2;

		json_array_append_new(histogram, json_pack("[i, i, i]", low, 2 * low, here));
		left -= here;
	}
	return json_pack("{s:s, s:i, s:o, s:[i], s:[i], s:b}", "kind", kind, "count", count,
			 "histogram", histogram, "tail", longest, "tail_times", 123456,
			 "tail_complete", 0);
}

/* "cell", "cpus" and "witness" as a cell line has them. */
static inline void sample_seat(json_t *body, const struct cell_record *record)
{
	static const char *const parts[] = { "cell", "cpus", "witness" };
	json_t *line = record_to_json(record);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		json_object_set(body, parts[i], json_object_get(line, parts[i]));
	json_decref(line);
}

static inline int sample_gaps_run(struct journal *journal, enum crossing crossing,
				  unsigned provokers, enum protocol protocol, unsigned count)
{
	struct cell_record record = sample_cell("gaps", 0);
	json_t *body = json_pack("{s:s, s:s, s:i, s:I, s:I, s:f, s:f, s:i, s:i, s:i, s:{s:i, "
				 "s:i, s:i, s:i, s:i}, s:[o, o]}",
				 "command", "tmax gaps --seed 7 " SAMPLE_MARKUP, "outcome", "done",
				 "error", 0, "stores", (json_int_t)20000000, "executions",
				 (json_int_t)900000000, "seconds", 5.0, "rate", 4e6, "offset", -3,
				 "offset_error", 26, "faked", 17, "discarded", "wrap", 1, "late",
				 10, "preempted", 6, "stale", 0, "lost", 0, "kinds",
				 sample_kind("old-front", count, count ? 2900 : 0),
				 sample_kind("new-front", count / 4, count ? 1400 : 0));

	record.cell.crossing = crossing;
	record.cell.provokers = provokers;
	record.cell.protocol = protocol;
	record.cell.pair = PAIR_WORD;
	sample_seat(body, &record);
	return sample_line(journal, "gaps", body);
}

static inline void sample_claim(struct claim *claim, uint64_t tears, double upper_p)
{
	static const enum placement placements[] = { PLACEMENT_SAME_L3, PLACEMENT_OVERSUBSCRIBED };

	claim->upper_p = upper_p;
	for (unsigned i = 0; i < 2; i++) {
		struct section *s = &claim->section[claim->sections++];

		s->placement = placements[i];
		s->upper_p = upper_p / (i + 1);
		s->count = (struct count){ .slices = 10, .toggles = 2350000 };
		if (i == 0) {
			s->count.tears = tears;
			s->count.worst_tears = tears / 2;
			s->count.worst_toggles = 200000;
		}
		count_add(&claim->count, &s->count);
	}
}

/* Tears become fewer by ten with each rung, and page straddlers need one more. */
static inline int sample_estimate(struct journal *journal)
{
	static struct estimate e;

	e = (struct estimate){
		.verdict = VERDICT_INCONCLUSIVE,
		.require_p = 1e-4,
		.spread = { 0.5, 1.25 },
		.membarrier_ticks = 26000,
		.paper = { .known = true, .found = true, .wait = 1600 },
		.window = { .bytes = 16, .toggles = 1000, .upper_p = 0.003 },
		.runs = 3,
	};
	strcpy(e.reason, "too little was measured " SAMPLE_MARKUP);
	ladder_make(&e.ladder, 6400);
	e.levels = e.ladder.stretched;
	for (unsigned i = 0; i < e.ladder.count + e.ladder.rested; i++) {
		struct level *level = &e.level[i];
		double p = i < e.levels ? pow(10, -(double)i) : 1e-2;

		level->rung = e.ladder.rung[i];
		level->ticks = 520 + 2 * (double)level->rung.first;
		sample_claim(&level->claim[CLAIM_LINE], (uint64_t)(1e6 * p),
			     1.2 * p > 1 ? 1 : 1.2 * p);
		sample_claim(&level->claim[CLAIM_PAGE], (uint64_t)(8e6 * p),
			     10 * p > 1 ? 1 : 10 * p);
		level->upper_p = level->claim[CLAIM_PAGE].upper_p;
		level->at_p[DISTANCE_NEAR] = level->at_p[DISTANCE_FAR] = 1;
	}
	for (unsigned i = 0; i < LONG_WAITS; i++)
		e.long_level[i] =
			(struct level){ .rung = { .first = long_waits[i] },
					.claim = { { .upper_p = 1e-7 }, { .upper_p = 1e-7 } },
					.upper_p = 1e-7,
					.at_p = { 1, 1 } };
	return sample_line(journal, "estimate", estimate_to_json(&e));
}

static inline int sample_run(struct journal *journal)
{
	const struct identity id = sample_machine();
	json_t *untested = json_pack("[{s:s, s:s}]", "placement", "cross-socket", "reason",
				     "one package " SAMPLE_MARKUP);
	int rc = journal_write_run(journal, "default", &id, untested, JOURNAL_NO_SEED);

	json_decref(untested);
	return rc;
}

static inline int sample_measured(struct journal *journal)
{
	unsigned i = 0;
	int rc = sample_paper_waits(journal, &i);

	if (!rc)
		rc = sample_provoke(journal, &i);
	if (!rc)
		rc = sample_campaign(journal, &i);
	return rc ? rc : sample_others(journal, &i);
}

static inline int sample_concluded(struct journal *journal)
{
	int rc = sample_gaps_run(journal, CROSSING_LINE, 0, PROTOCOL_WAIT, 5000);

	if (!rc)
		rc = sample_gaps_run(journal, CROSSING_PAGE, 1u << PROVOKER_COLD_BACK,
				     PROTOCOL_WAIT, 90000);
	if (!rc)
		rc = sample_gaps_run(journal, CROSSING_LINE, 0, PROTOCOL_MEMBARRIER, 0);
	return rc ? rc : sample_estimate(journal);
}

/* All of it. */
static inline int sample_calibration(struct journal *journal)
{
	int rc = sample_run(journal);

	if (!rc)
		rc = sample_measured(journal);
	return rc ? rc : sample_concluded(journal);
}

#endif
