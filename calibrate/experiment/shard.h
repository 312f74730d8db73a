/* SPDX-License-Identifier: MIT */
/*
 * Cutting a list of cells into shards, to be run on different days or machines
 * of one kind.
 */
#ifndef CALIBRATE_EXPERIMENT_SHARD_H
#define CALIBRATE_EXPERIMENT_SHARD_H

#include <stddef.h>
#include <stdint.h>

#define SHARDS_MAX 1000

/* The number-th of so many, from 1. 1/1 is everything. */
struct shard {
	unsigned number;
	unsigned of;
};

/* shard_parse - "3/16". 0 or -EINVAL. */
int shard_parse(const char *text, struct shard *shard);

/*
 * shard_order - the numbers 0 to count - 1 in an order that the seed decides.
 *
 * A list of cells has its slow ones together and its fast ones together; in a
 * shuffled order every stretch of it, and every shard, is like every other. 0 or
 * -ENOMEM.
 */
int shard_order(size_t *order, size_t count, uint64_t seed);

/* shard_has - is what stands at this place of the order part of the shard? */
static inline int shard_has(const struct shard *shard, size_t place)
{
	return place % shard->of == shard->number - 1;
}

#endif
