/* SPDX-License-Identifier: MIT */
/*
 * What bounds would be after more time, spent on them alone at the pace of this machine, if nothing
 * tears and no gap comes meanwhile. That is an expectation, and no evidence.
 */
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/long_wait.h"

static const struct {
	const char *name;
	double seconds;
	unsigned runs;
} terms[AHEADS] = {
	[AHEAD_QUARTER] = { "quarter", 15 * 60, 1 },
	[AHEAD_NIGHT] = { "night", 8 * 3600, 1 },
	[AHEAD_MONTH] = { "month", 30 * 5 * 60, 30 }, /* five minutes each night */
};

const char *ahead_name(unsigned time)
{
	return terms[time].name;
}

/*
 * So much more of the same, without an event. Where the run is the unit, what comes is so many
 * units, however long each takes.
 */
static struct count count_after(const struct count *now, const struct count *paced, double times,
				unsigned runs)
{
	double toggles = (double)paced->toggles * times;
	struct count then = *now;

	then.toggles += (uint64_t)toggles;
	then.slices += runs ? runs : (uint64_t)((double)paced->slices * times);
	then.squares += runs ? toggles * toggles / runs : paced->squares * times;
	return then;
}

static double pace_of(const struct count *paced)
{
	return paced->seconds > 0 ? (double)paced->toggles / paced->seconds : 0;
}

/* All boundaries inside a line get their stores in the same slices. */
static void window_ahead(struct estimate *e, const struct sums *runs)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	const unsigned any = ANY_RUNG | ANY_PLACEMENT | ANY_EXECUTORS;
	double confidence = bound_confidence_each(CONFIDENCE, 3);
	struct ahead *ahead = &e->window_ahead;

	*ahead = (struct ahead){ .now_p = e->window.upper_p, .upper_p = { 1, 1, 1 } };
	for (unsigned k = 0; k < 3 && 8u << k < e->window.bytes; k++) {
		const struct sum like = { .kind = SUM_STORE, .crossing = inside[k] };
		struct count now = estimate_count(e, runs, &like, any);
		struct count paced = estimate_count(e, runs, &like, any | ONLY_TIMED);
		double pace = pace_of(&paced);

		if (k == 0 || pace < ahead->pace)
			ahead->pace = pace;
		for (unsigned i = 0; i < AHEADS && pace > 0; i++) {
			struct count then =
				count_after(&now, &paced, terms[i].seconds / paced.seconds, 0);
			double p = bound_upper(then.tears, then.toggles, confidence);

			ahead->upper_p[i] = k == 0 ? p : fmax(ahead->upper_p[i], p);
		}
	}
}

/* Of one crossing and placement. */
struct gaps {
	int claim;
	struct count now;
	struct count paced; /* of it, what was timed; of a section that never was, the slowest's */
};

/* The worst section's bound, after so many seconds more of each, in so many runs. */
static void long_after(const struct estimate *e, const struct gaps *of, unsigned sections,
		       double seconds, unsigned runs, double *gap_p, double *toggle_p)
{
	*gap_p = *toggle_p = 0;
	for (unsigned i = 0; i < sections; i++) {
		struct count then =
			count_after(&of[i].now, &of[i].paced, seconds / of[i].paced.seconds,
				    e->long_run ? runs : 0);
		double factor = e->factor[of[i].claim], p = long_bound(e, &then, of[i].claim);

		*gap_p = fmax(*gap_p, p);
		*toggle_p = fmax(*toggle_p, factor > 0 ? fmin(1, factor * p) : 1);
	}
}

/* All crossings and placements get their turns. The pace is the mean of those that were timed. */
static void long_ahead(struct estimate *e, const struct sums *runs, unsigned index)
{
	struct ahead *gap = &e->gap_ahead[index], *toggle = &e->long_ahead[index];
	const struct level *level = &e->long_level[index];
	const struct count *slowest = NULL;
	struct gaps of[CLAIMS * PLACEMENT_COUNT];
	double seconds = 0, stores = 0;
	unsigned sections = 0;

	*gap = *toggle = (struct ahead){ .now_p = 1, .upper_p = { 1, 1, 1 } };
	for (unsigned i = 0; i < CLAIMS * PLACEMENT_COUNT; i++) {
		const struct claim *claim = &level->claim[i / PLACEMENT_COUNT];
		const struct section *section = &claim->section[i % PLACEMENT_COUNT];
		struct gaps *g = &of[sections];
		const struct sum like = {
			.kind = SUM_GAP,
			.rung = level->rung,
			.crossing = claimed[i / PLACEMENT_COUNT],
			.placement = section->placement,
		};

		if (i % PLACEMENT_COUNT >= claim->sections)
			continue;
		g->claim = (int)(i / PLACEMENT_COUNT);
		g->now = estimate_count(e, runs, &like, ANY_EXECUTORS);
		g->paced = estimate_count(e, runs, &like, ANY_EXECUTORS | ONLY_TIMED);
		seconds += g->paced.seconds;
		stores += (double)g->paced.toggles;
		if (g->paced.seconds > 0 && (!slowest || pace_of(&g->paced) < pace_of(slowest)))
			slowest = &g->paced;
		sections++;
	}
	if (!slowest || !(stores > 0))
		return;
	for (unsigned i = 0; i < sections; i++)
		if (!(of[i].paced.seconds > 0))
			of[i].paced = *slowest;
	gap->pace = toggle->pace = stores / seconds;
	long_after(e, of, sections, 0, 0, &gap->now_p, &toggle->now_p);
	for (unsigned i = 0; i < AHEADS; i++)
		long_after(e, of, sections, terms[i].seconds / sections, terms[i].runs,
			   &gap->upper_p[i], &toggle->upper_p[i]);
}

void ahead_estimate(struct estimate *e, const struct sums *runs)
{
	window_ahead(e, runs);
	for (unsigned i = 0; i < LONG_WAITS; i++)
		long_ahead(e, runs, i);
}
