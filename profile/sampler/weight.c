/* SPDX-License-Identifier: MIT */
#include "profile/sampler/edges.h"

#include <stdlib.h>
#include <string.h>

#define PART  0.75
#define LEAST 0.1 /* of the price: the least that is left of a block */

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

/* The fourth least of 64 phases, and of fewer phases in proportion. */
static double quick_block(const struct weights *weights)
{
	size_t n = weights->n < WEIGHT_RECENT ? weights->n : WEIGHT_RECENT;
	double sorted[WEIGHT_RECENT];

	memcpy(sorted, weights->recent, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return sorted[n / 17];
}

double weight_of_phase(struct weights *weights, double seconds, double cpu, uint64_t runs)
{
	double each, price, left;

	if (!runs || !(seconds > 0))
		return 0;
	each = (cpu > seconds ? cpu : seconds) / (double)runs;
	weights->recent[weights->n++ % WEIGHT_RECENT] = each;
	price = PART * quick_block(weights);
	left = each - price > LEAST * price ? each - price : LEAST * price;
	return each / left / seconds;
}
