/* SPDX-License-Identifier: MIT */
/*
 * The data of the figures of benchmarks, as the scripts read them. What a journal brings is
 * in them only as numbers and as the plain words of bench/record/bench_words.h, in quotes.
 */
#ifndef BENCH_FIGURES_BENCH_DATA_H
#define BENCH_FIGURES_BENCH_DATA_H

#include <stdio.h>

#include "bench/figures/bench_figure.h"
#include "bench/method/result.h"

/* print - the data of arg, a struct bench_result. args - the script's, see each script. */
void bench_rows_print(FILE *stream, const void *arg);
unsigned bench_rows_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);

void bench_latency_print(FILE *stream, const void *arg);
unsigned bench_latency_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);

void bench_throughput_print(FILE *stream, const void *arg);
unsigned bench_throughput_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);

void bench_scaling_print(FILE *stream, const void *arg);
unsigned bench_scaling_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);

#endif
