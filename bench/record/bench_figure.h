/* SPDX-License-Identifier: MIT */
/*
 * A benchmark as a figure, drawn by gnuplot.
 */
#ifndef BENCH_RECORD_BENCH_FIGURE_H
#define BENCH_RECORD_BENCH_FIGURE_H

#include <stddef.h>
#include <stdio.h>

#include "bench/method/result.h"
#include "results/figures/gnuplot.h"

#define BENCH_ARGS_SIZE 128

/* A benchmark as gnuplot draws it. */
struct bench_figure {
	struct picture picture;
	char *data; /* of the picture, owned */
	char text[PICTURE_ARGS_MAX][BENCH_ARGS_SIZE];
	const char *args[PICTURE_ARGS_MAX + 1];
};

/*
 * bench_figure_draw - for the caller to free figure->data, after an error too; the figure stays
 * where it is. 0, or with the reason in words in error: -EINVAL: no figure is known for this
 * benchmark; -ENODATA: nothing was measured that could be drawn; -ENOMEM.
 */
int bench_figure_draw(const struct bench_result *result, struct bench_figure *figure, char *error,
		      size_t size);

#endif
