/* SPDX-License-Identifier: MIT */
/*
 * The result of a benchmark as text.
 */
#ifndef COMMANDS_TMAX_BENCH_PRINT_H
#define COMMANDS_TMAX_BENCH_PRINT_H

#include <stdio.h>

#include "bench/method/result.h"

/*
 * bench_print - a table: a line per row, with its median and interval, p5 to p99, outliers,
 * ratio to the baseline and its interval ("no difference" where bench_row_same()), or why it
 * was skipped; above it on what, and what else was going on.
 *
 * Rows of one name that follow one another are put together under what they have in common.
 * 100 columns wide, unless an extra or a reason is longer. Numbers and params are told as in
 * figures and reports (bench_words.c).
 */
void bench_print(const struct bench_result *result, FILE *out);

#endif
