/* SPDX-License-Identifier: MIT */
#include "calibrate/climb/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "calibrate/statistics/bound.h"
#include "stress/base/random.h"

#define ENOUGH 1e-9 /* a bound that needs no further decade */
#define LACK_MIN                                                                                   \
	2.0	    /* slices of a state that is rare: a rung that lacks less does so by chance    \
		     */
#define UNSEEN 3e-6 /* seconds a toggle takes, where none was measured; only an order matters */

static void add_kind(struct schedule *s, const struct waits *rung, enum crossing crossing,
		     const struct seat *seat)
{
	s->kind[s->kinds++] = (struct sum){
		.kind = SUM_WAIT,
		.rung = *rung,
		.crossing = crossing,
		.placement = seat->placement,
		.executors = seat->executors,
	};
}

/*
 * The paper's constant waits are for its figure: at one seat, across a line. By some of them tears
 * are held against gaps across a page, too: see long_wait.h.
 */
static void list_kinds(struct schedule *s, const struct ladder *ladder)
{
	const struct plan *plan = s->plan;

	for (unsigned i = 0; i < ladder->stretched; i++)
		for (unsigned k = 0; k < CLAIMS * plan->seats; k++)
			add_kind(s, &ladder->rung[i],
				 k < plan->seats ? CROSSING_LINE : CROSSING_PAGE,
				 &plan->seat[k % plan->seats]);
	for (unsigned i = ladder->stretched; i < ladder->count && plan->seats; i++) {
		uint64_t wait = ladder->rung[i].first;

		add_kind(s, &ladder->rung[i], CROSSING_LINE, &plan->seat[0]);
		if (wait == 200 || wait == 400 || wait == 800 || wait == 1600)
			add_kind(s, &ladder->rung[i], CROSSING_PAGE, &plan->seat[0]);
	}
}

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

int schedule_make(struct schedule *s, const struct plan *plan, const struct ladder *ladder,
		  uint64_t seed)
{
	size_t room = (size_t)ladder->count * CLAIMS * (plan->seats + 1);

	*s = (struct schedule){ .plan = plan, .random = seed };
	s->kind = calloc(room, sizeof(*s->kind));
	s->deck = calloc(room, sizeof(*s->deck));
	if (!s->kind || !s->deck) {
		schedule_free(s);
		return -ENOMEM;
	}
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		s->now[p] = DISTANCES;
	list_kinds(s, ladder);
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

/* So many times what was counted. */
static struct count count_of_times(const struct count *c, double times)
{
	return (struct count){
		.slices = (uint64_t)ceil((double)c->slices * times),
		.toggles = (uint64_t)((double)c->toggles * times),
		.tears = (uint64_t)ceil((double)c->tears * times),
		.squares = c->squares * times,
	};
}

/* Is so many times what was counted enough, if tears go on as they came? */
static bool is_enough(const struct section *s, double times, double spread, double cap,
		      double confidence, double target)
{
	struct count more = count_of_times(&s->count, times - 1);
	struct section then = *s;

	count_add(&then.count, &more);
	count_add(&then.below, &more);
	/* A bound is never below the rate: most are ruled out by that alone. */
	if ((double)then.count.tears > target * (double)then.count.toggles &&
	    (double)then.below.tears > target * (double)then.below.toggles)
		return false;
	return estimate_section(&then, spread, cap, confidence) <= target;
}

/* How many times as many toggles it takes. INFINITY: more than any run can make. */
static double times_needed(const struct section *s, double spread, double cap, double confidence,
			   double target)
{
	static const double tries[] = { 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100 };
	size_t low = 0, high = sizeof(tries) / sizeof(tries[0]) - 1;

	if (!is_enough(s, tries[high], spread, cap, confidence, target))
		return INFINITY;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_enough(s, tries[middle], spread, cap, confidence, target))
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
	enum placement placement; /* whose evidence is furthest behind */
};

/* What it takes to bring one level to its next decade. */
static struct goal goal_of(const struct estimate *e, unsigned index, double target)
{
	const struct level *level = &e->level[index];
	struct goal goal = { .level = index };
	double most = 0, each = level->ticks > 0 ? level->ticks : 1 / UNSEEN;

	for (int c = 0; c < CLAIMS; c++) {
		const struct claim *claim = &level->claim[c];
		double confidence = bound_confidence_each(CONFIDENCE, CLAIMS * claim->sections);

		for (unsigned i = 0; i < claim->sections; i++) {
			const struct section *s = &claim->section[i];
			double time = 0;

			if (s->upper_p > target && !s->count.toggles)
				time = 4 / target * each;
			else if (s->upper_p > target)
				time = (times_needed(s, e->spread[c], e->cap[c], confidence,
						     target) -
					1) *
				       (double)s->count.toggles * each;
			goal.time += time;
			if (time <= most)
				continue;
			most = time;
			goal.claim = c;
			goal.placement = claim->section[i].placement;
		}
	}
	return goal;
}

static bool find_goal(const struct estimate *e, struct goal *best)
{
	double kept = 1;

	*best = (struct goal){ .time = INFINITY };
	for (unsigned i = 0; i < e->levels; i++) {
		double target;
		struct goal goal;

		/* A bound that a cheaper level keeps already is no goal for this one. */
		kept = fmin(kept, e->level[i].upper_p);
		if (kept <= ENOUGH)
			break;
		target = pow(10, ceil(log10(kept) - 1e-9) - 1);
		if (kept > e->require_p && target > e->require_p)
			target = e->require_p;
		goal = goal_of(e, i, target);
		if (goal.time > 0 && goal.time < best->time)
			*best = goal;
	}
	return isfinite(best->time);
}

/* A bound does not tell numbers of executors apart: one of them is drawn. */
static const struct sum *pick_sum(struct schedule *s, const struct estimate *e,
				  const struct goal *goal)
{
	const struct waits *rung = &e->level[goal->level].rung;
	const struct sum *found = NULL;
	unsigned like = 0;

	for (unsigned i = 0; i < s->kinds; i++) {
		const struct sum *kind = &s->kind[i];

		if (claim_of(kind->crossing) == goal->claim && kind->placement == goal->placement &&
		    waits_same(&kind->rung, rung) && random_next(&s->random) % ++like == 0)
			found = kind;
	}
	return found;
}

const struct sum *schedule_focus(struct schedule *s, const struct estimate *e)
{
	struct goal goal;

	return find_goal(e, &goal) ? pick_sum(s, e, &goal) : NULL;
}

/* --- What is rare ----------------------------------------------------------------------------- */

/* The share of a placement's slices that were near, and far, on all rungs. */
static void share_of_time(const struct estimate *e, enum placement placement,
			  double share[DISTANCES])
{
	double slices[DISTANCES] = { 0 }, all = 0;

	for (unsigned i = 0; i < CLAIMS * e->ladder.count; i++) {
		const struct claim *claim = &e->level[i / CLAIMS].claim[i % CLAIMS];

		for (unsigned k = 0; k < DISTANCES * claim->sections; k++) {
			const struct section *s = &claim->at[k % DISTANCES][k / DISTANCES];

			if (s->placement == placement)
				slices[k % DISTANCES] += (double)s->count.slices;
		}
	}
	for (int d = 0; d < DISTANCES; d++)
		all += slices[d];
	for (int d = 0; d < DISTANCES; d++)
		share[d] = all > 0 ? slices[d] / all : 0;
}

/* Where a placement lacks most slices of a state that is rare there. lack: of the best so far. */
static void find_lack(const struct estimate *e, enum placement placement, enum distance now,
		      double *lack, struct goal *best)
{
	double share[DISTANCES];

	share_of_time(e, placement, share);
	if (share[now] >= 0.5)
		return;
	for (unsigned i = 0; i < CLAIMS * e->levels; i++) {
		const struct claim *claim = &e->level[i / CLAIMS].claim[i % CLAIMS];

		for (unsigned k = 0; k < claim->sections; k++) {
			double all = 0, lacks;

			if (claim->section[k].placement != placement)
				continue;
			for (int d = 0; d < DISTANCES; d++)
				all += (double)claim->at[d][k].count.slices;
			lacks = share[now] * all - (double)claim->at[now][k].count.slices;
			if (lacks <= *lack)
				continue;
			*lack = lacks;
			*best = (struct goal){ .level = i / CLAIMS,
					       .claim = (int)(i % CLAIMS),
					       .placement = placement };
		}
	}
}

const struct sum *schedule_rare(struct schedule *s, const struct estimate *e)
{
	struct goal goal;
	double lack = LACK_MIN;

	for (int p = 0; p < PLACEMENT_COUNT; p++)
		if (s->now[p] < DISTANCES)
			find_lack(e, (enum placement)p, s->now[p], &lack, &goal);
	return lack > LACK_MIN ? pick_sum(s, e, &goal) : NULL;
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
