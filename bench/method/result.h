/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark found: rows of one shape for all that is measured, so that text,
 * journal, figures and report are written once.
 */
#ifndef BENCH_METHOD_RESULT_H
#define BENCH_METHOD_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stress/cell/cell.h"

#define BENCH_PARAMS 8 /* per row */
#define BENCH_EXTRAS 6
#define BENCH_KEY    24
#define BENCH_TEXT   64
#define BENCH_WHY    160

/* A median and the interval that holds it with 95 % confidence, by bootstrap; NAN: none. */
struct bench_value {
	double median;
	double low;
	double high;
};

/*
 * What tells a row from others of its case: "split" = "1|4", "executors" = 1. Or another number
 * that belongs to it: "balance".
 */
struct bench_param {
	char key[BENCH_KEY];
	char text[BENCH_TEXT]; /* empty: it is a number */
	double number;
};

struct bench_row {
	char name[BENCH_TEXT];	 /* what was done, or by which peer: "call", "uprobe" */
	char measure[BENCH_KEY]; /* what of it: "change", "on", "off", "calls", "stall" */
	char unit[BENCH_KEY];	 /* "ticks", "calls/s", "changes/s" */
	bool peer;		 /* not this library's, but what one would use instead */
	struct bench_param param[BENCH_PARAMS];
	unsigned params;

	uint64_t samples;	  /* 0: skipped, see why */
	uint64_t pairs;		  /* A B B A quadruples (without a baseline: blocks) */
	struct bench_value value; /* of the medians of the blocks */
	double least, p5, p25, p75, p95, p99, most; /* over all samples: none is thrown away */
	uint64_t outliers;			    /* samples beyond p75 + 3 (p75 - p25) */

	char against[BENCH_TEXT]; /* the baseline measured in turn, empty: none */
	struct bench_value base;
	struct bench_value ratio; /* of each quadruple, value to base */

	struct bench_param extra[BENCH_EXTRAS]; /* numbers only */
	unsigned extras;
	char why[BENCH_WHY]; /* printable ASCII */
};

struct bench_result {
	char benchmark[BENCH_KEY];
	char date[32]; /* when it ended */
	uint64_t seed; /* of the order */
	unsigned rounds;
	double seconds;
	struct seating seating; /* most executors that it used */
	struct waits waits;	/* in use for policy wait; 0: refused */
	char waits_from[16];	/* "config"; "assumed": nothing is known of tears; "none" */
	/*
	 * Half a round trip of a line, ticks: the median of the last bench_measure(), and the
	 * least and the most seen in a round of any.
	 */
	struct bench_value distance;
	struct witness witness;
	struct bench_row *row; /* owned */
	unsigned rows;
};

/* bench_result_add - one more row, zeroed. NULL: out of memory. Valid until the next. */
struct bench_row *bench_result_add(struct bench_result *result);

/* bench_result_free - its rows; then it is empty. */
void bench_result_free(struct bench_result *result);

/*
 * bench_row_name - begin a row. bench_row_param, _param_text, _extra - one more; too many or
 * too long a key is a bug (assert). bench_row_skip - it has no figures, and why, cut to fit.
 */
void bench_row_name(struct bench_row *row, const char *name, const char *measure, const char *unit);
void bench_row_param(struct bench_row *row, const char *key, double number);
void bench_row_param_text(struct bench_row *row, const char *key, const char *text);
void bench_row_extra(struct bench_row *row, const char *key, double number);
void bench_row_skip(struct bench_row *row, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Of a row; none: NAN, NULL. */
double bench_row_number(const struct bench_row *row, const char *key);
const char *bench_row_text(const struct bench_row *row, const char *key);
double bench_row_extra_of(const struct bench_row *row, const char *key);

/*
 * bench_row_same - is the difference to the baseline smaller than the noise? True
 * where the interval of the ratio holds 1, or is none.
 */
bool bench_row_same(const struct bench_row *row);

/* --- Samples in blocks, and what can be said of them ---------------------------------------- */

struct samples {
	double *value;
	size_t count;
	size_t *end; /* of each finished block */
	size_t blocks;
	bool lost; /* out of memory: samples are missing */
	bool odd;  /* one was infinite, or no number (and left out) */
};

/*
 * samples_add - to the block under way. samples_end_block - it is complete, also if it is
 * empty: the second block of a quadruple must not pass for the first.
 */
void samples_add(struct samples *s, double value);
void samples_end_block(struct samples *s);
void samples_free(struct samples *s);

/* samples_block_median - of one finished block; NAN: it is empty. */
double samples_block_median(const struct samples *s, size_t block);

/*
 * samples_sum_up - fill in everything of a row that samples tell.
 *
 * base may be NULL. Blocks of both came in quadruples A B B A: two of each, in the order
 * in which they were measured; the ratio of a quadruple is that of the sums of its block
 * medians. A quadruple with an empty block has no ratio. Intervals of value and base are
 * drawn by pairs of neighbours, that of the ratio by quadruples.
 * 0; -ENOMEM, also where samples were lost; -EDOM: a sample was not a finite number.
 */
int samples_sum_up(const struct samples *s, const struct samples *base, uint64_t seed,
		   struct bench_row *row);

/*
 * over_pairs - how much more than its baseline something takes, where the difference says more
 * than the ratio: a loop of one cycle per pass is twice as long with one cycle more. Median and
 * interval of the difference of block medians, s less base, of two blocks of each at once. Those
 * came as A B B A, or side by side, so what drifts is gone. NAN: there are no two blocks of both.
 */
struct bench_value over_pairs(const struct samples *s, const struct samples *base);

/* bench_row_over - that, as extras of the row. Returns the median. */
double bench_row_over(struct bench_row *row, const struct samples *s, const struct samples *base);

#endif
