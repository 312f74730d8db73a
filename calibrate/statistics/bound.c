/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/bound.h"

#include <float.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNTS_MAX UINT64_C(100000) /* that GSL's distributions take without giving up */
#define HALVINGS   64
#define NARROW	   1e-12 /* of a rate: so near are both ends of its limit taken for one */
#define DEVIATES   9.0	 /* beyond so many, nothing is left of a tail in a double */

typedef double cdf_fn(const double x, const double a, const double b);

/*
 * Where a distribution reaches the confidence, between rates beyond which nothing is left of its
 * tails. GSL's own inverses abort the program for counts as ordinary as 2 in 10000, and its
 * distributions do so far out in a tail. Below: the lower of the two rates between which it is,
 * else the higher one.
 */
static double quantile(cdf_fn *cdf, double a, double b, double tears, double toggles,
		       double confidence, bool below)
{
	double reach = DEVIATES * sqrt(tears), wanted = below ? confidence : 1 - confidence;
	double low = below ? fmax(0, (tears - reach) / toggles) : tears / toggles;
	double high =
		below ? tears / toggles : fmin(1, (tears + reach + DEVIATES * DEVIATES) / toggles);
	bool at_high = false;		      /* the end that came nearer last */
	double off_low = NAN, off_high = NAN; /* by how much: no end is looked at before its turn */

	for (unsigned i = 0; i < HALVINGS && high - low > NARROW * low; i++) {
		double pad = NARROW * low / 2, at = (low + high) / 2, p, off;
		bool beyond;

		/* The logarithm of a tail is nearly straight. */
		if (i % 4 != 3 && off_low * off_high <= 0)
			at = fmin(fmax(low + (high - low) * off_low / (off_low - off_high),
				       low + pad),
				  high - pad);
		p = cdf(at, a, b);
		off = log(fmax(below ? p : 1 - p, DBL_EPSILON * wanted) / wanted);
		beyond = below ? p > confidence : p >= confidence;
		/* An end that stays would keep the other from coming near. */
		if (beyond) {
			off_low /= at_high ? 2 : 1;
			high = at;
			off_high = off;
		} else {
			off_high /= at_high ? 1 : 2;
			low = at;
			off_low = off;
		}
		at_high = beyond;
	}
	return below ? low : high;
}

static double exact(double tears, double toggles, double confidence)
{
	return quantile(gsl_cdf_beta_P, tears + 1, toggles - tears, tears, toggles, confidence,
			false);
}

/* Wilson and Hilferty 1931, good to eleven digits for so many; z is negative of a lower bound. */
static double poisson_of_many(double a, double toggles, double z)
{
	return fmin(1, a * pow(1 - 1 / (9 * a) + z / (3 * sqrt(a)), 3) / toggles);
}

static double search_upper(double k, double n, double confidence)
{
	double p;

	if (n <= COUNTS_MAX)
		return exact(k, n, confidence);
	p = quantile(gsl_cdf_gamma_P, k + 1, 1 / n, k, n, confidence, false);
	/* More toggles never say less than the largest number known exactly, which is above its
	 * rate. */
	if (p <= k / COUNTS_MAX)
		return p;
	return fmin(p, exact(k, COUNTS_MAX, confidence));
}

/* Bounds that were searched before. After each slice all are asked for, and few have changed. */
struct searched {
	double tears, toggles, slices, spread, confidence;
	double p; /* 0: none */
};

static struct searched *find_searched(const struct searched *key)
{
	static _Thread_local struct searched known[4096];
	uint64_t bits[offsetof(struct searched, p) / sizeof(uint64_t)], hash = 0;
	struct searched *place;

	memcpy(bits, key, sizeof(bits));
	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		hash = (hash ^ bits[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	place = &known[hash % (sizeof(known) / sizeof(known[0]))];
	if (memcmp(place, bits, sizeof(bits)) != 0)
		*place = *key;
	return place;
}

double bound_upper(uint64_t tears, uint64_t toggles, double confidence)
{
	const double k = (double)tears, n = (double)toggles;
	struct searched *found;

	if (toggles == 0 || tears >= toggles)
		return 1;
	/* The general formula loses its digits near 0; here it has a closed form. */
	if (tears == 0)
		return -expm1(log1p(-confidence) / n);
	if (tears >= COUNTS_MAX && toggles > COUNTS_MAX)
		return poisson_of_many(k + 1, n, gsl_cdf_ugaussian_Pinv(confidence));
	found = find_searched(&(struct searched){ k, n, 0, 0, confidence, 0 });
	if (!(found->p > 0))
		found->p = search_upper(k, n, confidence);
	return found->p;
}

double bound_lower(uint64_t tears, uint64_t toggles, double confidence)
{
	const double k = (double)tears, n = (double)toggles, error = 1 - confidence;

	if (toggles == 0 || tears == 0)
		return 0;
	if (tears >= toggles)
		return exp(log1p(-confidence) / n);
	if (toggles <= COUNTS_MAX)
		return quantile(gsl_cdf_beta_P, k, n - k + 1, k, n, error, true);
	/*
	 * A toggle that tears with p tears no more often than a Poisson variable of mean
	 * -log(1 - p) is above 0: so this is never above the exact bound.
	 */
	return -expm1(-(tears >= COUNTS_MAX
				? poisson_of_many(k, n, -gsl_cdf_ugaussian_Pinv(confidence))
				: quantile(gsl_cdf_gamma_P, k, 1 / n, k, n, error, true)));
}

/* Below that, a spread is as good as none. */
#define SPREAD_MIN 1e-3
#define CLOSE	   20	/* halvings of the logarithm: to four digits */
#define MEAN_MAX   1e12 /* tears; where the search gives up */

/* The mean of tears of which so few are seen with a probability of 1 - confidence. */
static double search_mean(uint64_t tears, double shape, double confidence)
{
	double low = log((double)tears + 0.5), high = log(MEAN_MAX);

	for (unsigned i = 0; i < CLOSE; i++) {
		double middle = (low + high) / 2;

		if (gsl_cdf_beta_P(shape / (shape + exp(middle)), shape, (double)tears + 1) <=
		    1 - confidence)
			high = middle;
		else
			low = middle;
	}
	return exp(high);
}

double bound_mixed(uint64_t tears, uint64_t toggles, double slices, double spread,
		   double confidence)
{
	double plain = bound_upper(tears, toggles, confidence), shape;
	struct searched *found;

	if (!(spread > SPREAD_MIN) || toggles == 0)
		return plain;
	if (!(slices > 0))
		return 1;
	shape = slices / spread;
	if (tears == 0)
		return fmax(plain,
			    fmin(1, shape * expm1(-log1p(-confidence) / shape) / (double)toggles));
	/* More of them than GSL takes: the same by the share of both. */
	if (tears > COUNTS_MAX) {
		toggles = (uint64_t)ceil((double)toggles * (double)COUNTS_MAX / (double)tears);
		tears = COUNTS_MAX;
	}
	found = find_searched(
		&(struct searched){ (double)tears, 0, slices, spread, confidence, 0 });
	if (!(found->p > 0))
		found->p = search_mean(tears, shape, confidence);
	return fmax(plain, fmin(1, found->p / (double)toggles));
}

#define RATE_MIN 1e-18

/* A gamma mixture of Poisson variables with these means is 0 with the product of such powers. */
double bound_unseen(const uint64_t *toggles, size_t count, double spread, double confidence)
{
	double low = log(RATE_MIN), high = 0;

	for (unsigned i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2, logarithm = 0;

		for (size_t k = 0; k < count; k++)
			logarithm -= log1p(spread * exp(middle) * (double)toggles[k]) / spread;
		if (logarithm <= log1p(-confidence))
			high = middle;
		else
			low = middle;
	}
	return exp(high);
}

double bound_capped(uint64_t tears, uint64_t toggles, double slices, double cap, double confidence)
{
	double plain = bound_upper(tears, toggles, confidence), full;

	if (toggles == 0 || !(slices >= 1) || !(cap > 0))
		return 1;
	slices = floor(slices);
	full = ceil((double)tears / (double)toggles * slices / cap);
	return fmin(1,
		    fmax(plain, cap * bound_upper((uint64_t)full, (uint64_t)slices, confidence)));
}

double bound_missed(uint64_t seen)
{
	return bound_upper(0, seen, CONFIDENCE);
}

double bound_confidence_each(double confidence, unsigned cells)
{
	return cells > 1 ? 1 - (1 - confidence) / cells : confidence;
}
