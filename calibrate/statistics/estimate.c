/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/long_wait.h"
#include "stress/base/number.h"

static const enum crossing claimed[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

int claim_of(enum crossing crossing)
{
	for (int i = 0; i < CLAIMS; i++)
		if (claimed[i] == crossing)
			return i;
	return -1;
}

const char *claim_name(int claim)
{
	return crossing_name(claimed[claim]);
}

/* --- Adding up -------------------------------------------------------------------------------- */

static bool is_rung_like(const struct waits *rung, const struct waits *like, unsigned any)
{
	if (any & RUNGS_BELOW)
		return rung->stretch == like->stretch && rung->first <= like->first &&
		       rung->second <= like->second;
	return any & ANY_RUNG || waits_same(rung, like);
}

struct count estimate_count(const struct estimate *e, const struct sums *runs,
			    const struct sum *like, unsigned any)
{
	struct count all = { 0 };

	for (unsigned i = 0; i < e->runs; i++) {
		const struct sums *sums = &runs[i];
		struct count one = { 0 };

		for (size_t k = 0; k < sums->count; k++) {
			const struct sum *s = &sums->sum[k];

			if (s->kind == like->kind && s->crossing == like->crossing &&
			    is_rung_like(&s->rung, &like->rung, any) &&
			    (any & ANY_PLACEMENT || s->placement == like->placement) &&
			    (any & ANY_EXECUTORS || s->executors == like->executors))
				count_add(&one, &s->count);
		}
		if (e->long_run && !(any & ANY_RUNG))
			one = count_as_unit(one);
		count_add(&all, &one);
	}
	return all;
}

/* All counts of one kind, also where they differ in all else. */
static struct count count_of_kind(const struct estimate *e, const struct sums *runs,
				  enum sum_kind kind, enum crossing crossing)
{
	const struct sum like = { .kind = kind, .crossing = crossing };

	return estimate_count(e, runs, &like, ANY_RUNG | ANY_PLACEMENT | ANY_EXECUTORS);
}

/* --- Levels ----------------------------------------------------------------------------------- */

static double cost_of(const struct count *count)
{
	return count->toggles ? count->ticks / (double)count->toggles : 0;
}

/* A section for each placement of the plan, with what was counted there. */
static void count_claim(struct estimate *e, const struct level *level, struct claim *claim,
			enum crossing crossing, const struct sums *runs, const struct plan *plan)
{
	bool listed[PLACEMENT_COUNT] = { false };

	for (unsigned i = 0; i < plan->seats; i++) {
		const struct sum like = { .kind = SUM_WAIT,
					  .rung = level->rung,
					  .crossing = crossing,
					  .placement = plan->seat[i].placement };
		struct section *s = &claim->section[claim->sections];

		if (listed[like.placement])
			continue;
		listed[like.placement] = true;
		claim->sections++;
		*s = (struct section){ .placement = like.placement };
		s->count = estimate_count(e, runs, &like, ANY_EXECUTORS);
		s->below = estimate_count(e, runs, &like, ANY_EXECUTORS | RUNGS_BELOW);
		count_add(&claim->count, &s->count);
	}
}

/*
 * The rate differs between slices, by place and by time. How much is estimated from the rungs
 * that tear, which share site and time with the others: it is the excess of the tears' variance
 * over that of chance.
 */
static double spread_of(const struct estimate *e, int claim)
{
	double excess = 0, expected = 0;

	for (unsigned i = 0; i < e->levels; i++) {
		for (unsigned k = 0; k < e->level[i].claim[claim].sections; k++) {
			const struct count *c = &e->level[i].claim[claim].section[k].count;
			double mean;

			if (c->slices < 2 || c->tears < 2)
				continue;
			mean = (double)c->tears / count_units(c);
			excess += (double)(c->slices - 1) * (count_dispersion(c) - 1) / mean;
			expected += (double)(c->slices - 1);
		}
	}
	return expected > 0 ? excess / expected : SPREAD_NONE;
}

/*
 * Twice the highest rate of all slices for one kind of site, on any rung: no slice to come is
 * taken to have more. 0: none tore.
 */
static double cap_of(const struct estimate *e, int claim)
{
	double worst = 0;

	for (unsigned i = 0; i < e->ladder.count; i++) {
		for (unsigned k = 0; k < e->level[i].claim[claim].sections; k++) {
			const struct count *c = &e->level[i].claim[claim].section[k].count;

			if (c->worst_toggles)
				worst = fmax(worst,
					     (double)c->worst_tears / (double)c->worst_toggles);
		}
	}
	return fmin(1, 2 * worst);
}

double estimate_bound(const struct count *count, double spread, double cap, double confidence)
{
	double each = bound_confidence_each(confidence, 2), slices = count_units(count);
	double mixed = bound_mixed(count->tears, count->toggles, slices, spread, each);

	if (!(cap > 0))
		return bound_mixed(count->tears, count->toggles, slices, spread, confidence);
	return fmin(mixed, bound_capped(count->tears, count->toggles, slices, cap, each));
}

double estimate_section(const struct section *section, double spread, double cap, double confidence)
{
	const struct count *own = &section->count, *below = &section->below;
	double each = bound_confidence_each(confidence, 2);

	if (!own->toggles)
		return 1;
	if (below->slices == own->slices)
		return estimate_bound(own, spread, cap, confidence);
	return fmin(estimate_bound(own, spread, cap, each),
		    estimate_bound(below, spread, cap, each));
}

static void make_levels(struct estimate *e, const struct sums *runs, const struct plan *plan)
{
	for (unsigned i = 0; i < e->ladder.count; i++) {
		struct level *level = &e->level[i];
		struct count first = { 0 };

		level->rung = e->ladder.rung[i];
		for (int c = 0; c < CLAIMS; c++) {
			count_claim(e, level, &level->claim[c], claimed[c], runs, plan);
			/* Where a membarrier was timed, too: at the plan's first seat. */
			if (level->claim[c].sections)
				count_add(&first, &level->claim[c].section[0].count);
		}
		level->ticks = cost_of(&first);
	}
	for (int c = 0; c < CLAIMS; c++) {
		e->spread[c] = spread_of(e, c);
		e->cap[c] = cap_of(e, c);
	}
	for (unsigned i = 0; i < CLAIMS * e->ladder.count; i++) {
		struct level *level = &e->level[i / CLAIMS];
		struct claim *claim = &level->claim[i % CLAIMS];
		double confidence = bound_confidence_each(CONFIDENCE, CLAIMS * claim->sections);

		claim->upper_p = claim->sections ? 0 : 1;
		for (unsigned k = 0; k < claim->sections; k++) {
			struct section *s = &claim->section[k];

			s->upper_p = estimate_section(s, e->spread[i % CLAIMS], e->cap[i % CLAIMS],
						      confidence);
			claim->upper_p = fmax(claim->upper_p, s->upper_p);
		}
		level->upper_p = fmax(level->upper_p, claim->upper_p);
	}
}

/* --- The paper's T_max, the window, what a membarrier costs ----------------------------------- */

static void find_paper_wait(struct estimate *e)
{
	struct paper_wait *paper = &e->paper;

	*paper = (struct paper_wait){ .known = e->levels < e->ladder.count, .stays = true };
	for (unsigned i = e->levels; i < e->ladder.count; i++) {
		const struct count *c = &e->level[i].claim[CLAIM_LINE].count;

		paper->known &= c->toggles > 0;
		if (c->tears == 0 && !paper->found) {
			paper->found = true;
			paper->wait = e->level[i].rung.first;
		} else if (c->tears > 0 && paper->found) {
			paper->stays = false;
		}
	}
	paper->stays &= paper->found;
}

/* The largest window such that no store tore across any boundary inside it. */
static void judge_window(struct estimate *e, const struct sums *runs)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct window *w = &e->window;
	struct count word = count_of_kind(e, runs, SUM_STORE, CROSSING_NONE);
	double confidence = bound_confidence_each(CONFIDENCE, 3);

	*w = (struct window){ .bytes = 8, .word_tore = word.tears > 0, .upper_p = 1 };
	for (unsigned i = 0; i < 3; i++) {
		struct count c = count_of_kind(e, runs, SUM_STORE, inside[i]);
		double p = bound_upper(c.tears, c.toggles, confidence);

		if (w->word_tore || c.tears || !c.toggles)
			return;
		w->bytes *= 2;
		w->toggles = i == 0 || c.toggles < w->toggles ? c.toggles : w->toggles;
		w->upper_p = i == 0 || p > w->upper_p ? p : w->upper_p;
	}
}

/* --- The verdict ------------------------------------------------------------------------------ */

int estimate_best(const struct estimate *e, int claim, double p)
{
	for (unsigned i = 0; i < e->levels; i++) {
		const struct level *level = &e->level[i];

		if ((claim < 0 ? level->upper_p : level->claim[claim].upper_p) <= p)
			return (int)i;
	}
	return -1;
}

/* More tears at the longest waits than chance explains. */
static bool top_tears(const struct estimate *e)
{
	const struct level *top = &e->level[e->levels - 1];

	for (int c = 0; c < CLAIMS; c++) {
		const struct count *count = &top->claim[c].count;

		if (bound_lower(count->tears, count->toggles, CONFIDENCE) > e->require_p)
			return true;
	}
	return false;
}

static double least_bound(const struct estimate *e)
{
	double p = 1;

	for (unsigned i = 0; i < e->levels; i++)
		p = fmin(p, e->level[i].upper_p);
	return p;
}

static void decide_verdict(struct estimate *e)
{
	int best = estimate_best(e, -1, e->require_p);

	if (e->window.word_tore) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "a store inside one aligned 8-byte word tore");
	} else if (best >= 0) {
		e->verdict = VERDICT_PASS;
		snprintf(e->reason, sizeof(e->reason), "waits of %s keep tears below %s per toggle",
			 WAITS(&e->level[best].rung), NUMBER(e->level[best].upper_p));
	} else if (e->levels && top_tears(e)) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "waits of %s tear more often than %s per toggle",
			 WAITS(&e->level[e->levels - 1].rung), NUMBER(e->require_p));
	} else if (least_bound(e) >= 1) {
		e->verdict = VERDICT_INCONCLUSIVE;
		snprintf(e->reason, sizeof(e->reason),
			 "too little was measured: no wait has a bound for lines and pages yet, "
			 "%s is required",
			 NUMBER(e->require_p));
	} else {
		e->verdict = VERDICT_INCONCLUSIVE;
		snprintf(e->reason, sizeof(e->reason),
			 "too little was measured: the best bound is %s per toggle, %s is "
			 "required",
			 NUMBER(least_bound(e)), NUMBER(e->require_p));
	}
}

void estimate_blind(struct estimate *e, const char *reason)
{
	e->blind = true;
	if (e->window.word_tore)
		return;
	e->verdict = VERDICT_INCONCLUSIVE;
	snprintf(e->reason, sizeof(e->reason), "%s", reason);
}

void estimate_make(struct estimate *e, const struct sums *runs, size_t count,
		   const struct plan *plan)
{
	struct count barrier = { 0 };

	*e = (struct estimate){ .require_p = plan->require_p, .runs = (unsigned)count };
	/* Runs of the window or of gaps alone do not tell how waits differ between runs. */
	for (size_t i = 0; i < count; i++) {
		bool has_waits = false;

		for (size_t k = 0; k < runs[i].count; k++)
			has_waits |=
				runs[i].sum[k].kind == SUM_WAIT && runs[i].sum[k].count.toggles;
		e->wait_runs += has_waits;
	}
	e->long_run = e->wait_runs >= LONG_RUN;
	for (int c = 0; c < CLAIMS; c++) {
		struct count one = count_of_kind(e, runs, SUM_MEMBARRIER, claimed[c]);

		count_add(&barrier, &one);
	}
	e->membarrier_ticks = cost_of(&barrier);
	/* All rungs that any run may have tried; those that none has are told as unknown. */
	ladder_make(&e->ladder, (uint64_t)e->membarrier_ticks);
	e->levels = e->ladder.stretched;
	make_levels(e, runs, plan);
	long_estimate(e, runs, plan);
	find_paper_wait(e);
	judge_window(e, runs);
	decide_verdict(e);
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_PASS] = "pass",
		[VERDICT_FAIL] = "fail",
		[VERDICT_INCONCLUSIVE] = "inconclusive",
	};

	return names[verdict];
}
