/* SPDX-License-Identifier: MIT */
/*
 * The generalised Pareto distribution: what lies above a high threshold of nearly
 * anything (Pickands 1975). P(excess > x) = (1 + xi x / sigma)^(-1 / xi), and
 * exp(-x / sigma) where xi is 0. Excesses are over the threshold, sorted upwards
 * where it says so. Without state: random numbers come from the caller.
 */
#ifndef CALIBRATE_GPD_H
#define CALIBRATE_GPD_H

#include <stddef.h>

#include <gsl/gsl_rng.h>

struct gpd {
	double xi;    /* shape: below 0 the tail ends, above 0 it is heavier than exponential */
	double sigma; /* scale, ticks */
};

/* gpd_survival / gpd_quantile - P(excess > x), and the x that p is left beyond. */
double gpd_survival(const struct gpd *g, double x);
double gpd_quantile(const struct gpd *g, double p);

/*
 * gpd_fit - maximum likelihood, by Grimshaw's reduction to one parameter
 * (Technometrics 35, 1993). Sought for xi above -1, below which the likelihood has
 * no maximum. Excesses are positive, in any order. Returns the log likelihood.
 */
double gpd_fit(const double *excess, size_t count, double largest, struct gpd *g);

/* gpd_draw - count excesses, sorted upwards. */
void gpd_draw(const struct gpd *g, gsl_rng *rng, double *excess, size_t count);

/*
 * gpd_fit_p - probability that excesses of this distribution fit it at best as badly
 * as these do: parametric bootstrap, each sample fitted again.
 *
 * The smaller p of two statistics, twice: Anderson and Darling's sees the whole, but
 * gives the largest excess a weight of 1 / count, and so is blind to a single stall
 * fifty times as long as anything else. Its right-tail form of second degree
 * (Luceno 2006) sees hardly anything else. At most draws samples, fewer once both
 * are settled: 8 drawn as bad (Besag and Clifford 1991), or none of 60: then the
 * p returned is 0.03, and may be far less. excess is sorted upwards, room has
 * count places.
 */
double gpd_fit_p(const struct gpd *g, const double *excess, size_t count, gsl_rng *rng,
		 unsigned draws, double *room);

/*
 * gpd_level_upper - one-sided upper confidence limit of the quantile that p is left
 * beyond, from the profile likelihood. excess in any order; best is gpd_fit()'s
 * answer and log_likelihood what it returned. INFINITY: the data set no limit.
 */
double gpd_level_upper(const struct gpd *best, double log_likelihood, const double *excess,
		       size_t count, double largest, double p, double confidence);

#endif
