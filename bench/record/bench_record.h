/* SPDX-License-Identifier: MIT */
/*
 * The result of a benchmark as a line of a journal, of type "bench"; as a figure; and its rows in
 * words that fit into a figure or a table.
 */
#ifndef BENCH_RECORD_BENCH_RECORD_H
#define BENCH_RECORD_BENCH_RECORD_H

#include <jansson.h>
#include <stdio.h>

#include "base/number.h"
#include "bench/cases/benchmarks.h"
#include "results/figures/gnuplot.h"

/* --- In a journal --------------------------------------------------------------------------- */

/*
 * bench_to_json - the body of the line (all but "type", "schema", "date", which
 * journal_write_line() adds). What is NAN is left out, what is infinite is the text "inf"
 * or "-inf". NULL: out of memory, or what bench_from_json() would refuse.
 */
json_t *bench_to_json(const struct bench_result *result);

/*
 * bench_from_json - back. -EINVAL: not such a line, or against the schema in any way that
 * matters; -ENOMEM. The caller frees with bench_result_free(), after an error there is
 * nothing to free.
 */
int bench_from_json(const json_t *line, struct bench_result *result);

/* --- As a figure ---------------------------------------------------------------------------- */

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

/* --- In words ------------------------------------------------------------------------------- */

#define WORDS_ROOM 256 /* holds all that the functions below write */

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

/*
 * words_of_result - lines on how and where it was measured, by which waits, and what else went on.
 * The caller frees them. NULL: no memory.
 */
char *words_of_result(const struct bench_result *result, uint64_t tsc_khz);

/*
 * bench_ticks_to_times - for people: what is in ticks becomes microseconds, or nanoseconds where no
 * median is as long. Unless the rate of the TSC is 0: not known.
 */
void bench_ticks_to_times(struct bench_result *result, uint64_t tsc_khz);

#define WORDS_MAX 32

/* Texts in the order in which they came. */
struct words {
	char text[WORDS_MAX][WORDS_ROOM];
	unsigned count;
};

/* words_slot - the index of text, which is added if there is room (most, WORDS_MAX); else -1. */
int words_slot(struct words *words, unsigned most, const char *text);

/* words_quoted - as one text, each plain and in quotes, a space apart; cut to size. */
void words_quoted(const struct words *words, char *text, size_t size);

/*
 * word_listed - is it in the list, which ends with NULL? The list may be NULL. row_measured - has
 * it figures? rows_same_case - the same thing with the same params; the measure may be another.
 */
bool word_listed(const char *word, const char *const list[]);
bool row_measured(const struct bench_row *row);
bool rows_same_case(const struct bench_row *a, const struct bench_row *b);

/*
 * finite_or - value, or what stands for it where there is none: gnuplot takes a row with NaN
 * in it for no row. bench_rounded - without digits that mean nothing: from 100 on a whole number.
 * FIGURE - as a text for an argument of printf().
 */
double finite_or(double value, double otherwise);
double bench_rounded(double value);
#define FIGURE(value) NUMBER(bench_rounded(value))

#endif
