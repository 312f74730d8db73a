/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/sequential.h"

#include <float.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

#define PRIOR_A	 0.5
#define STEPS	 200
#define CLOSE	 1e-9
#define ROUNDING 16 /* units in the last place that the terms may be off by */

struct evidence {
	double tears, intact;
	double mixture; /* log likelihood under the mixture */
	double needed;	/* log 1 / alpha */
};

static struct evidence evidence(uint64_t tears, uint64_t toggles, double scale, double alpha)
{
	const double k = (double)tears, rest = (double)(toggles - tears);
	const double b = PRIOR_A / scale;

	return (struct evidence){
		.tears = k,
		.intact = rest,
		.mixture = gsl_sf_lnbeta(PRIOR_A + k, b + rest) - gsl_sf_lnbeta(PRIOR_A, b),
		.needed = -log(alpha),
	};
}

/*
 * How far the evidence against a rate exceeds what is needed. Both terms may be 1e10 and their
 * difference 3, so possible rounding errors are taken off.
 */
static double against(double rate, void *context)
{
	const struct evidence *e = context;
	double likelihood = e->intact * log1p(-rate) + (e->tears > 0 ? e->tears * log(rate) : 0);
	double doubt = ROUNDING * DBL_EPSILON * (fabs(likelihood) + fabs(e->mixture));

	return e->mixture - likelihood - e->needed - doubt;
}

/* Where the evidence suffices, between a rate where it does not and one where it does. */
static double edge(struct evidence *e, double inside, double outside)
{
	gsl_function f = { .function = against, .params = e };
	gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
	double low = fmin(inside, outside), high = fmax(inside, outside);

	gsl_root_fsolver_set(solver, &f, low, high);
	for (unsigned i = 0; i < STEPS; i++) {
		if (gsl_root_fsolver_iterate(solver) != GSL_SUCCESS)
			break;
		low = gsl_root_fsolver_x_lower(solver);
		high = gsl_root_fsolver_x_upper(solver);
		if (gsl_root_test_interval(low, high, 0, CLOSE) == GSL_SUCCESS)
			break;
	}
	gsl_root_fsolver_free(solver);
	return inside < outside ? high : low;
}

double sequential_upper(uint64_t tears, uint64_t toggles, double scale, double alpha)
{
	struct evidence e;
	double inside, outside;

	if (tears >= toggles)
		return 1;
	e = evidence(tears, toggles, scale, alpha);
	if (tears == 0)
		return fmin(1, -expm1(-(e.needed - e.mixture) / e.intact));
	outside = (double)tears / (double)toggles;
	do {
		inside = outside;
		outside = fmin(2 * inside, (1 + inside) / 2);
		if (outside <= inside || outside >= 1)
			return 1;
	} while (against(outside, &e) <= 0);
	return edge(&e, inside, outside);
}

double sequential_lower(uint64_t tears, uint64_t toggles, double scale, double alpha)
{
	struct evidence e;
	double inside, outside;

	if (toggles == 0 || tears == 0)
		return 0;
	if (tears > toggles)
		tears = toggles;
	e = evidence(tears, toggles, scale, alpha);
	if (tears == toggles)
		return exp((e.mixture - e.needed) / e.tears);
	outside = (double)tears / (double)toggles;
	do {
		inside = outside;
		outside = inside / 2;
		if (outside < DBL_MIN)
			return 0;
	} while (against(outside, &e) <= 0);
	return edge(&e, inside, outside);
}

enum decision sequential_decide(uint64_t tears, uint64_t toggles, double promise, double alpha)
{
	struct evidence e;

	if (toggles == 0 || promise >= 1)
		return promise >= 1 ? DECISION_ACCEPT : DECISION_CONTINUE;
	if (tears > toggles)
		tears = toggles;
	e = evidence(tears, toggles, promise, alpha);
	if (against(promise, &e) <= 0)
		return DECISION_CONTINUE;
	return (double)tears < promise * (double)toggles ? DECISION_ACCEPT : DECISION_REJECT;
}
