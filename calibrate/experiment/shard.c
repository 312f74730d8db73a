/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/shard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

/* strtoul() would take a sign and leading blanks, too. */
static bool take_number(const char **text, unsigned *number)
{
	unsigned long value;
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	value = strtoul(*text, &end, 10);
	*text = end;
	*number = (unsigned)value;
	return value >= 1 && value <= SHARDS_MAX;
}

int shard_parse(const char *text, struct shard *shard)
{
	if (!take_number(&text, &shard->number) || *text++ != '/' ||
	    !take_number(&text, &shard->of) || *text || shard->number > shard->of)
		return -EINVAL;
	return 0;
}

int shard_order(size_t *order, size_t count, uint64_t seed)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	if (!rng)
		return -ENOMEM;
	/* To this generator 0 is its default seed: no two seeds shall be the same one. */
	gsl_rng_set(rng, seed + 1);
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	gsl_ran_shuffle(rng, order, count, sizeof(*order));
	gsl_rng_free(rng);
	return 0;
}
