/* SPDX-License-Identifier: MIT */
/*
 * Samples in blocks, and what can be said of them.
 */
#ifndef BENCH_METHOD_SAMPLES_H
#define BENCH_METHOD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/method/result.h"

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

/*
 * samples_histogram - bins on a logarithmic scale, eight to an octave, from the least to
 * the most sample; all that is below 1 in one bin, and all beyond the last one in that.
 * 0 or -ENOMEM.
 */
int samples_histogram(const struct samples *s, struct bench_row *row);

#endif
