/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/meter.h"

#include <stddef.h>

static void add_ring(const struct ring *ring, double *calls, double *ticks)
{
	*calls += (double)load_relaxed(&ring->metered);
	*ticks += (double)load_relaxed(&ring->meter);
}

double meter_mean(const struct ring *ring)
{
	double calls = 0, ticks = 0;

	if (ring)
		add_ring(ring, &calls, &ticks);
	return calls > 0 ? ticks / calls : 0;
}

/* The meter is inside of the probe function; what leads there finds the same caches. */
double meter_price(void)
{
	double calls = 0, ticks = 0;

	for (const struct ring *ring = ring_list(); ring; ring = ring->next)
		add_ring(ring, &calls, &ticks);
	if (watch_common.warm <= 0 || ticks <= calls * watch_common.warm)
		return watch_common.price;
	return watch_common.price * ticks / calls / watch_common.warm;
}

void meter_forget(struct ring *ring)
{
	store_relaxed(&ring->metered, 0);
	store_relaxed(&ring->meter, 0);
}
