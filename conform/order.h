/* SPDX-License-Identifier: MIT */
/*
 * Which cell comes when. Pure.
 *
 * In a round every CPU is the writer once and the executor once, of every promise. From round to
 * round the pairs change, so that a CPU that fails does so with more than one partner, and so does
 * the load beside them.
 */
#ifndef CONFORM_ORDER_H
#define CONFORM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct order {
	unsigned cpus, promises;
	unsigned first; /* the CPU that every round begins with */
	bool fixed;	/* two CPUs that keep their roles */
};

/* By index. */
struct turn {
	unsigned writer, executor, promise;
	bool loaded;
	unsigned load_on; /* neither of the two, where there is a third CPU */
};

/* order_round - how many turns a round has. */
uint64_t order_round(const struct order *o);

struct turn order_turn(const struct order *o, uint64_t n);

/* order_partner - the k-th CPU, from 0, that is neither of these two; cpu itself if none is. */
unsigned order_partner(const struct order *o, unsigned cpu, unsigned other, unsigned k);

#endif
