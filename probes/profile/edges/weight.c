/* SPDX-License-Identifier: MIT */
#include "probes/profile/edges/weight.h"

#include <string.h>

#define PART  0.75
#define LEAST 0.1 /* of the price: what is left at least */

/* The fourth least of all 64, and of fewer accordingly. */
static double quick_block(const struct weights *weights)
{
	size_t n = weights->n < WEIGHT_RECENT ? weights->n : WEIGHT_RECENT, less = n / 17;
	double sorted[WEIGHT_RECENT / 17 + 2] = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = kept;

		while (at && sorted[at - 1] > weights->recent[i])
			at--;
		if (at > less)
			continue;
		kept += kept <= less;
		memmove(&sorted[at + 1], &sorted[at], (kept - at - 1) * sizeof(sorted[0]));
		sorted[at] = weights->recent[i];
	}
	return sorted[less];
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
