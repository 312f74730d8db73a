/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_STATISTICS_BOUND_H
#define CALIBRATE_STATISTICS_BOUND_H

#include <stddef.h>
#include <stdint.h>

#define CONFIDENCE 0.95

/*
 * bound_upper - upper confidence limit of a tear probability (Clopper-Pearson, one-sided; beyond
 * 100000 toggles its Poisson limit, which is never below it). With no tears and 95 % this is close
 * to 3 / toggles. 1 if toggles is 0: nothing tried, nothing known.
 */
double bound_upper(uint64_t tears, uint64_t toggles, double confidence);

/*
 * bound_lower - lower confidence limit, likewise one-sided and never above the exact one, and below
 * it by at most a share of tears / toggles. 0 without tears.
 */
double bound_lower(uint64_t tears, uint64_t toggles, double confidence);

/*
 * bound_mixed - upper confidence limit of a tear probability that is not the same everywhere.
 *
 * The rate differs from slice to slice, by the place of the site and by the time: as drawn from
 * a gamma distribution whose variance is `spread` times the square of its mean. What is
 * bounded is the mean. The tears of `slices` slices are then negative binomial. No spread: as
 * bound_upper(). Needs not be whole numbers of slices.
 */
double bound_mixed(uint64_t tears, uint64_t toggles, double slices, double spread,
		   double confidence);

/*
 * bound_unseen - the same where no slice, or run, saw a tear, each with its own number of toggles:
 * so that one more never raises it, however long.
 */
double bound_unseen(const uint64_t *toggles, size_t count, double spread, double confidence);

/*
 * bound_capped - the same, assuming only that no slice tears more often than `cap`. A sum of
 * numbers between 0 and a cap is spread no wider than if each were 0 or the cap (Hoeffding 1963):
 * so the bound is bound_upper() of that many slices. It is never below the bound of the toggles,
 * and 1 with less than one slice.
 */
double bound_capped(uint64_t tears, uint64_t toggles, double slices, double cap, double confidence);

/*
 * bound_missed - as large a share of all machines, or of all times, may be worse than so many that
 * were seen, with 95 %: they exclude no more.
 */
double bound_missed(uint64_t seen);

/*
 * bound_confidence_each - confidence for each of so many statements, so that all
 * of them hold at once with the confidence given.
 *
 * Bonferroni. Sidak's is sharper by next to nothing (0.0513 in place of 0.05 for a
 * hundred cells) and counts on cells that are independent; these are not:
 * they share a machine, its clock and its other load.
 */
double bound_confidence_each(double confidence, unsigned cells);

#endif
