/* SPDX-License-Identifier: MIT */
/* Burst samples, one per epoch: all probes are on for a moment, which shows where the time goes. */
#include "profile/sampler/epochs.h"

#include <string.h>
#include <unistd.h>

#define LENGTH		1500e-6 /* seconds */
#define SHORTEST	20e-6	/* seconds between looks for threads without an event yet, */
#define LONGEST		1e-3	/* growing to this */
#define PATIENCE	20	/* looks */
#define ENOUGH		20000	/* calls of probe functions after the end */
#define TRIES		64
#define BURST_ADDRESSES 16384u

/* Time at an address, in ticks, as it would be without probes. */
static struct burst_address {
	uint64_t at; /* 0: not known */
	double ticks[SHARE_GROUPS];
} addresses[BURST_ADDRESSES]; /* by hash; the first has what is not known */
static unsigned bursts;
static uint32_t turned_on[FI_PROBES_MAX];
static size_t turned_on_n;

static struct burst_address *find_address(uint64_t at)
{
	uint32_t hash = (uint32_t)((at * 0x9e3779b97f4a7c15) >> 40);

	for (unsigned i = 0; i < TRIES; i++) {
		struct burst_address *slot = &addresses[1 + (hash + i) % (BURST_ADDRESSES - 1)];

		if (!slot->at)
			slot->at = at;
		if (slot->at == at)
			return slot;
	}
	return &addresses[0];
}

/* Each counts by the time that it took, with probes: a sample like any other, however slow. */
static void add_bursts(double scale, double unknown)
{
	unsigned group = bursts % SHARE_GROUPS;

	addresses[0].ticks[group] += unknown;
	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		struct burst *burst = &ring->burst;

		addresses[0].ticks[group] += scale * (double)swap_relaxed(&burst->beyond, 0);
		for (unsigned i = 0; i < BURST_SLOTS; i++) {
			uint64_t at = load_relaxed(&burst->slot[i].at);
			uint64_t ticks = swap_relaxed(&burst->slot[i].ticks, 0);

			store_relaxed(&burst->slot[i].at, 0);
			if (ticks)
				find_address(at)->ticks[group] += scale * (double)ticks;
		}
	}
}

static void read_burst(void)
{
	uint64_t with_probes = 0, without = 0, unknown = burst_unknown_ticks();

	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		struct burst *burst = &ring->burst;

		with_probes += swap_relaxed(&burst->used, 0);
		without += load_relaxed(&burst->beyond);
		for (unsigned i = 0; i < BURST_SLOTS; i++)
			without += load_relaxed(&burst->slot[i].ticks);
	}
	add_bursts(without ? (double)with_probes / (double)without : 0, (double)unknown);
	bursts++;
}

static bool is_off(uint32_t id)
{
	uint64_t state = atomic_load(&watches[id].state);

	return function_states[id].watched && function_states[id].opened &&
	       (state & WATCH_BITS) != WATCH_OPEN && !(state & (WATCH_WAITS | WATCH_LEAVES));
}

static void turn_entries_on(void)
{
	turned_on_n = 0;
	for (uint32_t id = 0; id < known_probes; id++)
		if (is_off(id))
			turned_on[turned_on_n++] = id;
	toggles_note(clock_seconds(CLOCK_THREAD_CPUTIME_ID), exits_turn_all_on() < 0);
	toggles_on(turned_on, turned_on_n);
}

void bursts_settle(void)
{
	double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	size_t kept = 0;

	if (!account.sum.exits)
		return;
	for (size_t i = 0; i < turned_on_n; i++)
		if (is_off(turned_on[i]))
			turned_on[kept++] = turned_on[i];
	toggles_note(before, fi_deactivate_batch(turned_on, kept) < 0 || exits_turn_back_off() < 0);
}

/* Until each running thread had an event. All threads pay for it: ENOUGH calls end the wait. */
static void wait_for_all(void)
{
	uint64_t run = ring_run();
	double pause = SHORTEST;

	burst_poll();
	for (int i = 0; i < PATIENCE && ring_run() - run < ENOUGH; i++) {
		usleep((useconds_t)(pause * 1e6));
		if (!burst_poll())
			return;
		pause = pause < LONGEST / 2 ? 2 * pause : LONGEST;
	}
}

void bursts_sample(void)
{
	if (!account.sum.exits)
		return;
	turn_entries_on();
	burst_start();
	usleep((useconds_t)(LENGTH * 1e6));
	burst_end();
	wait_for_all();
	burst_close();
	read_burst();
}

static double ticks_of(const struct burst_address *place)
{
	double sum = 0;

	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		sum += place->ticks[i];
	return sum;
}

/* Seconds of the process's CPU time, as bursts saw it. What is not known has no address. */
static void put_burst_address(FILE *out, const struct burst_address *place, double scale)
{
	double seconds[SHARE_GROUPS];

	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		seconds[i] = place->ticks[i] * scale;
	fputc('S', out);
	if (!place->at || !report_address(out, place->at))
		fputs("\t\t0", out);
	report_numbers(out, seconds, SHARE_GROUPS);
}

void bursts_report(FILE *out, double cpu)
{
	double sum = 0;

	for (uint32_t i = 0; i < BURST_ADDRESSES; i++)
		sum += ticks_of(&addresses[i]);
	for (uint32_t i = 0; i < BURST_ADDRESSES; i++)
		if (ticks_of(&addresses[i]) > 0)
			put_burst_address(out, &addresses[i], cpu / sum);
}

void bursts_forget(void)
{
	if (bursts)
		memset(addresses, 0, sizeof(addresses));
	bursts = 0;
}
