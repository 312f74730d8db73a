/* SPDX-License-Identifier: MIT */
/* A hash table without locks; counts lie together, so that few pages are touched. */
#include "profile/sample/sample.h"

#define CALLERS 65536u
#define TRIES	64

static struct caller_count counts[CALLERS];
static _Atomic uint32_t slots[CALLERS]; /* by hash: index of a count and 1, or 0 */
static _Atomic uint32_t used;
static _Atomic uint64_t lost;

/* Where another thread fills the slot first, this count stays empty. */
FI_FUNCTION static uint32_t fill_slot(uint32_t slot, uint32_t id, uint64_t from)
{
	uint32_t there = 0, n = load_relaxed(&used);

	/* A count is filled by one thread, the one that has taken its number. */
	do
		if (n == CALLERS)
			return 0;
	while (!atomic_compare_exchange_weak(&used, &n, n + 1));
	counts[n].id = id;
	counts[n].from = from;
	counts[n].slot = slot;
	return atomic_compare_exchange_strong(&slots[slot], &there, n + 1) ? n + 1 : there;
}

FI_FUNCTION static struct caller_count *find_caller(uint32_t id, uint64_t from)
{
	uint64_t hash = (from ^ id * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;

	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t slot = (uint32_t)((hash >> 40) + i) % CALLERS, n;

		n = load_acquire(&slots[slot]);
		if (!n)
			n = fill_slot(slot, id, from);
		if (!n)
			break;
		if (counts[n - 1].id == id && counts[n - 1].from == from)
			return &counts[n - 1];
	}
	return NULL;
}

FI_FUNCTION void callers_add(uint32_t id, uint64_t from, int64_t time)
{
	struct caller_count *count = find_caller(id, from);

	if (!count) {
		add_relaxed(&lost, 1);
	} else if (time == NOT_TIMED) {
		add_relaxed(&count->calls, 1);
	} else {
		add_relaxed(&count->timed, 1);
		add_relaxed(&count->time, time);
	}
}

const struct caller_count *callers_list(uint32_t *n)
{
	*n = load_relaxed(&used);
	return counts;
}

uint64_t callers_lost(void)
{
	return load_relaxed(&lost);
}

void callers_forget(void)
{
	for (uint32_t i = 0; i < used; i++) {
		store_relaxed(&slots[counts[i].slot], 0);
		counts[i] = (struct caller_count){ 0 };
	}
	used = 0;
	lost = 0;
}
