/* SPDX-License-Identifier: MIT */
/*
 * A figure as files: data, and two pictures of them drawn by gnuplot.
 */
#ifndef RESULTS_FIGURES_GNUPLOT_H
#define RESULTS_FIGURES_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

#define PICTURE_PATH 4096

struct picture {
	char data[PICTURE_PATH];
	char svg[PICTURE_PATH];
	char png[PICTURE_PATH];
};

/* picture_fail - rc, with the reason in words in error. */
int picture_fail(int rc, char *error, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* picture_name - PREFIX.dat, PREFIX.svg, PREFIX.png. 0 or -ENAMETOOLONG. */
int picture_name(struct picture *p, const char *prefix);

/*
 * picture_write_data - write the data by print; older pictures are removed first,
 * because a picture of older data must not stand beside new data.
 *
 * 0, -ENOTDIR if the folder is missing, else what writing failed with; then
 * nothing is left.
 */
int picture_write_data(const struct picture *p, void (*print)(FILE *stream, const void *arg),
		       const void *arg);

/* picture_data - picture_name() and picture_write_data(), with the reason in words in error. */
int picture_data(struct picture *p, const char *prefix,
		 void (*print)(FILE *stream, const void *arg), const void *arg, char *error,
		 size_t size);

/*
 * picture_draw - run "gnuplot -d -c SCRIPT FORMAT OUTPUT DATA ARGS..." for both.
 * @args: ends with NULL, at most PICTURE_ARGS_MAX before it.
 *
 * The script is found by data_file(); $TMAX_GNUPLOT names another gnuplot. 0, or with
 * the reason in words in error: -ENOENT if gnuplot or the script is missing, -EIO if it
 * failed. Then no picture is left.
 */
#define PICTURE_ARGS_MAX 8
int picture_draw(const struct picture *p, const char *script, const char *const args[], char *error,
		 size_t size);

#endif
