/* SPDX-License-Identifier: MIT */
#include "calibrate/session/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "calibrate/statistics/bound.h"

#define ENOUGH	  1e-9 /* a bound that needs no further decade */
#define LACK_MIN  2.0  /* slices at the rarer distance; a rung that lacks fewer does so by chance */
#define UNSEEN	  1e-3 /* slices for a bound that a level without any is taken to need, times it */
#define SURER	  2    /* times as many slices as are needed at least may go to a longer wait */
#define RESTED_IN 3    /* one in so many is at rest, once what is required is kept */

static void shuffle_schedule(struct schedule *s)
{
	for (unsigned i = 0; i < s->kinds; i++)
		s->deck[i] = i;
	for (unsigned i = s->kinds; i > 1; i--) {
		unsigned k = (unsigned)(random_next(&s->random) % i), card = s->deck[i - 1];

		s->deck[i - 1] = s->deck[k];
		s->deck[k] = card;
	}
	s->dealt = 0;
}

/*
 * The paper's constant waits are for its figure: at one seat, across a line. By some of them tears
 * are held against gaps across a page, too: see long_wait.c.
 */
int schedule_make(struct schedule *s, const struct plan *plan, const struct ladder *ladder,
		  uint64_t seed)
{
	unsigned rungs = ladder->count + ladder->rested;
	size_t room = (size_t)rungs * CLAIMS * (plan->seats + 1);

	*s = (struct schedule){ .random = seed };
	s->kind = calloc(room, sizeof(*s->kind));
	s->deck = calloc(room, sizeof(*s->deck));
	if (!s->kind || !s->deck) {
		schedule_free(s);
		return -ENOMEM;
	}
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		s->now[p] = DISTANCES;
	for (unsigned i = 0; i < rungs && plan->seats; i++) {
		bool is_paper = i >= ladder->stretched && i < ladder->count;
		unsigned seats = is_paper ? 1 : plan->seats;
		uint64_t wait = ladder->rung[i].first;

		for (unsigned k = 0; k < CLAIMS * seats; k++) {
			const struct seat *seat = &plan->seat[k % seats];

			if (k >= seats && is_paper && wait != 200 && wait != 400 && wait != 800 &&
			    wait != 1600)
				continue;
			s->kind[s->kinds++] = (struct sum){
				.kind = i < ladder->count ? SUM_WAIT : SUM_RESTED,
				.rung = ladder->rung[i],
				.crossing = k < seats ? CROSSING_LINE : CROSSING_PAGE,
				.placement = seat->placement,
				.executors = seat->executors,
			};
		}
	}
	shuffle_schedule(s);
	return 0;
}

void schedule_free(struct schedule *s)
{
	free(s->kind);
	free(s->deck);
	s->kind = NULL;
	s->deck = NULL;
}

/* --- Where a decade is nearest ---------------------------------------------------------------- */

/* Are so many slices more enough, if they count as the section's have? */
static bool is_enough(const struct estimate *e, int claim, const struct section *s, double slices,
		      double confidence, double target)
{
	const struct count *c = &s->count;
	double times = slices / (double)c->slices;
	const struct count more = {
		.slices = (uint64_t)slices,
		.toggles = (uint64_t)((double)c->toggles * times),
		.tears = (uint64_t)ceil((double)c->tears * times),
		.squares = c->squares * times,
	};
	struct section then = *s;

	count_add(&then.count, &more);
	count_add(&then.below, &more);
	/* A bound is never below the rate: most are ruled out by that alone. */
	if ((double)then.count.tears > target * (double)then.count.toggles &&
	    (double)then.below.tears > target * (double)then.below.toggles)
		return false;
	return estimate_section(&then, e->spread[claim], e->cap[claim], confidence) <= target;
}

/* How many slices more it takes. INFINITY: more than any run can make. */
static double slices_needed(const struct estimate *e, int claim, const struct section *s,
			    double confidence, double target)
{
	static const double tries[] = { 1, 2, 3, 5, 8, 12, 20, 30, 50, 100, 300, 1000, 10000 };
	size_t i = 0, last = sizeof(tries) / sizeof(tries[0]) - 1;

	if (s->upper_p <= target)
		return 0;
	if (!s->count.toggles)
		return UNSEEN / target;
	if (!is_enough(e, claim, s, tries[last], confidence, target))
		return INFINITY;
	while (i < last && !is_enough(e, claim, s, tries[i], confidence, target))
		i++;
	return tries[i];
}

struct goal {
	double slices; /* that it takes */
	unsigned level;
	int claim;
	enum placement placement; /* whose evidence is furthest behind */
};

/* By the largest number of executors: such a slice counts for each part of a claim. */
static const struct sum *pick_sum(struct schedule *s, const struct estimate *e,
				  const struct goal *goal)
{
	const struct sum like = {
		.kind = goal->level < e->ladder.count ? SUM_WAIT : SUM_RESTED,
		.rung = e->level[goal->level].rung,
		.crossing = claimed[goal->claim],
		.placement = goal->placement,
		.executors = e->most[goal->placement],
	};

	return sums_find(&(struct sums){ s->kind, s->kinds }, &like);
}

/* What a claim of a level lacks to keep target: the slices, and the neediest placement. */
static struct goal goal_of_claim(const struct estimate *e, unsigned level, int c, double target)
{
	const struct claim *claim = &e->level[level].claim[c];
	double confidence = bound_confidence_each(CONFIDENCE, CLAIMS * claim->sections), most = 0;
	struct goal goal = { .level = level, .claim = c };

	for (unsigned k = 0; k < claim->sections; k++) {
		double lacks = 0;

		/* What one part lacks comes to the others, too. */
		for (int i = 0; i < CLAIM_PARTS; i++)
			lacks = fmax(lacks,
				     slices_needed(e, c, &claim_part(claim, claim_parts[i])[k],
						   confidence, target));
		goal.slices += lacks;
		if (lacks <= most)
			continue;
		most = lacks;
		goal.placement = claim->section[k].placement;
	}
	return goal;
}

/*
 * Of these levels, which stand in order of rising costs: where a decade is nearest for a claim.
 * *kept: gets the claim's best bound.
 */
static struct goal nearest_goal(const struct estimate *e, unsigned from, unsigned count, int c,
				double *kept)
{
	struct goal best = { .slices = INFINITY };
	double least = INFINITY, surer = e->cap[c] > 0 ? SURER : 1;

	*kept = 1;
	for (unsigned i = from; i < from + count; i++) {
		struct goal goal;
		double target;

		/* A bound that a cheaper level keeps already is no goal for this one. */
		*kept = fmin(*kept, e->level[i].claim[c].upper_p);
		if (*kept <= ENOUGH)
			break;
		target = pow(10, ceil(log10(*kept) - 1e-9) - 1);
		if (*kept > e->require_p && target > e->require_p)
			target = e->require_p;
		goal = goal_of_claim(e, i, c, target);
		if (goal.slices > 0 && goal.slices < least * surer)
			best = goal;
		least = fmin(least, goal.slices > 0 ? goal.slices : INFINITY);
	}
	return best;
}

/* The goal of the claim that keeps less, or of the other one. */
static struct goal goal_of_worse(const struct estimate *e, unsigned from, unsigned count,
				 double *kept)
{
	double line, page;
	struct goal of_line = nearest_goal(e, from, count, CLAIM_LINE, &line);
	struct goal of_page = nearest_goal(e, from, count, CLAIM_PAGE, &page);

	*kept = fmax(line, page);
	return (line > page && isfinite(of_line.slices)) || !isfinite(of_page.slices) ? of_line
										      : of_page;
}

const struct sum *schedule_focus(struct schedule *s, const struct estimate *e)
{
	double kept, kept_rested;
	struct goal hot = goal_of_worse(e, 0, e->levels, &kept);
	struct goal rested = goal_of_worse(e, e->ladder.count, e->ladder.rested, &kept_rested);
	bool rests = kept <= e->require_p &&
		     (kept_rested > e->require_p || s->turn / 2 % RESTED_IN == 0);
	const struct goal *goal = rests ? &rested : &hot;

	if (!isfinite(goal->slices))
		goal = rests ? &hot : &rested;
	return isfinite(goal->slices) ? pick_sum(s, e, goal) : NULL;
}

/* --- What is rare ----------------------------------------------------------------------------- */

/* Slices at a distance: of the i-th claim of all levels, and its k-th section. */
static double slices_at(const struct estimate *e, unsigned i, unsigned k, enum distance d)
{
	return (double)e->level[i / CLAIMS].claim[i % CLAIMS].part[d][k].count.slices;
}

/* The share of a placement's slices, on all rungs, that were at that distance. */
static double share_of_time(const struct estimate *e, unsigned k, enum distance now)
{
	double there = 0, all = 0;

	for (unsigned i = 0; i < CLAIMS * e->ladder.count; i++) {
		there += slices_at(e, i, k, now);
		for (int d = 0; d < DISTANCES; d++)
			all += slices_at(e, i, k, (enum distance)d);
	}
	return all > 0 ? there / all : 0;
}

const struct sum *schedule_rare(struct schedule *s, const struct estimate *e)
{
	const struct claim *any = &e->level[0].claim[0]; /* all have the same placements */
	struct goal goal = { 0 };
	double most = LACK_MIN;

	for (unsigned k = 0; k < any->sections; k++) {
		enum placement placement = any->section[k].placement;
		enum distance now = s->now[placement];
		double share = now < DISTANCES ? share_of_time(e, k, now) : 1;

		for (unsigned i = 0; i < CLAIMS * e->levels && share < 0.5; i++) {
			double all = slices_at(e, i, k, DISTANCE_NEAR) +
				     slices_at(e, i, k, DISTANCE_FAR);
			double lacks = share * all - slices_at(e, i, k, now);

			if (lacks <= most)
				continue;
			most = lacks;
			goal = (struct goal){ .level = i / CLAIMS,
					      .claim = (int)(i % CLAIMS),
					      .placement = placement };
		}
	}
	return most > LACK_MIN ? pick_sum(s, e, &goal) : NULL;
}

void schedule_saw(struct schedule *s, enum placement placement, enum distance distance)
{
	if (distance < DISTANCES)
		s->now[placement] = distance;
}

const struct sum *schedule_next(struct schedule *s, const struct estimate *e)
{
	const struct sum *focus = NULL;

	if (s->turn++ % 2) {
		focus = schedule_rare(s, e);
		focus = focus ? focus : schedule_focus(s, e);
	}
	s->focused = focus != NULL;
	if (focus)
		return focus;
	if (s->dealt == s->kinds)
		shuffle_schedule(s);
	return &s->kind[s->deck[s->dealt++]];
}
