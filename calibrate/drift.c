/* SPDX-License-Identifier: MIT */
#include "calibrate/drift.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "calibrate/bound.h"

#define EXPECTED_MIN 5
#define DRAWS	     9999
#define AS_UNEVEN    50	 /* draws that settle it */
#define NOTHING	     600 /* exponents beyond which GSL's tails underflow, and then abort */

static struct drift_block sum(const struct drift_block *blocks, size_t count)
{
	struct drift_block all = { 0 };

	for (size_t i = 0; i < count; i++) {
		all.events += blocks[i].events;
		all.exposure += blocks[i].exposure;
	}
	return all;
}

/* The smallest number of events that any block with exposure expects, and their number. */
static double expected_min(const struct drift_block *blocks, size_t count, size_t *used)
{
	const struct drift_block all = sum(blocks, count);
	double least = INFINITY;

	*used = 0;
	for (size_t i = 0; i < count; i++) {
		if (blocks[i].exposure == 0)
			continue;
		*used += 1;
		least = fmin(least, (double)blocks[i].exposure);
	}
	return least / (double)all.exposure * (double)all.events;
}

static bool impossible(const struct drift_block *blocks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (blocks[i].exposure == 0 && blocks[i].events != 0)
			return true;
	return false;
}

static double chi_square_p(double statistic, double freedom)
{
	/* Chernoff's bound of what is left beyond. */
	if (statistic > freedom &&
	    (statistic - freedom - freedom * log(statistic / freedom)) / 2 > NOTHING)
		return 0;
	return gsl_cdf_chisq_Q(statistic, freedom);
}

struct shares {
	size_t count;
	unsigned events;
	double *share;
	unsigned *drawn;
};

static double unevenness(const struct shares *s)
{
	double statistic = 0;

	for (size_t i = 0; i < s->count; i++) {
		double expected = s->share[i] * s->events;

		if (expected > 0)
			statistic += pow(s->drawn[i] - expected, 2) / expected;
	}
	return statistic;
}

static double drawn_p(struct shares *s, double statistic, gsl_rng *rng)
{
	unsigned as_uneven = 0;

	for (unsigned draw = 1; draw <= DRAWS; draw++) {
		gsl_ran_multinomial(rng, s->count, s->events, s->share, s->drawn);
		/* Draws equal to what was seen must count, whatever the rounding. */
		as_uneven += unevenness(s) >= statistic * (1 - 1e-12);
		if (as_uneven == AS_UNEVEN)
			return (double)AS_UNEVEN / draw;
	}
	return (as_uneven + 1.0) / (DRAWS + 1.0);
}

static double statistic_of(const struct drift_block *blocks, size_t count)
{
	const struct drift_block all = sum(blocks, count);
	double statistic = 0;

	for (size_t i = 0; i < count; i++) {
		double share = (double)blocks[i].exposure / (double)all.exposure;
		double expected = share * (double)all.events;

		if (expected > 0)
			statistic += pow((double)blocks[i].events - expected, 2) / expected;
	}
	return statistic;
}

static double monte_carlo_p(const struct drift_block *blocks, size_t count, uint64_t seed)
{
	const struct drift_block all = sum(blocks, count);
	struct shares s = { .count = count, .events = (unsigned)all.events };
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_taus2);
	double p = NAN;

	s.share = calloc(count, sizeof(*s.share));
	s.drawn = calloc(count, sizeof(*s.drawn));
	if (s.share && s.drawn) {
		gsl_rng_set(rng, (unsigned long)seed);
		for (size_t i = 0; i < count; i++)
			s.share[i] = (double)blocks[i].exposure / (double)all.exposure;
		p = drawn_p(&s, statistic_of(blocks, count), rng);
	}
	free(s.share);
	free(s.drawn);
	gsl_rng_free(rng);
	return p;
}

double drift_p(const struct drift_block *blocks, size_t count, uint64_t seed)
{
	const struct drift_block all = sum(blocks, count);
	size_t used = 0;
	double expected;

	if (impossible(blocks, count))
		return 0;
	expected = all.exposure ? expected_min(blocks, count, &used) : 0;
	if (all.events == 0 || used < 2)
		return 1;
	/* So many events cannot be drawn, and hardly need be. */
	if (expected >= EXPECTED_MIN || all.events > UINT_MAX)
		return chi_square_p(statistic_of(blocks, count), (double)used - 1);
	return monte_carlo_p(blocks, count, seed);
}

/* Ends of the merged blocks: block i is [end[i - 1], end[i]). Returns their number. */
static size_t merge(const struct drift_block *blocks, size_t count, uint64_t exposure_min,
		    size_t *end)
{
	size_t merged = 0;
	uint64_t exposure = 0;

	for (size_t i = 0; i < count; i++) {
		exposure += blocks[i].exposure;
		if (exposure == 0 || exposure < exposure_min)
			continue;
		end[merged++] = i + 1;
		exposure = 0;
	}
	if (merged == 0)
		merged = 1;
	end[merged - 1] = count;
	return merged;
}

static void worst_of(const struct drift_block *blocks, const size_t *end, double confidence,
		     struct drift_bound *bound)
{
	const double each = bound_confidence_each(confidence, (unsigned)bound->blocks);

	bound->upper = -1;
	for (size_t i = 0, from = 0; i < bound->blocks; from = end[i++]) {
		struct drift_block block = sum(blocks + from, end[i] - from);
		double upper = bound_upper(block.events, block.exposure, each);

		if (upper <= bound->upper)
			continue;
		bound->upper = upper;
		bound->worst = from;
		bound->block = block;
	}
}

int drift_bound(const struct drift_block *blocks, size_t count, uint64_t exposure_min,
		double confidence, uint64_t seed, struct drift_bound *bound)
{
	size_t *end;

	*bound = (struct drift_bound){ .upper = 1 };
	if (sum(blocks, count).exposure == 0)
		return -EINVAL;
	bound->p = drift_p(blocks, count, seed);
	end = calloc(count, sizeof(*end));
	if (!end || isnan(bound->p)) {
		free(end);
		return -ENOMEM;
	}
	bound->steady = bound->p >= DRIFT_P;
	bound->blocks = merge(blocks, count, bound->steady ? UINT64_MAX : exposure_min, end);
	worst_of(blocks, end, confidence, bound);
	free(end);
	return 0;
}
