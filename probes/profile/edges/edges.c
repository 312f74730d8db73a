/* SPDX-License-Identifier: MIT */
/*
 * A table of edges for all threads. An edge takes the first free place behind its own and keeps it.
 */
#include "probes/profile/edges/edges.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#define PLACES (1u << 20)
#define TRIES  64
#define LANES  64

struct place {
	_Atomic uint64_t key; /* from and to, and 1 more than them: 0 is free */
	_Atomic uint64_t count[2];
};

static struct place *places;
static _Atomic uint64_t phase, late, lost;

/* Threads that run at once hardly ever share one. */
static struct {
	_Alignas(64) _Atomic uint64_t runs;
} lanes[LANES];

static __thread struct {
	uint64_t phase;
	uint32_t block;
} previous __attribute__((tls_model("initial-exec")));

int edges_start(void)
{
	void *map;

	/* Once more: it is empty again. */
	late = lost = 0;
	if (places)
		return madvise(places, PLACES * sizeof(*places), MADV_DONTNEED) ? -ENOMEM : 0;
	map = mmap(NULL, PLACES * sizeof(*places), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	places = map;
	return 0;
}

void edges_phase(uint64_t number)
{
	atomic_store_explicit(&phase, number, memory_order_release);
}

__attribute__((target("general-regs-only"))) static struct place *place_of(uint64_t key)
{
	uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 44;

	for (unsigned i = 0; i < TRIES; i++) {
		struct place *place = &places[(at + i) % PLACES];
		uint64_t there = atomic_load_explicit(&place->key, memory_order_relaxed);

		if (!there)
			atomic_compare_exchange_strong_explicit(&place->key, &there, key,
								memory_order_relaxed,
								memory_order_relaxed);
		if (!there || there == key)
			return place;
	}
	return NULL;
}

__attribute__((target("general-regs-only"))) static void one_more(_Atomic uint64_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

__attribute__((target("general-regs-only"))) void
edges_block(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	uint64_t now = atomic_load_explicit(&phase, memory_order_acquire);
	uint32_t from = previous.block;
	struct place *place;

	(void)site;
	(void)regs;
	(void)data;
	if (!now) {
		one_more(&late);
		return;
	}
	previous.block = id;
	one_more(&lanes[((uintptr_t)&previous >> 12) % LANES].runs);
	if (previous.phase != now) {
		previous.phase = now;
		return;
	}
	place = place_of(((uint64_t)from << 32 | id) + 1);
	one_more(place ? &place->count[now % 2] : &lost);
}

int edges_next(uint32_t *at, struct edge *edge)
{
	for (; places && *at < PLACES; ++*at) {
		struct place *place = &places[*at];
		uint64_t key = atomic_load_explicit(&place->key, memory_order_relaxed);

		if (!key)
			continue;
		edge->from = (uint32_t)((key - 1) >> 32);
		edge->to = (uint32_t)(key - 1);
		for (int i = 0; i < 2; i++)
			edge->count[i] =
				atomic_load_explicit(&place->count[i], memory_order_relaxed);
		++*at;
		return 1;
	}
	return 0;
}

uint64_t edges_runs(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < LANES; i++)
		sum += atomic_load_explicit(&lanes[i].runs, memory_order_relaxed);
	return sum;
}

uint64_t edges_late(void)
{
	return atomic_load_explicit(&late, memory_order_relaxed);
}

uint64_t edges_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}
