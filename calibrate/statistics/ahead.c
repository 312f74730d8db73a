/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/ahead.h"

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

/* --- The window ------------------------------------------------------------------------------- */

static struct count stores_across(const struct estimate *e, const struct sums *runs,
				  enum crossing crossing, unsigned only)
{
	const struct sum like = { .kind = SUM_STORE, .crossing = crossing };

	return estimate_count(e, runs, &like, ANY_RUNG | ANY_PLACEMENT | ANY_EXECUTORS | only);
}

/* All boundaries inside a line get their stores in the same slices. */
static void window_ahead(struct estimate *e, const struct sums *runs)
{
	double confidence = bound_confidence_each(CONFIDENCE, 3);
	struct ahead *ahead = &e->window_ahead;

	*ahead = (struct ahead){ .now_p = e->window.upper_p, .upper_p = { 1, 1, 1 } };
	for (unsigned bytes = 8; bytes < e->window.bytes; bytes *= 2) {
		enum crossing crossing = bytes == 8    ? CROSSING_8
					 : bytes == 16 ? CROSSING_16
						       : CROSSING_32;
		struct count now = stores_across(e, runs, crossing, 0);
		struct count paced = stores_across(e, runs, crossing, ONLY_TIMED);
		double pace = paced.seconds > 0 ? (double)paced.toggles / paced.seconds : 0;

		if (bytes == 8 || pace < ahead->pace)
			ahead->pace = pace;
		for (unsigned i = 0; i < AHEADS && pace > 0; i++) {
			struct count then =
				count_after(&now, &paced, terms[i].seconds / paced.seconds, 0);
			double p = bound_upper(then.tears, then.toggles, confidence);

			ahead->upper_p[i] = bytes == 8 ? p : fmax(ahead->upper_p[i], p);
		}
	}
}

/* --- Long waits ------------------------------------------------------------------------------- */

/* Of one crossing and placement. */
struct gaps {
	int claim;
	struct count now;
	struct count paced; /* of it, what was timed; of a section that never was, the slowest's */
};

#define SECTIONS_MAX (CLAIMS * PLACEMENT_COUNT)

static double pace_of(const struct count *paced)
{
	return paced->seconds > 0 ? (double)paced->toggles / paced->seconds : 0;
}

static unsigned list_gaps(const struct estimate *e, const struct sums *runs,
			  const struct level *level, struct gaps of[SECTIONS_MAX])
{
	unsigned count = 0;

	for (int c = 0; c < CLAIMS; c++) {
		for (unsigned k = 0; k < level->claim[c].sections; k++) {
			const struct sum like = {
				.kind = SUM_GAP,
				.rung = level->rung,
				.crossing = c == CLAIM_LINE ? CROSSING_LINE : CROSSING_PAGE,
				.placement = level->claim[c].section[k].placement,
			};

			of[count++] = (struct gaps){
				.claim = c,
				.now = estimate_count(e, runs, &like, ANY_EXECUTORS),
				.paced = estimate_count(e, runs, &like, ANY_EXECUTORS | ONLY_TIMED),
			};
		}
	}
	return count;
}

/* The mean pace; 0: none is known. */
static double fill_paces(struct gaps of[SECTIONS_MAX], unsigned sections)
{
	const struct count *slowest = NULL;
	double seconds = 0, stores = 0;

	for (unsigned i = 0; i < sections; i++) {
		seconds += of[i].paced.seconds;
		stores += (double)of[i].paced.toggles;
		if (of[i].paced.seconds > 0 &&
		    (!slowest || pace_of(&of[i].paced) < pace_of(slowest)))
			slowest = &of[i].paced;
	}
	for (unsigned i = 0; i < sections && slowest; i++)
		if (!(of[i].paced.seconds > 0))
			of[i].paced = *slowest;
	return slowest ? stores / seconds : 0;
}

/* The worst section's bound, after so many seconds more of each, in so many runs. */
static void long_after(const struct estimate *e, const struct gaps of[SECTIONS_MAX],
		       unsigned sections, double seconds, unsigned runs, double *gap_p,
		       double *toggle_p)
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

/* All crossings and placements get their turns. */
static void long_ahead(struct estimate *e, const struct sums *runs, unsigned index)
{
	struct ahead *gap = &e->gap_ahead[index], *toggle = &e->long_ahead[index];
	struct gaps of[SECTIONS_MAX];
	unsigned sections = list_gaps(e, runs, &e->long_level[index], of);
	double pace = fill_paces(of, sections);

	*gap = *toggle = (struct ahead){ .pace = pace, .now_p = 1, .upper_p = { 1, 1, 1 } };
	if (!(pace > 0))
		return;
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
