/* SPDX-License-Identifier: MIT */
/*
 * Four stages:
 *
 *   proof     the broken protocols must tear, or the oracle sees nothing here
 *   window    one locked store across every boundary inside a line
 *   bracket   equal waits from a grid, then halving towards the highest that tears
 *   campaign  every placement, executor count, crossing and split at the
 *             candidate; a tear raises it and the count starts again
 *
 * The plan is a function of the records, so a resumed run takes the same way.
 */
#include "calibrate/search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MARGIN	   1.5 /* candidate over the highest wait that tore */
#define RAISE	   1.5 /* of a candidate that tore */
#define WAIT_MIN   200 /* ticks; a smaller candidate saves nothing */
#define WAIT_STEP  100 /* candidates are multiples */
#define HALVINGS   3
#define CELL_SHARE 0.8	/* of a campaign cell's time; the rest starts the child */
#define CELL_MIN   0.05 /* seconds; shorter cells are mostly set-up */

struct search {
	struct session *session;
	const struct plan *plan;
	struct torn torn;
	uint64_t first; /* candidate */
	uint64_t second;
	unsigned round; /* counts campaign passes; part of seed and key */
};

/* Records carry the seed; one per cell, from the run's own. */
static uint64_t seed_of(const struct search *s)
{
	uint64_t z = s->session->seed + s->session->count * UINT64_C(0x9e3779b97f4a7c15);

	return (z ^ (z >> 29)) & INT64_MAX;
}

static void cell_begin(const struct search *s, struct cell *cell, double seconds)
{
	cell_defaults(cell);
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = seconds > CELL_MIN ? seconds : CELL_MIN;
	cell->seed = seed_of(s);
}

static void cell_seat(struct cell *cell, const struct seat *seat)
{
	cell->placement = seat->placement;
	cell->executors = seat->executors;
}

/* Run and take note of what tore. */
static int run(struct search *s, const char *stage, const struct cell *cell,
	       const struct cell_record **record)
{
	int ret = session_run(s->session, stage, s->round, cell, record);

	if (ret == 0)
		torn_add(&s->torn, *record);
	return ret;
}

/* --- proof --- */

static int prove_one(struct search *s, enum protocol protocol, enum crossing crossing,
		     double seconds, uint64_t *tears)
{
	const struct cell_record *record;
	struct cell cell;
	int ret;

	cell_begin(s, &cell, seconds);
	cell_seat(&cell, &s->plan->seat[0]);
	cell.protocol = protocol;
	cell.crossing = crossing;
	cell.stop_tears = 1;
	ret = run(s, "proof", &cell, &record);
	if (ret == 0)
		*tears += cell_result_tears(&record->result);
	return ret;
}

/*
 * no-int3 and front-first leave a mix standing in memory for a whole wait:
 * whoever cannot see that is blind. A naive store tears only where two fetches
 * really come apart, which a machine need not do.
 */
static int prove(struct search *s, bool *sighted)
{
	double seconds = s->plan->budget * s->plan->proof / 4;
	uint64_t standing[2] = { 0, 0 }, naive = 0;
	int ret;

	progress_stage(&s->session->progress, "proof");
	ret = prove_one(s, PROTOCOL_NO_INT3, CROSSING_LINE, seconds, &standing[0]);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_FRONT_FIRST, CROSSING_LINE, seconds, &standing[1]);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_NAIVE, CROSSING_LINE, seconds, &naive);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_NAIVE, CROSSING_PAGE, seconds, &naive);
	*sighted = standing[0] && standing[1];
	return ret;
}

/* --- window --- */

static const enum code_pair pairs[] = { PAIR_CALL_NOP, PAIR_WORD, PAIR_CALL_CALL, PAIR_JMP_NOP };

#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

/* Split 1 of a pair with one opcode has no mix to see. */
static enum code_pair pair_for(unsigned split, unsigned turn)
{
	static const enum code_pair with_opcode[] = { PAIR_CALL_NOP, PAIR_JMP_NOP };

	return split == 1 ? with_opcode[turn % 2] : pairs[turn % PAIRS];
}

static int watch_window(struct search *s)
{
	const struct cell_record *record;
	double seconds = s->plan->budget * s->plan->window / (4 * 4);
	int ret = 0;

	progress_stage(&s->session->progress, "window");
	for (int crossing = CROSSING_NONE; crossing <= CROSSING_32; crossing++) {
		for (unsigned split = 1; split <= 4 && ret == 0; split++) {
			struct cell cell;

			cell_begin(s, &cell, seconds);
			cell_seat(&cell, &s->plan->seat[split % s->plan->seats]);
			cell.protocol = PROTOCOL_ATOMIC;
			cell.crossing = (enum crossing)crossing;
			cell.split = split;
			cell.pair = pair_for(split, (unsigned)crossing + split);
			ret = run(s, "window", &cell, &record);
		}
	}
	return ret;
}

/* --- bracket --- */

static const enum crossing crossings[] = { CROSSING_LINE, CROSSING_PAGE };

#define CROSSINGS (sizeof(crossings) / sizeof(crossings[0]))

/* The seats that the bracket looks at: one executor each, never oversubscribed. */
static bool is_bracket_seat(const struct plan *plan, const struct seat *seat)
{
	return plan->seats == 1 ||
	       (seat->executors == 1 && seat->placement != PLACEMENT_OVERSUBSCRIBED) ||
	       (seat == &plan->seat[0]);
}

static unsigned bracket_seats(const struct plan *plan)
{
	unsigned count = 0;

	for (unsigned i = 0; i < plan->seats; i++)
		count += is_bracket_seat(plan, &plan->seat[i]);
	return count;
}

/* All bracket seats, crossings and splits at one wait for both. */
static int bracket_wait(struct search *s, uint64_t wait, unsigned turn, double seconds)
{
	const struct cell_record *record;
	int ret = 0;

	for (unsigned i = 0; i < s->plan->seats; i++) {
		if (!is_bracket_seat(s->plan, &s->plan->seat[i]))
			continue;
		for (unsigned j = 0; j < 4 * CROSSINGS && ret == 0; j++) {
			struct cell cell;

			cell_begin(s, &cell, seconds);
			cell_seat(&cell, &s->plan->seat[i]);
			cell.crossing = crossings[j / 4];
			cell.split = j % 4 + 1;
			cell.pair = pair_for(cell.split, turn);
			cell.first_wait = wait;
			cell.second_wait = wait;
			ret = run(s, "bracket", &cell, &record);
		}
	}
	return ret;
}

static uint64_t highest_torn(const struct torn *torn)
{
	return torn->wait[0] > torn->wait[1] ? torn->wait[0] : torn->wait[1];
}

/* The grid wait above, where halving starts from. */
static uint64_t grid_above(const struct plan *plan, uint64_t wait)
{
	for (unsigned i = 0; i < plan->wait_count; i++)
		if (plan->waits[i] > wait)
			return plan->waits[i];
	return wait * 2;
}

static int halve(struct search *s, double seconds)
{
	uint64_t above;
	int ret = 0;

	if (!s->torn.seen[0] && !s->torn.seen[1])
		return 0;
	above = grid_above(s->plan, highest_torn(&s->torn));
	for (unsigned i = 0; i < HALVINGS && ret == 0; i++) {
		uint64_t below = highest_torn(&s->torn);
		uint64_t middle = (below + above) / 2;

		if (middle <= below)
			break;
		ret = bracket_wait(s, middle, i + 1, seconds);
		if (highest_torn(&s->torn) < middle)
			above = middle;
	}
	return ret;
}

static int bracket(struct search *s)
{
	const struct plan *plan = s->plan;
	unsigned rows = plan->wait_count + 2 * HALVINGS;
	double seconds =
		plan->budget * plan->bracket / rows / (4 * CROSSINGS) / bracket_seats(plan);
	int ret = 0;

	progress_stage(&s->session->progress, "bracket");
	/* call-nop on the grid: the paper's pair, and one that has a mix at every split. */
	for (unsigned i = 0; i < plan->wait_count && ret == 0; i++)
		ret = bracket_wait(s, plan->waits[i], 0, seconds);
	if (ret == 0)
		ret = halve(s, 2 * seconds);
	return ret;
}

/* --- campaign --- */

static uint64_t round_up(double wait)
{
	uint64_t steps = (uint64_t)ceil(wait / WAIT_STEP);

	return steps * WAIT_STEP < WAIT_MIN ? WAIT_MIN : steps * WAIT_STEP;
}

/*
 * The second wait is never below half the first: its tears are the rarer kind
 * wherever we looked, so their absence in a short bracket says less.
 */
static void choose_candidate(struct search *s)
{
	s->first = round_up((double)s->torn.wait[0] * MARGIN);
	s->second = round_up((double)s->torn.wait[1] * MARGIN);
	if (s->second < round_up((double)s->first / 2))
		s->second = round_up((double)s->first / 2);
}

static void raise_candidate(struct search *s)
{
	uint64_t first = s->first, second = s->second;

	if (s->torn.seen[0] && s->torn.wait[0] >= first)
		s->first = round_up((double)first * RAISE);
	if (s->torn.seen[1] && s->torn.wait[1] >= second)
		s->second = round_up((double)second * RAISE);
	if (s->second < round_up((double)s->first / 2))
		s->second = round_up((double)s->first / 2);
}

static bool candidate_tore(const struct search *s)
{
	return (s->torn.seen[0] && s->torn.wait[0] >= s->first) ||
	       (s->torn.seen[1] && s->torn.wait[1] >= s->second);
}

static unsigned cells_of(const struct plan *plan)
{
	return plan->seats * (unsigned)CROSSINGS * 4;
}

/* One cell of a pass: seat fastest, then crossing, then split. */
static void campaign_cell(const struct search *s, unsigned i, double seconds, struct cell *cell)
{
	unsigned seats = s->plan->seats;

	cell_begin(s, cell, seconds);
	cell_seat(cell, &s->plan->seat[i % seats]);
	cell->crossing = crossings[i / seats % CROSSINGS];
	cell->split = (unsigned)(i / seats / CROSSINGS) % 4 + 1;
	cell->pair = pair_for(cell->split, s->round + cell->split + i / seats);
	cell->first_wait = s->first;
	cell->second_wait = s->second;
	cell->stop_tears = 1;
}

/* One pass over everything. 1: the candidate tore. 2: out of time. */
static int campaign_pass(struct search *s)
{
	const unsigned cells = cells_of(s->plan);
	const struct cell_record *record;
	double slice = CELL_SHARE * session_left(s->session) / cells;

	if (slice > s->plan->slice)
		slice = s->plan->slice;
	for (unsigned i = 0; i < cells; i++) {
		struct cell cell;
		int ret;

		if (session_left(s->session) < CELL_MIN)
			return 2;
		campaign_cell(s, i, slice, &cell);
		ret = run(s, "campaign", &cell, &record);
		if (ret < 0)
			return ret;
		if (candidate_tore(s))
			return 1;
	}
	return 0;
}

static int campaign(struct search *s, bool *beyond)
{
	int ret = 0;

	progress_stage(&s->session->progress, "campaign");
	choose_candidate(s);
	while (ret >= 0 && ret != 2) {
		*beyond = s->first > s->plan->ceiling || s->second > s->plan->ceiling;
		if (*beyond)
			break;
		s->round++;
		ret = campaign_pass(s);
		if (ret == 1)
			raise_candidate(s);
	}
	return ret < 0 ? ret : 0;
}

/* --- verdict --- */

static bool is_try_of(const struct cell_record *record, const struct cell *want)
{
	const struct cell *c = &record->cell;

	/* A child that was killed or hung has tried nothing to its end. */
	return strcmp(record->stage, "campaign") == 0 && record->result.outcome == OUTCOME_DONE &&
	       record->result.toggles > 0 && c->first_wait == want->first_wait &&
	       c->second_wait == want->second_wait && c->placement == want->placement &&
	       c->executors == want->executors && c->crossing == want->crossing &&
	       c->split == want->split;
}

/* How many of a pass's cells were tried at the final waits? */
static unsigned cells_tried(const struct search *s)
{
	const struct session *session = s->session;
	unsigned tried = 0;

	for (unsigned i = 0; i < cells_of(s->plan); i++) {
		struct cell want;

		campaign_cell(s, i, 1, &want);
		for (size_t k = 0; k < session->count; k++) {
			if (is_try_of(&session->done[k], &want)) {
				tried++;
				break;
			}
		}
	}
	return tried;
}

/* With one CPU threads take turns, and no fetch ever meets a store. */
static bool runs_apart(const struct plan *plan)
{
	for (unsigned i = 0; i < plan->seats; i++)
		if (plan->seat[i].placement != PLACEMENT_OVERSUBSCRIBED)
			return true;
	return false;
}

static void decide(const struct search *s, bool sighted, bool beyond, struct estimate *e)
{
	unsigned tried = cells_tried(s);

	e->verdict = VERDICT_INCONCLUSIVE;
	if (*s->session->stop) {
		snprintf(e->reason, sizeof(e->reason), "interrupted");
	} else if (e->word_tore) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "a store inside one aligned 8-byte word tore");
	} else if (!sighted) {
		snprintf(e->reason, sizeof(e->reason),
			 "the oracle did not see the broken protocols tear");
	} else if (!runs_apart(s->plan)) {
		snprintf(e->reason, sizeof(e->reason),
			 "only one CPU was allowed: nothing ran at the same time");
	} else if (beyond) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "no wait up to %" PRIu64 " ticks was free of tears here",
			 s->plan->ceiling);
	} else if (tried < cells_of(s->plan) || e->toggles < s->plan->min_toggles) {
		snprintf(e->reason, sizeof(e->reason),
			 "too little time: %.3g toggles at these waits (%.3g needed), %u of %u "
			 "cells",
			 (double)e->toggles, (double)s->plan->min_toggles, tried,
			 cells_of(s->plan));
	} else {
		e->verdict = VERDICT_PASS;
		snprintf(e->reason, sizeof(e->reason), "no tear in %.3g toggles at these waits",
			 (double)e->toggles);
	}
}

int search_run(struct session *session, const struct plan *plan, struct estimate *estimate)
{
	struct search s = { .session = session, .plan = plan };
	bool sighted = false, beyond = false;
	int ret = prove(&s, &sighted);

	if (ret == 0)
		ret = watch_window(&s);
	if (ret == 0)
		ret = bracket(&s);
	if (ret == 0)
		ret = campaign(&s, &beyond);
	progress_end(&session->progress);
	estimate_make(estimate, session->done, session->count, s.first, s.second);
	decide(&s, sighted, beyond, estimate);
	return ret;
}
