/* SPDX-License-Identifier: MIT */
#include "calibrate/bound.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#define COUNTS_MAX UINT64_C(100000) /* that GSL's distributions take without giving up */
#define HALVINGS   64
#define DEVIATES   9.0 /* beyond so many, nothing is left of a tail in a double */

typedef double cdf_fn(const double x, const double a, const double b);

/*
 * Where a distribution reaches the confidence. GSL's own inverses abort the
 * program for counts as ordinary as 2 in 10000, and its distributions do so far
 * out in a tail: hence no look beyond the rates that can be meant.
 */
static double quantile(cdf_fn *cdf, double a, double b, double tears, double toggles,
		       double confidence)
{
	double low = tears / toggles;
	double high = fmin(1, (tears + DEVIATES * sqrt(tears) + DEVIATES * DEVIATES) / toggles);

	for (unsigned i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (cdf(middle, a, b) >= confidence)
			high = middle;
		else
			low = middle;
	}
	return high;
}

static double exact(double tears, double toggles, double confidence)
{
	return quantile(gsl_cdf_beta_P, tears + 1, toggles - tears, tears, toggles, confidence);
}

/* Wilson and Hilferty 1931, good to eleven digits for so many. */
static double poisson_of_many(double tears, double toggles, double confidence)
{
	double a = tears + 1, z = gsl_cdf_ugaussian_Pinv(confidence);

	return fmin(1, a * pow(1 - 1 / (9 * a) + z / (3 * sqrt(a)), 3) / toggles);
}

/* Never below the exact bound, and close to it where tears are rare. */
static double poisson(double tears, double toggles, double confidence)
{
	return quantile(gsl_cdf_gamma_P, tears + 1, 1 / toggles, tears, toggles, confidence);
}

double bound_upper(uint64_t tears, uint64_t toggles, double confidence)
{
	const double k = (double)tears, n = (double)toggles;

	if (toggles == 0 || tears >= toggles)
		return 1;
	/* The general formula loses its digits near 0; here it has a closed form. */
	if (tears == 0)
		return -expm1(log1p(-confidence) / n);
	if (toggles <= COUNTS_MAX)
		return exact(k, n, confidence);
	if (tears >= COUNTS_MAX)
		return poisson_of_many(k, n, confidence);
	/* More toggles never say less than the largest number known exactly. */
	return fmin(poisson(k, n, confidence), exact(k, (double)COUNTS_MAX, confidence));
}
