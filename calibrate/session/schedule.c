/* SPDX-License-Identifier: MIT */
#include "calibrate/session/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "calibrate/statistics/bound.h"

#define ENOUGH	 1e-9 /* a bound that needs no further decade */
#define LACK_MIN 2.0  /* slices at the rarer distance; a rung that lacks fewer does so by chance */
#define UNSEEN	 3e5  /* ticks that a toggle is taken to need where none was measured: many */

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

/* Are so many times as many toggles enough, if tears go on as they came? */
static bool is_enough(const struct estimate *e, int claim, const struct section *s, double times,
		      double confidence, double target)
{
	const struct count *c = &s->count;
	const struct count more = {
		.slices = (uint64_t)ceil((double)c->slices * (times - 1)),
		.toggles = (uint64_t)((double)c->toggles * (times - 1)),
		.tears = (uint64_t)ceil((double)c->tears * (times - 1)),
		.squares = c->squares * (times - 1),
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

/* How many times as many toggles it takes. INFINITY: more than any run can make. */
static double times_needed(const struct estimate *e, int claim, const struct section *s,
			   double confidence, double target)
{
	static const double tries[] = { 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100 };
	size_t low = 0, high = sizeof(tries) / sizeof(tries[0]) - 1;

	if (!is_enough(e, claim, s, tries[high], confidence, target))
		return INFINITY;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_enough(e, claim, s, tries[middle], confidence, target))
			high = middle;
		else
			low = middle + 1;
	}
	return tries[high];
}

struct goal {
	double time;
	unsigned level;
	int claim;
	enum placement placement; /* whose evidence is furthest behind, */
	bool most;		  /* and if that is of the largest number of executors */
};

/* A bound tells only the largest number of executors apart: else one of them is drawn. */
static const struct sum *pick_sum(struct schedule *s, const struct estimate *e,
				  const struct goal *goal)
{
	const struct waits *rung = &e->level[goal->level].rung;
	const struct sum *found = NULL;
	unsigned like = 0;

	for (unsigned i = 0; i < s->kinds; i++) {
		const struct sum *kind = &s->kind[i];

		if (claim_of(kind->crossing) == goal->claim && kind->placement == goal->placement &&
		    waits_same(&kind->rung, rung) &&
		    sum_is_rested(kind) == (goal->level >= e->ladder.count) &&
		    (!goal->most || kind->executors == e->most[goal->placement]) &&
		    random_next(&s->random) % ++like == 0)
			found = kind;
	}
	return found;
}

/* What a level lacks to keep target: the time for all sections, and the neediest section. */
static struct goal goal_of_level(const struct estimate *e, unsigned i, double target)
{
	const struct level *level = &e->level[i];
	double most = 0, lacks = 0, each = level->ticks > 0 ? level->ticks : UNSEEN;
	struct goal goal = { .level = i };

	for (int c = 0; c < CLAIMS; c++) {
		const struct claim *claim = &level->claim[c];
		double confidence = bound_confidence_each(CONFIDENCE, CLAIMS * claim->sections);

		for (unsigned k = 0; k < CLAIM_PARTS * claim->sections; k++) {
			enum part part = claim_parts[k % CLAIM_PARTS];
			const struct section *at = &claim_part(claim, part)[k / CLAIM_PARTS];
			double toggles = 4 / target;

			if (k % CLAIM_PARTS == 0)
				lacks = 0;
			if (at->upper_p <= target)
				continue;
			if (at->count.toggles)
				toggles = (times_needed(e, c, at, confidence, target) - 1) *
					  (double)at->count.toggles;
			/* What one part lacks comes to the others, too. */
			goal.time += fmax(0, toggles - lacks) * each;
			lacks = fmax(lacks, toggles);
			if (toggles <= most)
				continue;
			most = toggles;
			goal.claim = c;
			goal.placement = at->placement;
			goal.most = part == PART_MOST;
		}
	}
	return goal;
}

/* Of these levels, which stand in order of rising costs: where a decade is nearest. */
static struct goal nearest_goal(const struct estimate *e, unsigned from, unsigned count)
{
	struct goal best = { .time = INFINITY };
	double kept = 1;

	for (unsigned i = from; i < from + count; i++) {
		struct goal goal;
		double target;

		/* A bound that a cheaper level keeps already is no goal for this one. */
		kept = fmin(kept, e->level[i].upper_p);
		if (kept <= ENOUGH)
			break;
		target = pow(10, ceil(log10(kept) - 1e-9) - 1);
		if (kept > e->require_p && target > e->require_p)
			target = e->require_p;
		goal = goal_of_level(e, i, target);
		if (goal.time > 0 && goal.time < best.time)
			best = goal;
	}
	return best;
}

/* Each third time sites at rest; or hot ones, or those, where nothing is left to do at the others. */
const struct sum *schedule_focus(struct schedule *s, const struct estimate *e)
{
	struct goal hot = nearest_goal(e, 0, e->levels);
	struct goal rested = nearest_goal(e, e->ladder.count, e->ladder.rested);
	const struct goal *goal = s->turn / 2 % 3 == 2 ? &rested : &hot;

	if (!isfinite(goal->time))
		goal = goal == &hot ? &rested : &hot;
	return isfinite(goal->time) ? pick_sum(s, e, goal) : NULL;
}

/* --- What is rare ----------------------------------------------------------------------------- */

/* The share of a placement's slices, on all rungs, that were at that distance. */
static double share_of_time(const struct estimate *e, enum placement placement, enum distance now)
{
	double there = 0, all = 0;

	for (unsigned i = 0; i < CLAIMS * e->ladder.count; i++) {
		const struct claim *claim = &e->level[i / CLAIMS].claim[i % CLAIMS];

		for (unsigned k = 0; k < claim->sections; k++) {
			if (claim->section[k].placement != placement)
				continue;
			there += (double)claim->part[now][k].count.slices;
			for (int d = 0; d < DISTANCES; d++)
				all += (double)claim->part[d][k].count.slices;
		}
	}
	return all > 0 ? there / all : 0;
}

const struct sum *schedule_rare(struct schedule *s, const struct estimate *e)
{
	struct goal goal;
	double most = LACK_MIN;

	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		enum distance now = s->now[p];
		double share = now < DISTANCES ? share_of_time(e, (enum placement)p, now) : 1;

		for (unsigned i = 0; i < CLAIMS * e->levels && share < 0.5; i++) {
			const struct claim *claim = &e->level[i / CLAIMS].claim[i % CLAIMS];

			for (unsigned k = 0; k < claim->sections; k++) {
				double near = (double)claim->part[PART_NEAR][k].count.slices;
				double far = (double)claim->part[PART_FAR][k].count.slices;
				double lacks =
					share * (near + far) - (now == DISTANCE_NEAR ? near : far);

				if (claim->section[k].placement != (enum placement)p ||
				    lacks <= most)
					continue;
				most = lacks;
				goal = (struct goal){ .level = i / CLAIMS,
						      .claim = (int)(i % CLAIMS),
						      .placement = (enum placement)p };
			}
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
	const struct sum *focus = schedule_is_focused(s) ? schedule_rare(s, e) : NULL;

	if (!focus && schedule_is_focused(s))
		focus = schedule_focus(s, e);
	s->turn++;
	if (focus)
		return focus;
	if (s->dealt == s->kinds)
		shuffle_schedule(s);
	return &s->kind[s->deck[s->dealt++]];
}
