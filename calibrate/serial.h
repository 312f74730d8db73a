/* SPDX-License-Identifier: MIT */
/*
 * May large gaps be taken for independent draws from one distribution that stays
 * the same? Sizes in the order of their times; times from 0 to duration, no
 * fewer than SERIAL_MIN of them. p-values corrected for the number of tests in each;
 * NAN: out of memory.
 */
#ifndef CALIBRATE_SERIAL_H
#define CALIBRATE_SERIAL_H

#include <stddef.h>

#define SERIAL_MIN 50

/*
 * serial_independence_p - lag-1 autocorrelation of the ranks of the sizes, the same
 * of the times between them, and crowding: are the counts in short stretches (five
 * expected in each) more uneven than chance makes them?
 */
double serial_independence_p(const double *size, const double *time, size_t count, double duration);

/*
 * serial_stationarity_p - rank correlation of size and time (a trend), Kruskal and
 * Wallis over up to eight stretches (steps and humps of the size), and drift of the
 * rate over eight stretches of time.
 */
double serial_stationarity_p(const double *size, const double *time, size_t count, double duration);

#endif
