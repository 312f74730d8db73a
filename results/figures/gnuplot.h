/* SPDX-License-Identifier: MIT */
/* A figure as files: PREFIX.dat, and PREFIX.svg and PREFIX.png drawn from it by gnuplot. */
#ifndef RESULTS_FIGURES_GNUPLOT_H
#define RESULTS_FIGURES_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

#define PICTURE_PATH	 4096
#define PICTURE_ARGS_MAX 8

struct picture {
	void (*print)(FILE *stream, const void *arg); /* writes the data */
	const void *arg;
	const char *script;	 /* NULL: the data are all there is */
	const char *const *args; /* of the script, ends with NULL */
};

/* picture_fail - rc, with the reason in words in error. */
int picture_fail(int rc, char *error, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * picture_make - write the data, and run "gnuplot -d -c SCRIPT FORMAT OUTPUT DATA ARGS..." for svg
 * and for png. Pictures of older data are gone in any case.
 *
 * The script is found by data_file(); $TMAX_GNUPLOT names another gnuplot. 0, or with the reason
 * in words in error: -ENOENT if gnuplot or the script is missing, -EIO if it failed, both with the
 * data written; -ENOTDIR if the folder is missing; else what writing failed with.
 */
int picture_make(const struct picture *picture, const char *prefix, char *error, size_t size);

#endif
