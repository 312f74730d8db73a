/* SPDX-License-Identifier: MIT */
/* Claims, their counts and their bounds: all that an estimate is made of. */
#include "calibrate/statistics/estimate.h"

#include <math.h>

#include "calibrate/statistics/bound.h"

const enum crossing claimed[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

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

struct count estimate_count(const struct estimate *e, const struct sums *runs,
			    const struct sum *like, unsigned any)
{
	struct count all = { 0 };

	for (unsigned i = 0; i < e->runs; i++) {
		const struct sums *sums = &runs[i];
		struct count one = { 0 };

		for (size_t k = 0; k < sums->count; k++) {
			const struct sum *s = &sums->sum[k];
			const struct waits *rung = &s->rung;
			bool is_below = rung->stretch == like->rung.stretch &&
					rung->first <= like->rung.first &&
					rung->second <= like->rung.second;

			if (sum_is_like(s, like) && (!(any & ONLY_ALONE) || sum_is_alone(s)) &&
			    (!(any & ONLY_MOST) || s->executors == e->most[s->placement]) &&
			    (any & RUNGS_BELOW ? is_below
					       : any & ANY_RUNG || waits_same(rung, &like->rung)) &&
			    (any & ANY_PLACEMENT || s->placement == like->placement) &&
			    (any & ANY_EXECUTORS || s->executors == like->executors))
				count_add(&one, any & ONLY_NEAR	 ? &s->at[DISTANCE_NEAR]
						: any & ONLY_FAR ? &s->at[DISTANCE_FAR]
								 : &s->count);
		}
		if (e->long_run && !(any & ANY_RUNG))
			one = count_as_unit(one);
		count_add(&all, &one);
	}
	return all;
}

/* For the long run: bad times may be up to twice as bad as the worst run, and rarer than runs are.
 */
static double bound_runs(const struct count *count, double spread, double confidence)
{
	double slices = count_units(count);
	double p = bound_mixed(count->tears, count->toggles, slices, spread, confidence);

	if (!count->worst_tears)
		return p;
	return fmax(p, bound_capped(count->tears, count->toggles, slices,
				    fmin(1, 2 * (double)count->worst_tears /
						    (double)count->worst_toggles),
				    confidence));
}

double estimate_bound(const struct count *count, double spread, double cap, double confidence)
{
	double each = bound_confidence_each(confidence, 2), slices = count_units(count);

	if (count->are_runs)
		return bound_runs(count, spread, confidence);
	if (!(cap > 0))
		return bound_mixed(count->tears, count->toggles, slices, spread, confidence);
	return fmin(bound_mixed(count->tears, count->toggles, slices, spread, each),
		    bound_capped(count->tears, count->toggles, slices, cap, each));
}

/* By itself or by all below; section->lent tells which. */
static double bound_either(struct section *section, double spread, double cap, double confidence)
{
	const struct count *own = &section->count, *below = &section->below;
	double each = bound_confidence_each(confidence, 2), pooled, alone;

	section->lent = false;
	if (below->slices == own->slices)
		return estimate_bound(own, spread, cap, confidence);
	pooled = estimate_bound(below, spread, cap, each);
	/* A longer wait was seen to tear more often: what shorter ones counted is no evidence. */
	if (bound_lower(own->tears, own->toggles, confidence) > pooled)
		return estimate_bound(own, spread, cap, confidence);
	alone = estimate_bound(own, spread, cap, each);
	section->lent = pooled < alone;
	return section->lent ? pooled : alone;
}

double estimate_section(struct section *section, double spread, double cap, double confidence)
{
	section->lent = false;
	if (!section->count.toggles)
		return 1;
	return fmax(bound_either(section, spread, cap, confidence), section->longer_p);
}
