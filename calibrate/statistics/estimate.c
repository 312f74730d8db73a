/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "patchcore/machine/machine_conf.h"

static const unsigned only_part[PARTS] = { ONLY_NEAR, ONLY_FAR, ONLY_ALONE, ONLY_MOST };
const enum part claim_parts[CLAIM_PARTS] = { PARTS, PART_ALONE, PART_MOST };

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

/*
 * The rate differs between slices, by place and by time. How much is estimated from the rungs
 * that tear, which share site and time with the others: it is the excess of the tears' variance
 * over that of chance. part: of these slices; PARTS: of all.
 */
static double spread_of(const struct estimate *e, int claim, enum part part)
{
	double excess = 0, expected = 0;

	for (unsigned i = 0; i < e->levels; i++) {
		const struct claim *of = &e->level[i].claim[claim];
		const struct section *s = claim_part(of, part);

		for (unsigned k = 0; k < of->sections; k++) {
			const struct count *c = &s[k].count;
			double mean = (double)c->tears / count_units(c);

			if (c->slices < 2 || c->tears < 2)
				continue;
			excess += (double)(c->slices - 1) * (count_dispersion(c) - 1) / mean;
			expected += (double)(c->slices - 1);
		}
	}
	return expected > 0 ? excess / expected : SPREAD_NONE;
}

static struct section make_section(const struct estimate *e, const struct sums *runs,
				   const struct sum *like, unsigned which)
{
	struct section section = {
		.placement = like->placement,
		.count = estimate_count(e, runs, like, ANY_EXECUTORS | which),
		.below = estimate_count(e, runs, like, ANY_EXECUTORS | RUNGS_BELOW | which),
	};

	section.dispersion = count_dispersion(&section.count);
	return section;
}

/* The rate at a wait is at least the one counted there, and at any longer wait. */
static double least_p(const struct section *section)
{
	const struct count *c = &section->count;

	return fmax(section->longer_p, bound_lower(c->tears, c->toggles, CONFIDENCE));
}

static enum sum_kind kind_of_level(const struct estimate *e, const struct level *level)
{
	return level < e->level + e->ladder.count ? SUM_WAIT : SUM_RESTED;
}

/*
 * A section for each placement of the plan, with what was counted there. The cap rises to the
 * highest rate of all slices.
 */
static void make_sections(struct estimate *e, const struct sums *runs, const struct plan *plan,
			  struct level *level, int which)
{
	bool listed[PLACEMENT_COUNT] = { false };
	struct claim *claim = &level->claim[which];

	for (unsigned k = 0; k < plan->seats; k++) {
		const struct sum like = { .kind = kind_of_level(e, level),
					  .rung = level->rung,
					  .crossing = claimed[which],
					  .placement = plan->seat[k].placement };
		struct section *s = &claim->section[claim->sections];

		if (listed[like.placement])
			continue;
		listed[like.placement] = true;
		*s = make_section(e, runs, &like, 0);
		for (int part = 0; part < PARTS; part++)
			claim->part[part][claim->sections] =
				make_section(e, runs, &like, only_part[part]);
		claim->sections++;
		count_add(&claim->count, &s->count);
		if (s->count.worst_toggles)
			e->cap[which] = fmax(e->cap[which], (double)s->count.worst_tears /
								    (double)s->count.worst_toggles);
	}
}

/* From the longest wait down, apart for waits that stretch and for those that do not. */
static void note_longer(struct estimate *e, int claim, unsigned from, unsigned to)
{
	for (unsigned i = to; i-- > from;) {
		const struct claim *longer = i + 1 < to ? &e->level[i + 1].claim[claim] : NULL;
		struct claim *of = &e->level[i].claim[claim];

		for (unsigned k = 0; longer && k < of->sections; k++) {
			of->section[k].longer_p = least_p(&longer->section[k]);
			for (int part = 0; part < PARTS; part++)
				of->part[part][k].longer_p = least_p(&longer->part[part][k]);
		}
	}
}

/* Bounds of sections that hold at once with so much confidence each. Returns the worst. */
static double bound_sections(struct section *s, unsigned count, double spread, double cap,
			     double each)
{
	double worst = count ? 0 : 1;

	for (const struct section *end = s + count; s < end; s++) {
		s->upper_p = estimate_section(s, spread, cap, each);
		worst = fmax(worst, s->upper_p);
	}
	return worst;
}

/*
 * Stores across one boundary in all runs, and the runs that saw any. Returns a bound on their rate
 * where none tore.
 */
static double bound_stores(const struct estimate *e, const struct sums *runs,
			   enum crossing crossing, struct count *all, uint64_t *seen)
{
	uint64_t *stores = calloc(e->runs + 1, sizeof(*stores));
	double p = 1;

	*all = (struct count){ 0 };
	*seen = 0;
	for (unsigned i = 0; i < e->runs; i++) {
		struct estimate one = { .runs = 1 };
		struct count c = count_of_kind(&one, &runs[i], SUM_STORE, crossing);

		count_add(all, &c);
		if (stores && c.toggles)
			stores[(*seen)++] = c.toggles;
	}
	if (stores)
		p = bound_unseen(stores, *seen, WINDOW_SPREAD, CONFIDENCE);
	free(stores);
	return p;
}

/*
 * The largest window such that no store tore across any boundary inside it. The worst of several
 * bounds is below the worst of several rates only if its own bound is: so each has the whole error.
 */
static void judge_window(struct estimate *e, const struct sums *runs, unsigned widest)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct window *w = &e->window;
	struct count word = count_of_kind(e, runs, SUM_STORE, CROSSING_NONE);
	bool known = !word.tears;

	*w = (struct window){
		.bytes = 8,
		.word_tore = word.tears > 0,
		.upper_p = 1,
		.ticks = cost_of(&word),
	};
	for (unsigned i = 0; i < 3; i++) {
		struct count c;
		uint64_t seen;
		double p = bound_stores(e, runs, inside[i], &c, &seen);

		if (!w->torn && (c.tears || (widest && 8u << i >= widest))) {
			w->torn = 8u << i;
			w->across = inside[i];
			w->stored = c;
		}
		known &= !w->torn && c.toggles;
		if (!known)
			continue;
		w->bytes *= 2;
		w->toggles = i == 0 || c.toggles < w->toggles ? c.toggles : w->toggles;
		w->runs = i == 0 || seen < w->runs ? seen : w->runs;
		w->upper_p = i == 0 || p > w->upper_p ? p : w->upper_p;
		w->ticks = cost_of(&c);
	}
}

static bool tears_more_often(const struct count *count, double p)
{
	return bound_lower(count->tears, count->toggles, CONFIDENCE) > p;
}

/*
 * Sites inside a line where one store is not enough are changed by the waits for lines, and a bound
 * for lines speaks for them, too. Fewer slices have such sites, so they bound nothing by
 * themselves; but where they tear more often than that bound, theirs is the level's. Returns
 * whether it is. count: gets theirs.
 */
static bool heed_inside(const struct estimate *e, const struct sums *runs,
			const struct level *level, unsigned only, double spread,
			struct count *count, double *p)
{
	const struct sum like = { .kind = kind_of_level(e, level),
				  .rung = level->rung,
				  .crossing = e->window.across };

	*count = estimate_count(e, runs, &like, ANY_PLACEMENT | ANY_EXECUTORS | only);
	if (!tears_more_often(count, *p))
		return false;
	*p = estimate_bound(count, spread, e->cap[CLAIM_LINE], CONFIDENCE);
	return true;
}

/*
 * All slices, those left alone and those of most executors are bounded each by itself: the worst
 * of them bounds the claim. The largest of some bounds that hold each bounds the worst of the
 * rates, so these do not share the error.
 */
static void bound_claim(const struct estimate *e, struct claim *claim, int which)
{
	double each = bound_confidence_each(CONFIDENCE, CLAIMS * claim->sections);

	for (unsigned i = 0; i < CLAIM_PARTS; i++) {
		struct section *s = (struct section *)claim_part(claim, claim_parts[i]);
		double p;

		/* Stores of before do not say what was provoked. */
		if (claim_parts[i] == PART_ALONE && !e->tells_alone)
			continue;
		p = bound_sections(s, claim->sections, e->spread[which], e->cap[which], each);
		if (i > 0 && p <= claim->upper_p)
			continue;
		claim->upper_p = p;
		claim->rests = (struct count){ 0 };
		for (unsigned k = 0; k < claim->sections; k++)
			count_add(&claim->rests, s[k].lent ? &s[k].below : &s[k].count);
	}
}

static void make_levels(struct estimate *e, const struct sums *runs, const struct plan *plan)
{
	unsigned all = e->ladder.count + e->ladder.rested;
	struct count inside;

	for (unsigned i = 0; i < all; i++) {
		struct level *level = &e->level[i];
		struct count first = { 0 };

		level->rung = e->ladder.rung[i];
		for (int c = 0; c < CLAIMS; c++) {
			make_sections(e, runs, plan, level, c);
			/* Where a membarrier was timed, too: at the plan's first seat. */
			if (level->claim[c].sections)
				count_add(&first, &level->claim[c].section[0].count);
		}
		level->ticks = cost_of(&first);
	}
	for (int c = 0; c < CLAIMS; c++) {
		note_longer(e, c, 0, e->levels);
		note_longer(e, c, e->levels, e->ladder.count);
		note_longer(e, c, e->ladder.count, all);
		e->spread[c] = spread_of(e, c, PARTS);
		/* Twice the highest rate: no slice to come is taken to have more. */
		e->cap[c] = fmin(1, 2 * e->cap[c]);
	}
	for (unsigned i = 0; i < CLAIMS * all; i++) {
		struct level *level = &e->level[i / CLAIMS];
		unsigned c = i % CLAIMS;
		struct claim *claim = &level->claim[c];

		bound_claim(e, claim, (int)c);
		if (c == CLAIM_LINE && e->window.torn) {
			if (heed_inside(e, runs, level, 0, e->spread[c], &inside, &claim->upper_p))
				claim->rests = claim->inside = inside;
			if (level->rung.stretch)
				count_add(&e->window.waited, &inside);
		}
		level->upper_p = fmax(level->upper_p, claim->upper_p);
	}
}

/* All sections of a level hold at once near and far, too, which is another claim. */
static void judge_distances(struct estimate *e, const struct sums *runs)
{
	unsigned all = e->ladder.count + e->ladder.rested;
	struct count inside;

	for (unsigned i = 0; i < DISTANCES * CLAIMS * all; i++) {
		unsigned d = i % DISTANCES, c = i / DISTANCES % CLAIMS;
		struct level *level = &e->level[i / DISTANCES / CLAIMS];
		struct claim *claim = &level->claim[c];
		double spread = spread_of(e, (int)c, (enum part)d), *p = &claim->at_p[d];

		*p = bound_sections(
			claim->part[d], claim->sections, spread, e->cap[c],
			bound_confidence_each(CONFIDENCE, DISTANCES * CLAIMS * claim->sections));
		/* Sites inside a line that were not counted at this distance: by all distances. */
		if (c == CLAIM_LINE && claim->inside.toggles &&
		    !heed_inside(e, runs, level, only_part[d], spread, &inside, p) &&
		    !inside.toggles)
			*p = fmax(*p, claim->upper_p);
		level->at_p[d] = fmax(level->at_p[d], *p);
	}
}

/* --- What is told ----------------------------------------------------------------------------- */

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

bool level_is_known(const struct level *level)
{
	return level->claim[CLAIM_LINE].count.toggles && level->claim[CLAIM_PAGE].count.toggles;
}

/* As machine.conf has them: what is not known is not there, and costs are whole ticks. */
int estimate_accepted(const struct estimate *e, int claim, double p)
{
	static const enum machine_conf_sites sites[CLAIMS] = { SITES_LINE, SITES_PAGE };
	struct machine_conf conf = { .levels = e->levels, .rested = e->ladder.rested };
	/* Between these stand the constant waits, which no config has. */
	unsigned apart = e->ladder.count - e->levels, best;
	const struct machine_conf_level *accepted;

	for (unsigned i = 0; i < conf.levels + conf.rested; i++) {
		const struct level *level = &e->level[i < e->levels ? i : i + apart];
		bool is_known = level_is_known(level) && (i < e->levels || level->upper_p < 1);

		conf.level[i] = (struct machine_conf_level){
			.ticks = (uint64_t)rint(level->ticks),
			.line.upper_p = is_known ? level->claim[CLAIM_LINE].upper_p : INFINITY,
			.page.upper_p = is_known ? level->claim[CLAIM_PAGE].upper_p : INFINITY,
		};
	}
	accepted = machine_conf_accepted(&conf, sites[claim], p);
	best = accepted ? (unsigned)(accepted - conf.level) : 0;
	return !accepted ? -1 : (int)(best < e->levels ? best : best + apart);
}

int estimate_best(const struct estimate *e, int claim, double p)
{
	int best = estimate_accepted(e, claim, p);

	return best < (int)e->levels ? best : -1;
}

double estimate_kept(const struct estimate *e, double p)
{
	double worst = 0;

	for (int c = 0; c < CLAIMS; c++) {
		int best = estimate_best(e, c, p);

		worst = fmax(worst, best < 0 ? INFINITY : e->level[best].claim[c].upper_p);
	}
	return worst;
}

void estimate_decide(struct estimate *e, double require_p)
{
	double kept = estimate_kept(e, require_p), least = 1;
	const struct level *top = e->levels ? &e->level[e->levels - 1] : NULL;
	bool tears = false;

	e->require_p = require_p;
	for (unsigned i = 0; i < e->levels; i++)
		least = fmin(least, e->level[i].upper_p);
	/* More tears at the longest waits than chance explains. */
	for (int c = 0; c < CLAIMS && top; c++)
		tears |= tears_more_often(&top->claim[c].count, require_p) ||
			 tears_more_often(&top->claim[c].inside, require_p);
	if (e->window.word_tore) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "a store inside one aligned 8-byte word tore");
	} else if (kept <= require_p) {
		e->verdict = VERDICT_PASS;
		snprintf(e->reason, sizeof(e->reason),
			 "a wait keeps tears below %s per change, where %s is required",
			 NUMBER(kept), NUMBER(require_p));
	} else if (tears) {
		e->verdict = VERDICT_FAIL;
		snprintf(e->reason, sizeof(e->reason),
			 "even the longest waits tear more often than %s per change",
			 NUMBER(require_p));
	} else {
		e->verdict = VERDICT_INCONCLUSIVE;
		snprintf(e->reason, sizeof(e->reason),
			 "too little was measured: no wait is known to keep tears below %s per "
			 "change; so far %s%s",
			 NUMBER(require_p), least < 1 ? "the best bound is " : "none has a bound",
			 least < 1 ? NUMBER(least) : "");
	}
}

void estimate_blind(struct estimate *e, const char *reason)
{
	e->blind = true;
	/* Nothing was seen to be whole. */
	e->window.bytes = 8;
	e->window.toggles = e->window.runs = 0;
	e->window.upper_p = 1;
	if (e->window.word_tore)
		return;
	e->verdict = VERDICT_INCONCLUSIVE;
	snprintf(e->reason, sizeof(e->reason), "%s", reason);
}

void estimate_so_far(struct estimate *e, const struct sums *runs, size_t count,
		     const struct plan *plan)
{
	struct count barrier = { 0 };
	unsigned alone_runs = 0;

	*e = (struct estimate){ .require_p = plan->require_p, .runs = (unsigned)count };
	/* Runs of the window or of gaps alone do not tell how waits differ between runs. */
	for (size_t i = 0; i < count; i++) {
		bool has_waits = false, has_alone = false;

		for (size_t k = 0; k < runs[i].count; k++) {
			const struct sum *s = &runs[i].sum[k];

			if (!sum_is_wait(s))
				continue;
			has_waits |= s->count.toggles > 0;
			has_alone |= sum_is_alone(s) && s->count.toggles > 0;
			e->slices += s->count.slices;
			for (int d = 0; d < DISTANCES; d++)
				e->slices_at[d] += s->at[d].slices;
		}
		e->wait_runs += has_waits;
		alone_runs += has_alone;
	}
	e->tells_alone = alone_runs > 0;
	if (e->tells_alone)
		e->wait_runs = alone_runs;
	for (unsigned i = 0; i < plan->seats; i++)
		if (plan->seat[i].executors > e->most[plan->seat[i].placement])
			e->most[plan->seat[i].placement] = plan->seat[i].executors;
	e->long_run = e->wait_runs >= LONG_RUN;
	for (int c = 0; c < CLAIMS; c++) {
		struct count one = count_of_kind(e, runs, SUM_MEMBARRIER, claimed[c]);

		count_add(&barrier, &one);
	}
	e->membarrier_ticks = cost_of(&barrier);
	/* All rungs that any run may have tried; rungs that no run has tried are unknown. */
	ladder_make(&e->ladder, (uint64_t)e->membarrier_ticks);
	e->levels = e->ladder.stretched;
	judge_window(e, runs, plan->widest);
	make_levels(e, runs, plan);
}

void estimate_make(struct estimate *e, const struct sums *runs, size_t count,
		   const struct plan *plan)
{
	estimate_so_far(e, runs, count, plan);
	judge_distances(e, runs);
	long_estimate(e, runs, plan);
	find_paper_wait(e);
	estimate_decide(e, plan->require_p);
}

const char *verdict_name(enum verdict verdict)
{
	return (const char *const[]){ "pass", "fail", "inconclusive" }[verdict];
}
