/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/long_wait.h"

#include <math.h>

#include "calibrate/statistics/bound.h"

static const uint64_t waits[LONG_WAITS] = { 32000, 100000, 320000, 1000000, 10000000 };

uint64_t long_wait(unsigned i)
{
	return i < LONG_WAITS ? waits[i] : 0;
}

/* --- Counting --------------------------------------------------------------------------------- */

/* Those in whose bucket some may be as long count, too. */
static uint64_t as_long(const struct gap_result *result, uint64_t ticks)
{
	uint64_t count = 0;

	for (unsigned kind = 0; kind < GAP_KINDS; kind++)
		for (unsigned i = gap_bucket(ticks); i < GAP_BUCKETS; i++)
			count += result->kind[kind].bucket[i];
	return count;
}

static int add_gap_counts(struct sums *sums, const struct cell *cell,
			  const struct gap_result *result, uint64_t wait, uint64_t seen_from)
{
	double stores = (double)result->stores, gaps = (double)as_long(result, seen_from);
	struct sum sum = {
		.kind = SUM_GAP,
		.rung = { wait, wait, 0 },
		.crossing = cell->crossing,
		.placement = cell->placement,
		.executors = cell->executors,
		.count = {
			.slices = 1,
			.toggles = result->stores,
			.tears = (uint64_t)fmin(stores, gaps),
			.unevenness = gaps * gaps / stores,
			.squares = stores * stores,
			.worst_tears = (uint64_t)fmin(stores, gaps),
			.worst_toggles = result->stores,
		},
	};

	return sums_add(sums, &sum);
}

/* The paper's waits were measured unprovoked, so only unprovoked gaps are compared with them. */
int long_add_gaps(struct sums *sums, const struct cell *cell, const struct gap_result *result)
{
	int ret = 0;

	if (!result->stores)
		return 0;
	for (uint64_t wait = LADDER_STEP; !cell->provokers && wait <= LADDER_PAPER && ret == 0;
	     wait += LADDER_STEP)
		ret = add_gap_counts(sums, cell, result, wait, wait);
	for (unsigned i = 0; i < LONG_WAITS && ret == 0; i++)
		ret = add_gap_counts(sums, cell, result, waits[i], waits[i] / 4 * 3);
	return ret;
}

/* --- Judging ---------------------------------------------------------------------------------- */

/* Gaps of which kind: executors 0 stands for any number of them. */
static bool is_of(const struct sum *s, uint64_t wait, enum crossing crossing,
		  const struct seat *seat)
{
	return s->kind == SUM_GAP && s->rung.first == wait && s->crossing == crossing &&
	       s->placement == seat->placement &&
	       (!seat->executors || s->executors == seat->executors);
}

static struct count gaps_of_run(const struct sums *sums, uint64_t wait, enum crossing crossing,
				const struct seat *seat)
{
	struct count count = { 0 };

	for (size_t i = 0; i < sums->count; i++)
		if (is_of(&sums->sum[i], wait, crossing, seat))
			count_add(&count, &sums->sum[i].count);
	return count;
}

static struct count gaps_of(const struct estimate *e, const struct run_sums *runs, uint64_t wait,
			    enum crossing crossing, const struct seat *seat)
{
	struct count count = { 0 };

	for (unsigned i = 0; i < e->runs; i++) {
		struct count one = gaps_of_run(&runs[i].sums, wait, crossing, seat);

		if (e->long_run)
			one = count_as_unit(one);
		count_add(&count, &one);
	}
	return count;
}

/* Half of the error is the factor's, which rests on two bounds; the other half the sections'. */
#define EACH bound_confidence_each(CONFIDENCE, 4 * CLAIMS)

/* Gaps come in bursts: they count as fewer, by their dispersion. */
static double least_rate(const struct count *gaps)
{
	double dispersion = count_dispersion(gaps);

	return bound_lower((uint64_t)((double)gaps->tears / dispersion),
			   (uint64_t)((double)gaps->toggles / dispersion), EACH);
}

/* Tears per toggle by gaps per store, at most; 0: too few gaps to tell. */
static double factor_at(const struct estimate *e, const struct level *level, int claim,
			const struct count *gaps)
{
	const struct count *tears = &level->claim[claim].count;
	double least = least_rate(gaps);

	if (gaps->tears < LONG_GAPS || !(least > 0) || !tears->toggles)
		return 0;
	return estimate_bound(tears, e->spread[claim], e->cap[claim], EACH) / least;
}

/* At the one seat where constant waits are tried. */
static void find_factor(struct estimate *e, const struct run_sums *runs, const struct seat *seat,
			int claim, enum crossing crossing)
{
	for (unsigned i = e->levels; i < e->ladder.count; i++) {
		uint64_t wait = e->level[i].rung.first;
		struct count gaps = gaps_of(e, runs, wait, crossing, seat);
		double factor = wait ? factor_at(e, &e->level[i], claim, &gaps) : 0;

		if (factor > e->factor[claim]) {
			e->factor[claim] = factor;
			e->factor_wait[claim] = wait;
		}
	}
	/* A toggle waits twice, and each wait may be too short. */
	if (e->factor[claim] > 0)
		e->factor[claim] = fmax(2, e->factor[claim]);
}

static void bound_section(const struct estimate *e, struct section *s, int claim, double confidence)
{
	double cap = s->count.worst_toggles && s->count.worst_tears ? e->cap[claim] : 0;
	double p = estimate_bound(&s->count, e->spread[claim], cap, confidence);

	s->upper_p = e->factor[claim] > 0 ? fmin(1, e->factor[claim] * p) : 1;
}

static void make_claim(const struct estimate *e, const struct run_sums *runs, struct level *level,
		       int which, enum crossing crossing)
{
	const struct claim *like = &e->level[0].claim[which];
	double confidence = bound_confidence_each(CONFIDENCE, 2 * CLAIMS * like->sections);
	struct claim *claim = &level->claim[which];

	*claim = (struct claim){ .sections = like->sections, .upper_p = like->sections ? 0 : 1 };
	for (unsigned i = 0; i < claim->sections; i++) {
		struct section *s = &claim->section[i];

		s->placement = like->section[i].placement;
		s->count = gaps_of(e, runs, level->rung.first, crossing,
				   &(struct seat){ .placement = s->placement });
		bound_section(e, s, which, confidence);
		count_add(&claim->count, &s->count);
		claim->upper_p = fmax(claim->upper_p, s->upper_p);
	}
}

void long_estimate(struct estimate *e, const struct run_sums *runs, const struct plan *plan)
{
	static const enum crossing crossings[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

	for (int c = 0; c < CLAIMS && plan->seats; c++)
		find_factor(e, runs, &plan->seat[0], c, crossings[c]);
	for (unsigned i = 0; i < LONG_WAITS; i++) {
		struct level *level = &e->long_level[i];

		*level = (struct level){ .rung = { waits[i], waits[i], 0 },
					 .ticks = 2 * (double)waits[i] };
		for (int c = 0; c < CLAIMS; c++)
			make_claim(e, runs, level, c, crossings[c]);
		level->upper_p =
			fmax(level->claim[CLAIM_LINE].upper_p, level->claim[CLAIM_PAGE].upper_p);
	}
}
