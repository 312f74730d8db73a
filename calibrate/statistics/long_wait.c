/* SPDX-License-Identifier: MIT */
/*
 * Waits for changes that no patcher stands waiting for, longer than any rung of the ladder.
 *
 * At such waits no toggle tears within the life of a calibration, so that toggles say nothing. The
 * gap oracle sees every wait at once, and millions of stores a second. What it counts is another
 * thing, though: gaps per store, not tears per toggle. So:
 *
 *   1. gaps at least as long as each wait are counted, per store. Of the long waits those count
 *	that are three quarters as long: a gap is seen up to two rests too short.
 *   2. at the paper's constant waits both oracles have counts. The factor is the largest ratio of
 *	tears per toggle to gaps per store, at any wait at which gaps were seen.
 *   3. the bound of a long wait is the bound of its gaps, times the factor.
 */
#include "calibrate/statistics/estimate.h"

#include <math.h>

#include "calibrate/statistics/bound.h"
#include "stress/run/gap.h"

const uint64_t long_waits[LONG_WAITS] = { 32000, 100000, 320000, 1000000, 10000000 };

/* Add the gaps of a run; gaps of at least seen_from ticks count as tears at the wait. */
static int add_gap_counts(struct sums *sums, const struct cell *cell,
			  const struct gap_result *result, uint64_t wait, uint64_t seen_from)
{
	double stores = (double)result->stores, gaps = 0;
	struct sum sum = {
		.kind = SUM_GAP,
		.rung = { wait, wait, 0 },
		.crossing = cell->crossing,
		.placement = cell->placement,
		.executors = cell->executors,
		.count = { .slices = 1,
			   .toggles = result->stores,
			   .worst_toggles = result->stores,
			   .squares = stores * stores },
	};

	/* Those in whose bucket some may be as long count, too. */
	for (unsigned kind = 0; kind < GAP_KINDS; kind++)
		for (unsigned i = gap_bucket(seen_from); i < GAP_BUCKETS; i++)
			gaps += (double)result->kind[kind].bucket[i];
	sum.count.unevenness = gaps * gaps / stores;
	sum.count.tears = sum.count.worst_tears = (uint64_t)fmin(stores, gaps);
	return sums_add(sums, &sum);
}

int long_add_gaps(struct sums *sums, const struct cell *cell, const struct gap_result *result)
{
	int ret = 0;

	if (!result->stores)
		return 0;
	/* The paper's waits were measured unprovoked, so only such gaps are compared with them. */
	for (uint64_t wait = LADDER_STEP; !cell->provokers && wait <= LADDER_PAPER && ret == 0;
	     wait += LADDER_STEP)
		ret = add_gap_counts(sums, cell, result, wait, wait);
	for (unsigned i = 0; i < LONG_WAITS && ret == 0; i++)
		ret = add_gap_counts(sums, cell, result, long_waits[i], long_waits[i] / 4 * 3);
	return ret;
}

/* --- Judging ---------------------------------------------------------------------------------- */

/* Half of the error is the factor's, which rests on two bounds; the other half the sections'. */
#define EACH bound_confidence_each(CONFIDENCE, 4 * CLAIMS)

/* Tears per toggle by gaps per store, at most: at the one seat where constant waits are tried. */
static void find_factor(struct estimate *e, const struct sums *runs, const struct seat *seat,
			int claim)
{
	for (unsigned i = e->levels; i < e->ladder.count; i++) {
		uint64_t wait = e->level[i].rung.first;
		const struct count *tears = &e->level[i].claim[claim].count;
		const struct sum like = {
			.kind = SUM_GAP,
			.rung = { wait, wait, 0 },
			.crossing = claimed[claim],
			.placement = seat->placement,
			.executors = seat->executors,
		};
		struct count gaps = estimate_count(e, runs, &like, 0);
		/* Gaps come in bursts: they count as fewer, by their dispersion. */
		double dispersion = count_dispersion(&gaps), factor;
		double least = bound_lower((uint64_t)((double)gaps.tears / dispersion),
					   (uint64_t)((double)gaps.toggles / dispersion), EACH);

		if (!wait || gaps.tears < LONG_GAPS || !(least > 0) || !tears->toggles)
			continue;
		factor = estimate_bound(tears, e->spread[claim], e->cap[claim], EACH) / least;
		if (factor > e->factor[claim]) {
			e->factor[claim] = factor;
			e->factor_wait[claim] = wait;
		}
	}
	/* A toggle waits twice, and each wait may be too short. */
	if (e->factor[claim] > 0)
		e->factor[claim] = fmax(2, e->factor[claim]);
}

/* Of how many gaps of the longest waits there are per store, in one of a claim's sections. */
static double long_bound(const struct estimate *e, const struct count *gaps, int claim)
{
	unsigned sections = e->level[0].claim[claim].sections;
	double confidence = bound_confidence_each(CONFIDENCE, 2 * CLAIMS * sections);
	double cap = gaps->worst_toggles && gaps->worst_tears ? e->cap[claim] : 0;

	return estimate_bound(gaps, e->spread[claim], cap, confidence);
}

void long_estimate(struct estimate *e, const struct sums *runs, const struct plan *plan)
{
	const struct level *top = e->levels ? &e->level[e->levels - 1] : NULL;

	for (int c = 0; c < CLAIMS && plan->seats; c++)
		find_factor(e, runs, &plan->seat[0], c);
	for (unsigned i = 0; i < CLAIMS * LONG_WAITS; i++) {
		const unsigned which = i % CLAIMS;
		const struct claim *like = &e->level[0].claim[which];
		struct level *level = &e->long_level[i / CLAIMS];
		struct claim *claim = &level->claim[which];
		uint64_t wait = long_waits[i / CLAIMS];

		if (which == 0)
			*level = (struct level){ .rung = { wait, wait, 0 },
						 .ticks = 2 * (double)wait,
						 .at_p = { 1, 1 } };
		*claim = (struct claim){ .sections = like->sections,
					 .upper_p = like->sections ? 0 : 1 };
		for (unsigned k = 0; k < claim->sections; k++) {
			struct section *s = &claim->section[k];
			const struct sum gaps = {
				.kind = SUM_GAP,
				.rung = level->rung,
				.crossing = claimed[which],
				.placement = like->section[k].placement,
			};

			s->placement = gaps.placement;
			s->count = estimate_count(e, runs, &gaps, ANY_EXECUTORS);
			s->dispersion = count_dispersion(&s->count);
			s->upper_p = 1;
			if (e->factor[which] > 0)
				s->upper_p =
					fmin(1, e->factor[which] * long_bound(e, &s->count, which));
			count_add(&claim->count, &s->count);
			claim->upper_p = fmax(claim->upper_p, s->upper_p);
		}
		/* Gaps are not looked for inside a line. If sites there tear at any wait, they may
		 * here. */
		if (which == CLAIM_LINE && top && top->claim[which].inside.toggles)
			claim->upper_p = fmax(claim->upper_p, top->claim[which].upper_p);
		level->upper_p = fmax(level->upper_p, claim->upper_p);
	}
}
