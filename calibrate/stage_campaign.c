/* SPDX-License-Identifier: MIT */
/*
 * Campaign: every placement, executor count, crossing and split at the candidate
 * waits, in passes, each pass provoked in another of the worst ways.
 *
 * Each claim has candidates of its own. One is given up for a longer one when
 * its tears prove that it breaks the promise, or when there is no longer time
 * to show that it keeps it. Tears alone are no reason: where a rare stall tears
 * at any wait, what can be known is how rare it is.
 */
#include <string.h>

#include "calibrate/bound.h"
#include "calibrate/search_state.h"
#include "calibrate/sequential.h"

#define MARGIN	   1.5 /* candidate over the highest wait that tore in the bracket */
#define RAISE	   1.5 /* of a candidate that is given up */
#define CELL_SHARE 0.8 /* of a cell's time; the rest starts the child */

static const enum crossing crossings[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

/*
 * The second wait is never below half the first: its tears are the rarer kind
 * wherever we looked, so their absence in a short bracket says less.
 */
static void keep_second(struct waits *waits)
{
	uint64_t least = search_round_up((double)waits->first / 2);

	if (waits->second < least)
		waits->second = least;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void choose_candidate(struct search *s, unsigned claim)
{
	const struct torn *torn = &s->torn[claim];
	const struct waits *proposed = &s->proposed[claim];
	struct waits *waits = &s->candidate[claim].waits;

	waits->first = larger(search_round_up((double)torn->wait[0] * MARGIN),
			      search_round_up((double)proposed->first));
	waits->second = larger(search_round_up((double)torn->wait[1] * MARGIN),
			       search_round_up((double)proposed->second));
	keep_second(waits);
}

static bool is_at_candidate(const struct cell *cell, const struct candidate *candidate)
{
	return cell->first_wait == candidate->waits.first &&
	       cell->second_wait == candidate->waits.second;
}

static bool is_campaign_of(const struct search *s, unsigned claim, const struct cell_record *r)
{
	return strcmp(r->stage, "campaign") == 0 && r->cell.crossing == crossings[claim] &&
	       is_at_candidate(&r->cell, &s->candidate[claim]);
}

/* What is known of a placement at a claim's candidate. */
struct tally {
	uint64_t toggles;
	uint64_t tears[TEAR_KINDS];
	uint64_t all;
};

static struct tally tally_of(const struct search *s, unsigned claim, enum placement placement)
{
	struct tally tally = { 0 };

	for (size_t i = 0; i < s->session->count; i++) {
		const struct cell_record *r = &s->session->done[i];

		if (!is_campaign_of(s, claim, r) || r->cell.placement != placement)
			continue;
		tally.toggles += record_toggles(r);
		tally.all += cell_result_tears(&r->result);
		for (unsigned k = 0; k < TEAR_KINDS; k++)
			tally.tears[k] += r->result.tears[k];
	}
	return tally;
}

static bool has_placement(const struct plan *plan, enum placement placement)
{
	for (unsigned i = 0; i < plan->seats; i++)
		if (plan->seat[i].placement == placement)
			return true;
	return false;
}

/* Placements and claims, which share the time between them. */
static unsigned sections_of(const struct plan *plan)
{
	unsigned sections = 0;

	for (int p = 0; p < PLACEMENT_COUNT; p++)
		sections += has_placement(plan, (enum placement)p) ? CLAIMS : 0;
	return sections;
}

/* The error that each bound of the estimate may make, so that all together are right. */
static double alpha_each(const struct search *s)
{
	return (1 - CONFIDENCE) / (sections_of(s->plan) + CLAIMS * s->arms);
}

/* Toggles a second over the cells of the campaign so far; start-up included. */
static double pace(const struct search *s)
{
	double toggles = 0, seconds = 0;

	for (size_t i = 0; i < s->session->count; i++) {
		const struct cell_record *r = &s->session->done[i];

		if (strcmp(r->stage, "campaign") != 0 || r->noisy)
			continue;
		toggles += (double)r->result.toggles;
		seconds += r->result.seconds / CELL_SHARE;
	}
	return seconds > 0 ? toggles / seconds : 0;
}

/*
 * Would the promise be shown if no other tear came in all the time that is left?
 * The placement gets its share of it.
 */
static bool is_hopeless(const struct search *s, const struct tally *tally)
{
	double left = session_left(s->session) * pace(s) / sections_of(s->plan);

	return tally->all > 0 &&
	       sequential_upper(tally->all, tally->toggles + (uint64_t)(left > 0 ? left : 0),
				s->plan->promise, alpha_each(s)) > s->plan->promise;
}

static bool is_given_up(const struct search *s, const struct tally *tally)
{
	if (sequential_decide(tally->all, tally->toggles, s->plan->promise, alpha_each(s)) ==
	    DECISION_REJECT)
		return true;
	/* With no time for another, the bound of this one is worth more than a new start. */
	return is_hopeless(s, tally) && session_left(s->session) > s->plan->budget * 0.1;
}

static void raise_candidate(struct search *s, unsigned claim, const struct tally *tally)
{
	struct waits *waits = &s->candidate[claim].waits;

	/* What cannot be told apart is blamed on both. */
	if (tally->tears[TEAR_OLD_FRONT] || tally->tears[TEAR_OTHER])
		waits->first = search_round_up((double)waits->first * RAISE);
	if (tally->tears[TEAR_NEW_FRONT] || tally->tears[TEAR_OTHER])
		waits->second = search_round_up((double)waits->second * RAISE);
	keep_second(waits);
	s->candidate[claim].round++;
}

static void judge_claim(struct search *s, unsigned claim)
{
	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		struct tally tally;

		if (!has_placement(s->plan, (enum placement)p))
			continue;
		tally = tally_of(s, claim, (enum placement)p);
		if (!is_given_up(s, &tally))
			continue;
		raise_candidate(s, claim, &tally);
		return;
	}
}

static bool is_beyond(const struct search *s)
{
	for (unsigned i = 0; i < CLAIMS; i++)
		if (s->candidate[i].waits.first > s->plan->ceiling ||
		    s->candidate[i].waits.second > s->plan->ceiling)
			return true;
	return false;
}

unsigned campaign_cells(const struct search *s)
{
	return s->plan->seats * CLAIMS * 4;
}

/* One cell of a pass: seat fastest, then crossing, then split. */
static void campaign_cell(const struct search *s, unsigned i, double seconds, struct cell *cell)
{
	unsigned seats = s->plan->seats, claim = i / seats % CLAIMS;

	search_cell(s, cell, &s->plan->seat[i % seats], seconds);
	if (s->arms)
		arm_to_cell(&s->arm[s->pass % s->arms], cell);
	cell->crossing = crossings[claim];
	cell->split = (i / seats / CLAIMS) % 4 + 1;
	cell->pair = search_pair(cell->split, s->pass + cell->split + i / seats);
	cell->first_wait = s->candidate[claim].waits.first;
	cell->second_wait = s->candidate[claim].waits.second;
}

/* One pass over everything. 1: out of time or beyond the ceiling. */
static int campaign_pass(struct search *s)
{
	const unsigned cells = campaign_cells(s);
	const struct cell_record *record;
	double slice = CELL_SHARE * session_left(s->session) / cells;
	int ret = 0;

	/* Three passes at least, one for each arm. */
	if (s->arms > 1 && s->pass < s->arms)
		slice /= s->arms - s->pass;
	if (slice > s->plan->slice)
		slice = s->plan->slice;
	for (unsigned i = 0; i < cells && ret == 0; i++) {
		struct cell cell;
		unsigned claim = i / s->plan->seats % CLAIMS;

		if (session_left(s->session) < CELL_MIN)
			return 1;
		campaign_cell(s, i, slice, &cell);
		ret = search_run_cell(s, "campaign", s->pass, &cell, &record);
		if (ret == 0)
			judge_claim(s, claim);
		s->beyond = is_beyond(s);
		if (s->beyond)
			return 1;
	}
	return ret;
}

int stage_campaign(struct search *s)
{
	int ret = 0;

	progress_stage(&s->session->progress, "campaign");
	for (unsigned i = 0; i < CLAIMS; i++)
		choose_candidate(s, i);
	s->beyond = is_beyond(s);
	while (ret == 0 && !s->beyond) {
		ret = campaign_pass(s);
		s->pass++;
	}
	return ret < 0 ? ret : 0;
}

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

unsigned campaign_tried(const struct search *s)
{
	const struct session *session = s->session;
	unsigned tried = 0;

	for (unsigned i = 0; i < campaign_cells(s); i++) {
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
