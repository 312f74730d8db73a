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

#endif
