/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_BOUND_H
#define CALIBRATE_BOUND_H

#include <stdint.h>

#define CONFIDENCE 0.95

/*
 * bound_upper - upper confidence limit of a tear probability (Clopper-Pearson,
 * one-sided; beyond 100000 toggles its Poisson limit, which is never below
 * it). With no tears and 95 % this is close to 3 / toggles. 1 if toggles
 * is 0: nothing tried, nothing known.
 */
double bound_upper(uint64_t tears, uint64_t toggles, double confidence);

/*
 * bound_lower - lower confidence limit, likewise one-sided and never above the
 * exact one, nor further below it than by a share of tears / toggles of it. 0 without
 * tears.
 */
double bound_lower(uint64_t tears, uint64_t toggles, double confidence);

/*
 * bound_confidence_each - confidence for each of so many statements, so that all
 * of them hold at once with the confidence given.
 *
 * Bonferroni. Sidak's is sharper by next to nothing (0.0513 in place of 0.05 for a
 * hundred cells) and counts on cells that are independent; these are not:
 * they share a machine, its clock and whatever else runs on it.
 */
double bound_confidence_each(double confidence, unsigned cells);

/* A measured rate and what it may be, for one wait. */
struct rate_band {
	double rate;
	double lower, upper;
};

/*
 * bound_band - two-sided band around the rate at one wait, half the error on each
 * side. For a band that holds at all waits at once, pass what
 * bound_confidence_each() gives for their number. Nothing tried: 0, 0 to 1.
 */
struct rate_band bound_band(uint64_t tears, uint64_t toggles, double confidence);

#endif
