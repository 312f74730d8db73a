/* SPDX-License-Identifier: MIT */
/* Prices: what the probe functions cost in this process, measured by an empty function. */
#include "profile/sample/sample.h"

#include <stdlib.h>

#define CALLS  200
#define ROUNDS 15
#define GUESS  60 /* ticks, where the probe was refused */
#define OWN    16 /* bytes of price_function */

/* An empty function with an entry and an exit, as by -minstrument-return=nop5 of gcc. */
extern const char price_function[] __attribute__((visibility("hidden")));
asm(".pushsection .text\n"
    ".balign 16\n"
    ".hidden price_function\n"
    ".type price_function, @function\n"
    "price_function:\n"
    "\t.cfi_startproc\n"
    "\t.byte 0x0f, 0x1f, 0x44, 0, 0\n"
    "991:\t.byte 0x0f, 0x1f, 0x44, 0, 0\n"
    "\tret\n"
    "\t.cfi_endproc\n"
    ".size price_function, . - price_function\n"
    ".popsection\n"
    ".pushsection __mcount_loc, \"aw\"\n"
    "\t.quad price_function\n"
    ".popsection\n"
    ".pushsection __return_loc, \"aw\"\n"
    "\t.quad 991b\n"
    ".popsection\n");

static void call_function(void)
{
	((void (*)(void))(uintptr_t)price_function)();
}

bool price_is_own(const void *site)
{
	uintptr_t at = (uintptr_t)site, start = (uintptr_t)price_function;

	return at >= start && at < start + OWN;
}

/* As in a program: stores that the probe's own wait for, and branches that no CPU foresees. */
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
		call_function();
	}
	asm volatile("" : : "r"(memory) : "memory");
	return (double)(__builtin_ia32_rdtsc() - start) / CALLS;
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

static double median_price(double *price)
{
	qsort(price, ROUNDS, sizeof(*price), by_size);
	return price[ROUNDS / 2] > 0 ? price[ROUNDS / 2] : 0;
}

/* In turn, since what else keeps the processor busy comes and goes: the median of differences. */
static void measure_call(uint32_t id)
{
	struct watch *watch = &watches[id];
	double price[ROUNDS];

	/* No call is the first of the window, or its last: the limit is 0. */
	store_relaxed(&watch->base, UINT64_MAX / 2);
	store_relaxed(&watch->window, UINT64_MAX);
	round_of_calls();
	for (int i = 0; i < ROUNDS; i++) {
		double off = round_of_calls();

		if (fi_activate_how(&id, 1, watch_call, FI_KEEPS_VECTORS) < 0)
			return;
		price[i] = round_of_calls() - off;
		fi_deactivate(id);
	}
	if (median_price(price) > 0)
		watch_common.price = median_price(price);
	watch_common.warm = ring_metered();
}

/* Time of an empty call, as the probes see it: the mean of as many calls as a window times. */
static double round_of_pairs(struct watch *entry)
{
	store_relaxed(&entry->base, load_relaxed(&entry->calls));
	store_relaxed(&entry->timed, 0);
	store_relaxed(&entry->time, 0);
	for (unsigned i = 0; i < watch_common.callers; i++)
		call_function();
	return (double)entry->time / (double)(entry->timed ? entry->timed : 1);
}

/* Ticks between two events of a burst, with nothing between them. */
static double round_of_bursts(void)
{
	struct ring *ring = ring_here();
	uint64_t ticks = 0;

	if (!ring)
		return 0;
	burst_start();
	for (unsigned i = 0; i < CALLS; i++)
		call_function();
	burst_close();
	for (unsigned i = 0; i < BURST_SLOTS; i++) {
		ticks += swap_relaxed(&ring->burst.slot[i].ticks, 0);
		swap_relaxed(&ring->burst.slot[i].at, 0);
	}
	swap_relaxed(&ring->burst.used, 0);
	return (double)ticks / (2 * CALLS - 1);
}

/* Calls that measure are no calls of the program. */
static void forget_calls(void)
{
	struct ring *ring = ring_here();

	store_relaxed(&watch_common.spent, 0);
	callers_forget();
	if (!ring)
		return;
	store_relaxed(&ring->metered, 0);
	store_relaxed(&ring->meter, 0);
}

/* Entry and exit are linked while this measures. */
static void measure_pair(uint32_t entry, uint32_t exit)
{
	struct group group = { .entries = entry, .exits = exit };
	struct watch *watch = &watches[entry];
	double price[ROUNDS];

	watch->group = watches[exit].group = &group;
	watch->next = watches[exit].next = NO_PROBE;
	watches[exit].entry = entry;
	store_relaxed(&watch->window, UINT64_MAX);
	if (fi_activate_how(&exit, 1, watch_exit, FI_KEEPS_VECTORS) < 0 ||
	    fi_activate_how(&entry, 1, watch_call, FI_KEEPS_VECTORS) < 0)
		return;
	for (int i = 0; i < ROUNDS; i++)
		price[i] = round_of_pairs(watch);
	watch_common.pair = (uint64_t)median_price(price);
	for (int i = 0; i < ROUNDS; i++)
		price[i] = round_of_bursts();
	watch_common.between = (uint64_t)median_price(price);
	fi_deactivate(entry);
	fi_deactivate(exit);
	watch->group = watches[exit].group = NULL;
}

static void measure_prices(void)
{
	uint32_t n = fi_probes(), entry = NO_PROBE, exit = NO_PROBE;
	struct fi_probe probe;

	for (uint32_t id = 0; id < n; id++) {
		if (fi_get(id, &probe) < 0 || !price_is_own(probe.address))
			continue;
		if (probe.kind == FI_ENTRY)
			entry = id;
		else
			exit = id;
	}
	if (entry != NO_PROBE)
		measure_call(entry);
	if (entry != NO_PROBE && exit != NO_PROBE)
		measure_pair(entry, exit);
}

void price_measure(void)
{
	watch_common.price = GUESS;
	watch_common.warm = 0;
	measure_prices();
	forget_calls();
	watch_common.whole_price = (uint64_t)watch_common.price;
}
