/* SPDX-License-Identifier: MIT */
/*
 * Rows of a benchmark in words that fit into a figure or a table.
 */
#ifndef BENCH_RECORD_BENCH_WORDS_H
#define BENCH_RECORD_BENCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/method/result.h"

#define WORDS_ROOM 256 /* holds whatever the functions below write */

/*
 * words_plain - a text in which there is nothing but letters, digits, spaces and the marks
 * that names are made of: gnuplot takes none of it for a quote, a comment or markup. Returns
 * buf, cut to size.
 */
char *words_plain(const char *text, char *buf, size_t size);

/*
 * words_of_params - "split 1|4, wait, 1 executor", plain. @without: keys that are not told,
 * ends with NULL; may be NULL. Returns buf, cut to size.
 */
char *words_of_params(const struct bench_row *row, const char *const without[], char *buf,
		      size_t size);

/* words_of_row - the same behind the name: "call: split 1|4, 1 executor". */
char *words_of_row(const struct bench_row *row, const char *const without[], char *buf,
		   size_t size);

/* words_slot - where text is in the list; added if it is not there yet. -1: no room for it. */
int words_slot(char (*list)[WORDS_ROOM], unsigned *count, unsigned most, const char *text);

/* word_listed - is it in the list, which ends with NULL? The list may be NULL. */
bool word_listed(const char *word, const char *const list[]);

/* row_measured - has it figures? */
bool row_measured(const struct bench_row *row);

/*
 * finite_or - value, or what stands for it where there is none: gnuplot takes a row with NaN
 * in it for no row.
 */
double finite_or(double value, double otherwise);

/* same_param - the same key and value. */
bool same_param(const struct bench_param *a, const struct bench_param *b);

/* rows_same_case - the same thing with the same params; the measure may be another. */
bool rows_same_case(const struct bench_row *a, const struct bench_row *b);

#endif
