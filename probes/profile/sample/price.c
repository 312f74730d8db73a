/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/price.h"

#include <stdlib.h>

#include "probes/profile/sample/watch.h"

#define CALLS  200
#define ROUNDS 31
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

/*
 * As in a program: between calls, stores that the probe's own have to wait for, and branches that
 * no processor foresees. Calls one behind the other cost half of that.
 */
static double round_of_calls(void)
{
	static uint32_t memory[4096];
	uint32_t dice = 1;
	uint64_t start = __builtin_ia32_rdtsc();

	for (int i = 0; i < CALLS; i++) {
		for (int j = 0; j < 8; j++) {
			dice = dice * 1664525 + 1013904223;
			memory[dice >> 20]++;
		}
		if (dice >> 31)
			memory[0] += dice;
		probed();
	}
	asm volatile("" : : "r"(memory) : "memory");
	return (double)(__builtin_ia32_rdtsc() - start) / CALLS;
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

/* In turn, since what else keeps the processor busy comes and goes: the median of differences. */
static void measure(uint32_t id)
{
	struct watch *watch = &watches[id];
	double price[ROUNDS];

	/* Far from the limit, and from the first call. */
	atomic_store_explicit(&watch->base, UINT64_MAX / 2, memory_order_relaxed);
	atomic_store_explicit(&watch->window, UINT64_MAX, memory_order_relaxed);
	round_of_calls();
	for (int i = 0; i < ROUNDS; i++) {
		double off = round_of_calls();

		if (fi_activate_how(&id, 1, watch_call, FI_KEEPS_VECTORS) < 0)
			return;
		price[i] = round_of_calls() - off;
		fi_deactivate(id);
	}
	qsort(price, ROUNDS, sizeof(*price), by_size);
	if (price[ROUNDS / 2] > 0)
		watch_common.price = price[ROUNDS / 2];
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
