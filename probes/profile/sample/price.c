/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/price.h"

#include "probes/profile/sample/watch.h"

#define CALLS  2000
#define ROUNDS 5
#define GUESS  60 /* ticks, where the compiler left no probe */

__attribute__((patchable_function_entry(5), noinline)) static void probed(void)
{
	asm volatile("");
}

bool price_is_own(const void *site)
{
	const char *start = (const char *)probed;

	return (const char *)site >= start && (const char *)site < start + 16;
}

static double round_of_calls(void)
{
	uint64_t start = __builtin_ia32_rdtsc();

	for (int i = 0; i < CALLS; i++)
		probed();
	return (double)(__builtin_ia32_rdtsc() - start) / CALLS;
}

static double best(void)
{
	double least = round_of_calls();

	for (int i = 1; i < ROUNDS; i++) {
		double next = round_of_calls();

		least = next < least ? next : least;
	}
	return least;
}

static void measure(uint32_t id)
{
	struct watch *watch = &watches[id];
	double off = best(), on;

	/* Far from the limit, and from the first call. */
	atomic_store_explicit(&watch->base, UINT64_MAX / 2, memory_order_relaxed);
	atomic_store_explicit(&watch->window, UINT64_MAX, memory_order_relaxed);
	if (fi_activate_how(&id, 1, watch_call, FI_KEEPS_VECTORS) < 0)
		return;
	on = best();
	fi_deactivate(id);
	if (on > off)
		watch_common.price = on - off;
}

void price_measure(void)
{
	struct fi_probe probe;
	uint32_t n = fi_probes();

	watch_common.price = GUESS;
	for (uint32_t id = 0; id < n; id++)
		if (!fi_get(id, &probe) && probe.kind == FI_ENTRY && price_is_own(probe.address))
			measure(id);
}
