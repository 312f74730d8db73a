/* SPDX-License-Identifier: MIT */
/*
 * Finding rows of a benchmark by what they are.
 */
#ifndef BENCH_RECORD_BENCH_FIND_H
#define BENCH_RECORD_BENCH_FIND_H

#include <stdbool.h>

#include "bench/method/result.h"

/*
 * bench_is - is it a row of that name and measure with those params?
 * @name, @measure: one of the words in it, which are separated by spaces; NULL: any.
 * @params: "key=value" separated by spaces, NULL: any. "?key=value" is met by a row without that
 * key, too: by one that does not say so because nothing else was measured, or because it is what
 * one would expect.
 */
bool bench_is(const struct bench_row *row, const char *name, const char *measure,
	      const char *params);

/* bench_next - the next measured one at or behind *i, which is moved behind it. NULL: none. */
const struct bench_row *bench_next(const struct bench_result *result, const char *name,
				   const char *measure, const char *params, unsigned *i);

/* bench_of - the last one of the results of that name, NULL: none. */
const struct bench_result *bench_of(const struct bench_result *results, size_t count,
				    const char *benchmark);

/*
 * row_over - how many times the cost of b is a's: by their ratios to the same baseline where
 * both have one, so that a machine that drifts hits neither, else by their medians. The interval
 * is made of the ends of both, so it is at least as wide as 95 % asks for; without intervals the
 * medians stand for them.
 */
struct bench_value row_over(const struct bench_row *a, const struct bench_row *b);

#endif
