/* SPDX-License-Identifier: MIT */
/* Burst samples: what threads note while all probes are on, and how that starts and ends. */
#include "profile/sample/sample.h"

#define TRIES 16
#define NOTED 64   /* threads whose clocks are read: each is a system call */
#define RUNS  2000 /* ticks; a thread that only waits uses fewer */

static uint64_t numbers;

FI_FUNCTION static void add_at_address(struct burst *burst, uint64_t at, uint64_t ticks)
{
	for (unsigned i = 0; i < TRIES; i++) {
		unsigned slot = (unsigned)((at * 0x9e3779b97f4a7c15) >> 55) + i;
		uint64_t there = 0;
		_Atomic uint64_t *key = &burst->slot[slot % BURST_SLOTS].at;

		if (atomic_compare_exchange_strong_explicit(key, &there, at, memory_order_relaxed,
							    memory_order_relaxed) ||
		    there == at)
			return add_own(&burst->slot[slot % BURST_SLOTS].ticks, ticks);
	}
	add_own(&burst->beyond, ticks);
}

FI_FUNCTION static void begin_burst(struct ring *ring, uint64_t number, uint64_t now)
{
	struct burst *burst = &ring->burst;
	uint64_t start = load_relaxed(&burst->start);
	uint64_t idle = start ? load_relaxed(&burst->waited) : frames_read_waited(ring, now);

	store_relaxed(&burst->last, start ? start : now);
	store_relaxed(&burst->idle, idle);
	store_relaxed(&burst->number, number);
}

/* Ticks that the thread had a CPU since its last event. Without a known start: 0. */
FI_FUNCTION static uint64_t used_since(struct ring *ring, uint64_t last, uint64_t now)
{
	struct burst *burst = &ring->burst;
	uint64_t used = now > last ? now - last : 0, idle, more;

	if (used < watch_common.recent)
		return used;
	idle = frames_read_waited(ring, now);
	more = idle - load_relaxed(&burst->idle);
	store_relaxed(&burst->idle, idle);
	return (int64_t)more < 0 ? used : more < used ? used - more : 0;
}

FI_FUNCTION void burst_add_event(struct ring *ring, uint64_t number, uint64_t at, uint64_t now)
{
	struct burst *burst = &ring->burst;
	uint64_t end = load_relaxed(&watch_common.burst_end);
	uint64_t last, used, until;

	if (load_relaxed(&burst->number) != number)
		begin_burst(ring, number, now);
	if (load_relaxed(&burst->done) == number)
		return;
	last = load_relaxed(&burst->last);
	used = used_since(ring, last, now);
	until = now < end ? now : end;
	if (used > until - last)
		used = until > last ? until - last : 0;
	add_own(&burst->used, used);
	add_at_address(burst, at, used > watch_common.between ? used - watch_common.between : 0);
	if (now >= end)
		store_relaxed(&burst->done, number);
}

FI_FUNCTION void burst_end_event(struct ring *ring, uint64_t now)
{
	uint64_t after = __builtin_ia32_rdtsc();

	if (load_relaxed(&ring->burst.done) == load_relaxed(&ring->burst.number))
		return;
	add_own(&ring->burst.used, after - now);
	store_relaxed(&ring->burst.last, after);
}

void burst_start(void)
{
	unsigned most = NOTED;

	for (struct ring *ring = ring_list(); ring; ring = ring->next)
		store_relaxed(&ring->burst.start, 0);
	for (struct ring *ring = ring_list(); (ring = ring_known(ring, &most)); ring = ring->next) {
		uint64_t now = __builtin_ia32_rdtsc();

		store_relaxed(&ring->burst.waited, ring_waited(ring, now));
		store_relaxed(&ring->burst.start, now);
	}
	store_relaxed(&watch_common.burst_end, NEVER);
	/* Pairs with the acquire of burst_number(). */
	store_release(&watch_common.burst, ++numbers);
}

void burst_end(void)
{
	store_relaxed(&watch_common.burst_end, __builtin_ia32_rdtsc());
}

void burst_close(void)
{
	store_release(&watch_common.burst, 0);
}

static bool has_seen_end(const struct ring *ring)
{
	return load_relaxed(&ring->burst.done) == numbers;
}

/* Ticks that the thread had a CPU before the end, of which no event has told where. */
static uint64_t unseen_ticks(const struct ring *ring)
{
	const struct burst *burst = &ring->burst;
	bool begun = load_relaxed(&burst->number) == numbers;
	uint64_t end = load_relaxed(&watch_common.burst_end);
	uint64_t last = load_relaxed(begun ? &burst->last : &burst->start);
	uint64_t idle = load_relaxed(begun ? &burst->idle : &burst->waited);
	uint64_t now = __builtin_ia32_rdtsc(), used;

	if (!last || end <= last)
		return 0;
	used = now - last;
	idle = ring_waited(ring, now) - idle;
	if ((int64_t)idle > 0)
		used -= idle < used ? idle : used;
	return used < end - last ? used : end - last;
}

bool burst_poll(void)
{
	bool waits = false;
	unsigned most = NOTED;

	for (struct ring *ring = ring_list(); (ring = ring_known(ring, &most)); ring = ring->next) {
		uint64_t now = __builtin_ia32_rdtsc(), used = now - ring_waited(ring, now);

		waits |= used - ring->burst.polled > RUNS && !has_seen_end(ring);
		ring->burst.polled = used;
	}
	return waits;
}

uint64_t burst_unknown_ticks(void)
{
	uint64_t sum = 0;
	unsigned most = NOTED;

	for (struct ring *ring = ring_list(); (ring = ring_known(ring, &most)); ring = ring->next)
		sum += has_seen_end(ring) ? 0 : unseen_ticks(ring);
	return sum;
}
