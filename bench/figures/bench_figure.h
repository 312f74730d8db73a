/* SPDX-License-Identifier: MIT */
/*
 * A benchmark as a figure, drawn by gnuplot.
 */
#ifndef BENCH_FIGURES_BENCH_FIGURE_H
#define BENCH_FIGURES_BENCH_FIGURE_H

#include <stddef.h>
#include <stdio.h>

#include "bench/method/result.h"

#define BENCH_ARGS_SIZE 128

/* What draws a benchmark: a script of gnuplot beside this, and its words. */
struct bench_figure {
	const char *benchmark;
	const char *script;  /* "bench-rows.gp" */
	const char *label;   /* what it shows, for those who do not see it */
	const char *caption; /* plain text: what is drawn how, and what it does not show */
	void (*print)(FILE *stream, const void *result); /* its data */
	/*
	 * Arguments of the script, behind the data: written to args, of BENCH_ARGS_SIZE bytes
	 * each, PICTURE_ARGS_MAX at most. Returns how many; 0: nothing of it can be drawn.
	 */
	unsigned (*args)(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE]);
};

/* bench_figure_of - NULL for a benchmark that nobody knows. */
const struct bench_figure *bench_figure_of(const char *benchmark);

/*
 * bench_figure_write - PREFIX.dat, PREFIX.svg, PREFIX.png. Errors as figure9_write(); -ENODATA:
 * nothing was measured that could be drawn.
 */
int bench_figure_write(const struct bench_result *result, const char *prefix, char *error,
		       size_t size);

#endif
