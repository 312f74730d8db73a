/* SPDX-License-Identifier: MIT */
#include "patchcore/call/call_place.h"

#include <errno.h>

#include "patchcore/call/call_form.h"
#include "patchcore/site/thread.h"

static struct table places = TABLE_INIT(struct call_place);
static _Atomic(uint64_t) numbers; /* relaxed: only to be different */

static struct call_place *find_place(uintptr_t addr)
{
	return (struct call_place *)table_find(&places, addr);
}

static uint64_t user_of(const struct call_place *place)
{
	return atomic_load_explicit(&place->user, memory_order_acquire);
}

/* By a thread that ended, or stayed behind in a fork, before it was ready. */
static bool is_abandoned(uint64_t user)
{
	uint64_t taker = user & ~CALL_PLACE_TAKING;

	return taker != user && thread_is_gone(taker);
}

int call_place_take(struct call_place **taken, const void *addr)
{
	struct call_place *place = (struct call_place *)table_get(&places, (uintptr_t)addr);
	uint64_t seen;

	if (!place)
		return -ENOMEM;
	seen = user_of(place);
	if (seen && !is_abandoned(seen))
		return -EBUSY;
	if (!atomic_compare_exchange_strong_explicit(&place->user, &seen,
						     CALL_PLACE_TAKING | thread_id(),
						     memory_order_acquire, memory_order_relaxed))
		return -EBUSY;
	*taken = place;
	return 0;
}

/* Does a call that begins at from, and is not at a free place, have the byte at addr? */
static bool has_byte(uintptr_t from, uintptr_t addr)
{
	const struct call_place *place = find_place(from);

	return place && from + atomic_load(&place->len) > addr && user_of(place) &&
	       !is_abandoned(user_of(place));
}

/* Sequentially consistent: of two that overlap, one at least sees the other's length. */
int call_place_claim(struct call_place *place, unsigned len)
{
	uintptr_t addr = place->entry.addr;

	atomic_store(&place->len, len);
	for (uintptr_t i = 1; i < CALL_MAX; i++)
		if (has_byte(addr - i, addr) || (i < len && has_byte(addr + i, addr + i)))
			return -EBUSY;
	return 0;
}

uint64_t call_place_ready(struct call_place *place)
{
	uint64_t number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&place->user, number, memory_order_release);
	return number;
}

void call_place_leave(struct call_place *place, struct stub *own)
{
	place->own = own;
	atomic_store_explicit(&place->len, 0, memory_order_relaxed);
	atomic_store_explicit(&place->user, 0, memory_order_release);
}

struct call_place *call_place_of(const void *addr, uint64_t number)
{
	struct call_place *place = find_place((uintptr_t)addr);

	return place && user_of(place) == number ? place : NULL;
}

struct range {
	uintptr_t start;
	uintptr_t end;
};

static int forget_place(struct entry *entry, void *arg)
{
	const struct range *range = arg;

	if (entry->addr >= range->start && entry->addr < range->end)
		call_place_leave((struct call_place *)entry, NULL);
	return 0;
}

void call_places_forget(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end };

	table_each(&places, forget_place, &range);
}
