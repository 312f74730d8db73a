/* SPDX-License-Identifier: MIT */
/*
 * Six stages:
 *
 *   proof     the broken protocols must tear, or the oracle sees nothing here
 *   window    one locked store across every boundary inside a line
 *   bracket   equal waits from a grid: where does it still tear
 *   provoke   what makes it tear more often
 *   gaps      the fetch gap itself, and what its tail proposes
 *   campaign  every placement, executor count, crossing and split, at the
 *             candidates, provoked by the worst
 *
 * The plan is a function of the records, so a resumed run takes the same way.
 */
#include "calibrate/search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "calibrate/search_state.h"

#define NOISY_MAX 0.5 /* share of cells that stayed so; above it, the machine is too noisy */

/* Records carry the seed; one per cell, from the run's own. */
static uint64_t seed_of(const struct search *s)
{
	uint64_t z = s->session->seed + s->session->count * UINT64_C(0x9e3779b97f4a7c15);

	return (z ^ (z >> 29)) & INT64_MAX;
}

void search_cell(const struct search *s, struct cell *cell, const struct seat *seat, double seconds)
{
	cell_defaults(cell);
	cell->placement = seat->placement;
	cell->executors = seat->executors;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = seconds > CELL_MIN ? seconds : CELL_MIN;
	cell->stretch = s->plan->stretch;
	cell->seed = seed_of(s);
}

int search_run_cell(struct search *s, const char *stage, unsigned round, const struct cell *cell,
		    const struct cell_record **record)
{
	size_t before = s->session->count;
	int ret = session_run(s->session, stage, round, cell, record);
	int claim = claim_of(cell->crossing);

	if (ret < 0 || claim < 0 || cell->stretch != s->plan->stretch)
		return ret;
	/* A noisy cell was run again: the tears of all its runs count. */
	for (size_t i = before; i < s->session->count; i++)
		torn_add(&s->torn[claim], &s->session->done[i]);
	return ret;
}

/* Split 1 of a pair with one opcode has no mix to see. */
enum code_pair search_pair(unsigned split, unsigned turn)
{
	static const enum code_pair with_opcode[] = { PAIR_CALL_NOP, PAIR_JMP_NOP };
	static const enum code_pair pairs[] = { PAIR_CALL_NOP, PAIR_WORD, PAIR_CALL_CALL,
						PAIR_JMP_NOP };

	return split == 1 ? with_opcode[turn % 2] : pairs[turn % 4];
}

uint64_t search_round_up(double wait)
{
	uint64_t rounded = (uint64_t)ceil(wait / WAIT_STEP) * WAIT_STEP;

	return rounded < WAIT_MIN ? WAIT_MIN : rounded;
}

/* With one CPU threads take turns, and no fetch ever meets a store. */
static bool runs_apart(const struct plan *plan)
{
	for (unsigned i = 0; i < plan->seats; i++)
		if (plan->seat[i].placement != PLACEMENT_OVERSUBSCRIBED)
			return true;
	return false;
}

static const struct claim *worst_claim(const struct estimate *e)
{
	const struct claim *line = &e->claim[CLAIM_LINE], *page = &e->claim[CLAIM_PAGE];

	return page->upper_p > line->upper_p ? page : line;
}

/* Is it the time when the CPUs were far apart that is known too little? */
static const char *far_words(const struct claim *c, const struct estimate *e)
{
	return e->distance.both && c->far_toggles < c->toggles / 2 ? "; CPUs seldom far apart" : "";
}

static bool is_too_noisy(const struct session_noise *n, const struct estimate *e)
{
	return (n->cells && n->stayed > NOISY_MAX * n->cells) ||
	       (e->cells && (double)e->noisy > NOISY_MAX * (double)e->cells);
}

/* What stands against a pass, in words. NULL: nothing. */
static const char *doubt(const struct search *s, const struct estimate *e, char *text, size_t size)
{
	const struct session_noise *noise = &s->session->noise;
	const struct claim *worst = worst_claim(e);
	char words[sizeof(e->reason) - sizeof("too noisy: ")];
	unsigned tried = campaign_tried(s);

	if (*s->session->stop)
		return "interrupted";
	if (!s->sighted)
		return "the oracle did not see the broken protocols tear";
	if (!runs_apart(s->plan))
		return "only one CPU was allowed: nothing ran at the same time";
	if (is_too_noisy(noise, e)) {
		session_noise_summary(s->session, words, sizeof(words));
		snprintf(text, size, "too noisy: %s", words);
		return text;
	}
	if (tried < campaign_cells(s)) {
		snprintf(text, size, "too little time: %u of %u cells tried at these waits", tried,
			 campaign_cells(s));
		return text;
	}
	for (unsigned i = 0; i < CLAIMS; i++) {
		const struct claim *c = &e->claim[i];

		if (c->clean_before <= c->toggles)
			continue;
		snprintf(text, size,
			 "%s crossings: tears came in a storm, after %.3g clean toggles at shorter "
			 "waits; only %.3g at these",
			 crossing_name(c->crossing), (double)c->clean_before, (double)c->toggles);
		return text;
	}
	if (worst->upper_p <= s->plan->promise)
		return NULL;
	snprintf(text, size,
		 "%s crossings: %" PRIu64 " tears in %.3g toggles bound them by %.2g (%.2g "
		 "wanted)%s",
		 crossing_name(worst->crossing), worst->tears, (double)worst->toggles,
		 worst->upper_p, s->plan->promise,
		 worst->drifted ? "; the rate drifted" : far_words(worst, e));
	return text;
}

static void decide(const struct search *s, struct estimate *e)
{
	char text[sizeof(e->reason)];
	const char *why = doubt(s, e, text, sizeof(text));

	e->verdict = VERDICT_INCONCLUSIVE;
	if (e->word_tore) {
		e->verdict = VERDICT_FAIL;
		why = "a store inside one aligned 8-byte word tore";
	} else if (s->beyond && !*s->session->stop && !is_too_noisy(&s->session->noise, e)) {
		e->verdict = VERDICT_FAIL;
		snprintf(text, sizeof(text),
			 "no wait up to %" PRIu64 " ticks keeps tears below %.2g per toggle",
			 s->plan->ceiling, s->plan->promise);
		why = text;
	} else if (!why) {
		e->verdict = VERDICT_PASS;
		snprintf(text, sizeof(text),
			 "%" PRIu64 " tears in %.3g toggles at these waits: below %.2g per toggle",
			 e->tears, (double)e->toggles, e->upper_p);
		why = text;
	}
	snprintf(e->reason, sizeof(e->reason), "%s", why);
}

int search_run(struct session *session, const struct plan *plan, struct estimate *estimate)
{
	static int (*const stages[])(struct search *) = { stage_proof,	 stage_window,
							  stage_bracket, stage_provoke,
							  stage_gaps,	 stage_campaign };
	struct search s = { .session = session, .plan = plan };
	struct waits waits[CLAIMS];
	int ret = 0;

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && ret == 0; i++)
		ret = stages[i](&s);
	progress_end(&session->progress);
	for (unsigned i = 0; i < CLAIMS; i++)
		waits[i] = s.candidate[i].waits;
	estimate_make(estimate, session->done, session->count, waits, plan);
	decide(&s, estimate);
	return ret;
}
