/* SPDX-License-Identifier: MIT */
#include "conform/order.h"

/* A step through all distances but 0, near the golden section, so that few rounds see all kinds. */
static unsigned step_of(unsigned distances)
{
	unsigned step = (unsigned)(0.618 * distances), a, b;

	for (step += step == 0;; step++) {
		for (a = distances, b = step; b;) {
			unsigned rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

uint64_t order_round(const struct order *o)
{
	return (uint64_t)o->promises * (o->fixed ? 1 : o->cpus);
}

unsigned order_partner(const struct order *o, unsigned cpu, unsigned other, unsigned k)
{
	unsigned left = o->cpus;

	for (unsigned i = (cpu + 1 + k * (o->cpus / 4 + 1)) % o->cpus; left > 0; left--) {
		if (i != cpu && i != other)
			return i;
		i = (i + 1) % o->cpus;
	}
	return cpu;
}

struct turn order_turn(const struct order *o, uint64_t n)
{
	unsigned distances = o->cpus > 1 ? o->cpus - 1 : 1;
	uint64_t round = n / order_round(o), rest = n % order_round(o);
	struct turn t = { .promise = (unsigned)(rest % o->promises) };
	unsigned distance = 1 + (unsigned)(round % distances * step_of(distances) % distances);

	/* Where the number of distances is even, each would have the same load every time. */
	t.loaded = (round + (distances % 2 ? 0 : round / distances)) % 2;
	t.writer = o->fixed ? 0 : (unsigned)((o->first + rest / o->promises) % o->cpus);
	t.executor = o->cpus > 1 ? (t.writer + (o->fixed ? 1 : distance)) % o->cpus : t.writer;
	t.load_on = order_partner(o, t.executor, t.writer, 0);
	return t;
}
