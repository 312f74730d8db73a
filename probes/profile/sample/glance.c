/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/sample.h"

#define TRIES 16
#define NOTED 64   /* threads of which clocks are read: each is a system call */
#define RUNS  2000 /* ticks, which a thread that only waits does not use */

static uint64_t numbers;

/* --- Threads of the program ------------------------------------------------------------------- */

FI_FUNCTION static void add_at(struct glimpse *glimpse, uint64_t at, uint64_t ticks)
{
	for (unsigned i = 0; i < TRIES; i++) {
		unsigned place = (unsigned)((at * 0x9e3779b97f4a7c15) >> 55) + i;
		uint64_t there = 0;
		_Atomic uint64_t *key = &glimpse->place[place % PLACES].at;

		if (atomic_compare_exchange_strong_explicit(key, &there, at, memory_order_relaxed,
							    memory_order_relaxed) ||
		    there == at)
			return add_own(&glimpse->place[place % PLACES].ticks, ticks);
	}
	add_own(&glimpse->beyond, ticks);
}

FI_FUNCTION static void begin_glimpse(struct ring *ring, uint64_t number, uint64_t now)
{
	struct glimpse *glimpse = &ring->glimpse;
	uint64_t start = load_relaxed(&glimpse->start);
	uint64_t idle = start ? load_relaxed(&glimpse->waited) : frames_waited(ring, now);

	store_relaxed(&glimpse->last, start ? start : now);
	store_relaxed(&glimpse->idle, idle);
	store_relaxed(&glimpse->number, number);
}

/* Ticks with a CPU since the last event. Where it is not known from when on: since now. */
FI_FUNCTION static uint64_t used_since(struct ring *ring, uint64_t last, uint64_t now)
{
	struct glimpse *glimpse = &ring->glimpse;
	uint64_t used = now > last ? now - last : 0, idle, more;

	if (used < watch_common.recent)
		return used;
	idle = frames_waited(ring, now);
	more = idle - load_relaxed(&glimpse->idle);
	store_relaxed(&glimpse->idle, idle);
	return (int64_t)more < 0 ? used : more < used ? used - more : 0;
}

FI_FUNCTION void glance_event(struct ring *ring, uint64_t number, uint64_t at, uint64_t now)
{
	struct glimpse *glimpse = &ring->glimpse;
	uint64_t end = load_relaxed(&watch_common.glance_end);
	uint64_t last, used, until;

	if (load_relaxed(&glimpse->number) != number)
		begin_glimpse(ring, number, now);
	if (load_relaxed(&glimpse->done) == number)
		return;
	last = load_relaxed(&glimpse->last);
	used = used_since(ring, last, now);
	until = now < end ? now : end;
	if (used > until - last)
		used = until > last ? until - last : 0;
	add_own(&glimpse->used, used);
	add_at(glimpse, at, used > watch_common.between ? used - watch_common.between : 0);
	if (now >= end)
		store_relaxed(&glimpse->done, number);
}

FI_FUNCTION void glance_go_on(struct ring *ring, uint64_t now)
{
	uint64_t after = __builtin_ia32_rdtsc();

	if (load_relaxed(&ring->glimpse.done) == load_relaxed(&ring->glimpse.number))
		return;
	add_own(&ring->glimpse.used, after - now);
	store_relaxed(&ring->glimpse.last, after);
}

/* --- The thread of epochs --------------------------------------------------------------------- */

/* The n-th of those that are looked at; NULL behind the last. */
static struct ring *next_known(struct ring *ring, unsigned *n)
{
	for (; ring && *n < NOTED; ring = ring->next)
		if (ring != ring_here() && load_relaxed(&ring->taken)) {
			++*n;
			return ring;
		}
	return NULL;
}

void glance_begin(void)
{
	unsigned n = 0;

	for (struct ring *ring = ring_list(); ring; ring = ring->next)
		store_relaxed(&ring->glimpse.start, 0);
	for (struct ring *ring = ring_list(); (ring = next_known(ring, &n)); ring = ring->next) {
		uint64_t now = __builtin_ia32_rdtsc();

		store_relaxed(&ring->glimpse.waited, ring_waited(ring, now));
		store_relaxed(&ring->glimpse.start, now);
	}
	store_relaxed(&watch_common.glance_end, NEVER);
	/* Pairs with the acquire of glance_number(). */
	store_release(&watch_common.glance, ++numbers);
}

void glance_end(void)
{
	store_relaxed(&watch_common.glance_end, __builtin_ia32_rdtsc());
}

void glance_over(void)
{
	store_release(&watch_common.glance, 0);
}

static bool has_told(const struct ring *ring)
{
	return load_relaxed(&ring->glimpse.done) == numbers;
}

/* Ticks with a CPU until the end that the thread has not told of. */
static uint64_t untold(const struct ring *ring)
{
	const struct glimpse *glimpse = &ring->glimpse;
	bool begun = load_relaxed(&glimpse->number) == numbers;
	uint64_t end = load_relaxed(&watch_common.glance_end);
	uint64_t last = load_relaxed(begun ? &glimpse->last : &glimpse->start);
	uint64_t idle = load_relaxed(begun ? &glimpse->idle : &glimpse->waited);
	uint64_t now = __builtin_ia32_rdtsc(), used;

	if (!last || end <= last)
		return 0;
	used = now - last;
	idle = ring_waited(ring, now) - idle;
	if ((int64_t)idle > 0)
		used -= idle < used ? idle : used;
	return used < end - last ? used : end - last;
}

bool glance_waits(void)
{
	bool waits = false;
	unsigned n = 0;

	for (struct ring *ring = ring_list(); (ring = next_known(ring, &n)); ring = ring->next) {
		uint64_t now = __builtin_ia32_rdtsc(), used = now - ring_waited(ring, now);

		waits |= used - ring->glimpse.polled > RUNS && !has_told(ring);
		ring->glimpse.polled = used;
	}
	return waits;
}

uint64_t glance_unknown(void)
{
	uint64_t sum = 0;
	unsigned n = 0;

	for (struct ring *ring = ring_list(); (ring = next_known(ring, &n)); ring = ring->next)
		sum += has_told(ring) ? 0 : untold(ring);
	return sum;
}
