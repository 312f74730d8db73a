/* SPDX-License-Identifier: MIT */
/*
 * Open addressing over pointers to entries.
 *
 * Readers may be signal handlers, so nothing that they can see is ever freed:
 * slots that were outgrown stay behind (together no larger than the present
 * ones).
 */
#include "patchcore/site/table.h"

#include <stdlib.h>
#include <string.h>

#include "patchcore/kernel/sys.h"

#define SLOTS_MIN 256 /* a power of two */

struct slots {
	struct slots *older; /* outgrown; so that leak checkers find it */
	size_t mask;
	_Atomic(struct entry *) at[];
};

NOPATCH static size_t hash_addr(uintptr_t addr)
{
	/* Fibonacci hashing: sites lie close together and share their high bits. */
	return (size_t)((addr * UINT64_C(0x9e3779b97f4a7c15)) >> 24);
}

NOPATCH static struct entry *slots_find(struct slots *slots, uintptr_t addr)
{
	for (size_t i = hash_addr(addr);; i++) {
		/* Acquire: pairs with the release in slots_put. */
		struct entry *entry =
			atomic_load_explicit(&slots->at[i & slots->mask], memory_order_acquire);

		if (!entry || entry->addr == addr)
			return entry;
	}
}

static void slots_put(struct slots *slots, struct entry *entry)
{
	size_t i = hash_addr(entry->addr);

	while (atomic_load_explicit(&slots->at[i & slots->mask], memory_order_relaxed))
		i++;
	atomic_store_explicit(&slots->at[i & slots->mask], entry, memory_order_release);
}

NOPATCH struct entry *table_find(struct table *table, uintptr_t addr)
{
	struct slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);

	return slots ? slots_find(slots, addr) : NULL;
}

static struct slots *grow_table(struct table *table, struct slots *old)
{
	size_t count = old ? (old->mask + 1) * 2 : SLOTS_MIN;
	struct slots *slots = calloc(1, sizeof(*slots) + count * sizeof(slots->at[0]));
	struct entry *entry;

	if (!slots)
		return NULL;
	slots->mask = count - 1;
	slots->older = old;
	for (size_t i = 0; old && i <= old->mask; i++) {
		entry = atomic_load_explicit(&old->at[i], memory_order_relaxed);
		if (entry)
			slots_put(slots, entry);
	}
	atomic_store_explicit(&table->slots, slots, memory_order_release);
	return slots;
}

struct entry *table_get(struct table *table, uintptr_t addr)
{
	struct entry *entry = table_find(table, addr);
	struct slots *slots;

	if (entry)
		return entry;
	lock_take(&table->lock);
	slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	entry = slots ? slots_find(slots, addr) : NULL;
	if (!entry) {
		/* At most half full, so that every search meets an empty slot soon. */
		if (!slots || table->used * 2 > slots->mask)
			slots = grow_table(table, slots);
		entry = slots ? aligned_alloc(table->entry_align, table->entry_size) : NULL;
		if (entry) {
			memset(entry, 0, table->entry_size);
			entry->addr = addr;
			slots_put(slots, entry);
			table->used++;
		}
	}
	lock_drop(&table->lock);
	return entry;
}

NOPATCH int table_each(struct table *table, table_fn *fn, void *arg)
{
	struct slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);

	for (size_t i = 0; slots && i <= slots->mask; i++) {
		struct entry *entry = atomic_load_explicit(&slots->at[i], memory_order_acquire);
		int ret = entry ? fn(entry, arg) : 0;

		if (ret)
			return ret;
	}
	return 0;
}
