/* SPDX-License-Identifier: MIT */
#include "bench/method/over.h"

#include <math.h>
#include <stdlib.h>

#define SEED 1 /* of the bootstrap; any will do */

static double of_two(const struct samples *s, size_t pair)
{
	return (samples_block_median(s, 2 * pair) + samples_block_median(s, 2 * pair + 1)) / 2;
}

struct bench_value over_pairs(const struct samples *s, const struct samples *base)
{
	size_t pairs = (s->blocks < base->blocks ? s->blocks : base->blocks) / 2;
	double *over = calloc(pairs + !pairs, sizeof(*over));
	struct bench_value v = { NAN, NAN, NAN };

	if (!over)
		return v;
	for (size_t i = 0; i < pairs; i++)
		over[i] = of_two(s, i) - of_two(base, i);
	v = bootstrap_median(over, pairs, SEED);
	free(over);
	return v;
}
