/* SPDX-License-Identifier: MIT */
/*
 * How much more than its baseline something takes, where the difference says more than the
 * ratio: a loop of one cycle per pass is twice as long with one cycle more.
 */
#ifndef BENCH_METHOD_OVER_H
#define BENCH_METHOD_OVER_H

#include "bench/method/samples.h"

/*
 * over_pairs - median and interval of the difference of block medians, s less base, of two
 * blocks of each at once. Those came as A B B A, or side by side, so what drifts is gone.
 * NAN: there are no two blocks of both.
 */
struct bench_value over_pairs(const struct samples *s, const struct samples *base);

#endif
