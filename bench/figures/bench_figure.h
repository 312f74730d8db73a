/* SPDX-License-Identifier: MIT */
/*
 * A benchmark as a figure, drawn by gnuplot.
 */
#ifndef BENCH_FIGURES_BENCH_FIGURE_H
#define BENCH_FIGURES_BENCH_FIGURE_H

#include <stddef.h>
#include <stdio.h>

#include "bench/method/result.h"
#include "results/figures/gnuplot.h"

#define BENCH_ARGS_SIZE 128

/* What draws a benchmark: a script of gnuplot beside this, and its words. */
struct bench_figure {
	const char *benchmark;
	const char *script;  /* "bench-rows.gp" */
	const char *label;   /* what it shows, for readers that do not see it */
	const char *caption; /* plain text: what is drawn how, and what it does not show */
	/*
	 * Its data, as the script reads them. What a journal brings is in them only as numbers and
	 * as the plain words of bench/record/bench_words.h, in quotes.
	 */
	void (*print)(FILE *stream, const void *result);
	/*
	 * Arguments of the script, behind the data: written to args, of BENCH_ARGS_SIZE bytes
	 * each, PICTURE_ARGS_MAX at most. Returns how many; 0: nothing of it can be drawn.
	 */
	unsigned (*args)(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);
};

/* bench_figure_of - NULL for a benchmark that is not known. */
const struct bench_figure *bench_figure_of(const char *benchmark);

/* bench_figure_args - the script's arguments, ended by NULL; words live as long as they. As args.
 */
struct bench_words {
	char text[PICTURE_ARGS_MAX][BENCH_ARGS_SIZE];
	const char *args[PICTURE_ARGS_MAX + 1];
};
unsigned bench_figure_args(const struct bench_figure *f, const struct bench_result *result,
			   struct bench_words *words);

/*
 * bench_figure_write - PREFIX.dat, PREFIX.svg, PREFIX.png. Errors as figure9_write(); -ENODATA:
 * nothing was measured that could be drawn.
 */
int bench_figure_write(const struct bench_result *result, const char *prefix, char *error,
		       size_t size);

/* bench_scaling_print - the data of arg, a struct bench_result. bench_scaling_args - the script's.
 */
void bench_scaling_print(FILE *stream, const void *arg);
unsigned bench_scaling_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);

#endif
