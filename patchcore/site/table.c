/* SPDX-License-Identifier: MIT */
/*
 * Open addressing over pointers to entries.
 *
 * Readers may be signal handlers, so nothing that they can see is ever freed: slots that were
 * outgrown stay behind (together no larger than the present ones), and slots of the present size
 * are filled in turn, when too many hold no more than the trace of a removed entry.
 */
#include "patchcore/site/table.h"

#include <stdlib.h>
#include <string.h>

#include "patchcore/syscall/sys.h"

#define SLOTS_MIN 256 /* a power of two */

struct slots {
	struct slots *older; /* outgrown; so that leak checkers find it */
	size_t mask;
	_Atomic(struct entry *) at[];
};

/* The trace of a removed entry: searches go on behind it. */
static struct entry trace;

NOPATCH static size_t home_of(const struct table *table, uintptr_t addr)
{
	/* Fibonacci hashing: sites lie close together and share their high bits. */
	return (size_t)(((addr >> table->shift) * UINT64_C(0x9e3779b97f4a7c15)) >> 24);
}

NOPATCH static struct entry *load_slot(struct slots *slots, size_t i)
{
	/* Acquire: pairs with the release in store_slot(). */
	return load_acquire(&slots->at[i & slots->mask]);
}

static void store_slot(struct slots *slots, size_t i, struct entry *entry)
{
	store_release(&slots->at[i & slots->mask], entry);
}

NOPATCH struct entry *table_find(struct table *table, uintptr_t addr)
{
	struct entry *entry = NULL;
	struct slots *slots;
	uint64_t filling;

	do {
		/* Acquire, and read first: pairs with fill_slots(). */
		filling = load_acquire(&table->fillings);
		slots = load_acquire(&table->slots);
		for (size_t i = home_of(table, addr); slots; i++) {
			entry = load_slot(slots, i);
			if (!entry || (entry->addr == addr && entry != &trace))
				break;
		}
	} while (!entry && filling != load_acquire(&table->fillings));
	return entry;
}

/* --- Under the lock --------------------------------------------------------------------------- */

static void put_entry(struct table *table, struct slots *slots, struct entry *entry)
{
	size_t i = home_of(table, entry->addr);

	while (load_slot(slots, i))
		i++;
	store_slot(slots, i, entry);
}

/* Slots of that many, empty. */
static struct slots *take_slots(struct table *table, size_t count)
{
	struct slots *slots = table->spare;

	if (slots && slots->mask + 1 == count) {
		memset((void *)slots->at, 0, count * sizeof(slots->at[0]));
		return slots;
	}
	slots = calloc(1, sizeof(*slots) + count * sizeof(slots->at[0]));
	if (!slots)
		return NULL;
	slots->mask = count - 1;
	slots->older = table->spare;
	return slots;
}

/* In others, without traces, and at most a quarter full. */
static bool fill_slots(struct table *table)
{
	struct slots *old = load_relaxed(&table->slots), *slots;
	size_t count = old ? old->mask + 1 : SLOTS_MIN;
	struct entry *entry;

	if (table->count * 4 > count)
		count *= 2;
	/* Before a slot of theirs is emptied: a search that is still in these begins anew. */
	atomic_fetch_add_explicit(&table->fillings, 1, memory_order_seq_cst);
	slots = take_slots(table, count);
	if (!slots)
		return false;
	for (size_t i = 0; old && i <= old->mask; i++) {
		entry = load_slot(old, i);
		if (entry && entry != &trace)
			put_entry(table, slots, entry);
	}
	table->used = table->count;
	/* Never both: a task that is killed in between leaves no slots in use as spare. */
	table->spare = NULL;
	store_release(&table->slots, slots);
	table->spare = old;
	return true;
}

static bool renew_entry(const struct table *table, struct entry *entry)
{
	if (table->renew)
		return table->renew(entry);
	memset(entry, 0, table->entry_size);
	return true;
}

/* A removed one again, or new memory. */
static struct entry *make_entry(struct table *table, uintptr_t addr)
{
	struct entry *entry = table->removed, *next = entry ? entry->next : NULL;
	uintptr_t align = table->entry_align;
	void *room;

	if (entry && renew_entry(table, entry)) {
		table->removed = next;
		entry->addr = addr;
		return entry;
	}
	/* Not aligned_alloc(): that may give memory back, and interrupt other CPUs for it. */
	room = calloc(1, table->entry_size + align - 1);
	if (!room)
		return NULL;
	entry = (struct entry *)(((uintptr_t)room + align - 1) & ~(align - 1));
	if (!renew_entry(table, entry)) {
		free(room);
		return NULL;
	}
	entry->addr = addr;
	return entry;
}

struct entry *table_get(struct table *table, uintptr_t addr)
{
	struct entry *entry = table_find(table, addr);
	struct slots *slots;

	if (entry)
		return entry;
	lock_take(&table->lock);
	entry = table_find(table, addr);
	if (!entry) {
		slots = load_relaxed(&table->slots);
		/* At most half full, so that every search meets an empty slot soon. */
		if ((slots && table->used * 2 <= slots->mask) || fill_slots(table))
			entry = make_entry(table, addr);
		if (entry) {
			put_entry(table, atomic_load(&table->slots), entry);
			table->count++;
			table->used++;
		}
	}
	lock_drop(&table->lock);
	return entry;
}

void table_remove(struct table *table, struct entry *entry)
{
	struct slots *slots;
	size_t i = home_of(table, entry->addr);

	lock_take(&table->lock);
	slots = load_relaxed(&table->slots);
	while (load_slot(slots, i) != entry)
		i++;
	store_slot(slots, i, &trace);
	/* No search goes on behind a trace that an empty slot follows. */
	while (!load_slot(slots, i + 1) && load_slot(slots, i) == &trace) {
		store_slot(slots, i--, NULL);
		table->used--;
	}
	table->count--;
	entry->next = table->removed;
	table->removed = entry;
	lock_drop(&table->lock);
}

/* --- All of them ------------------------------------------------------------------------------ */

/* Calls fn for the entry of a slot, if that is in [start, end). */
NOPATCH_INLINE int call_for_slot(struct entry *entry, uintptr_t start, uintptr_t end, table_fn *fn,
				 void *arg)
{
	if (!entry || entry == &trace || entry->addr < start || entry->addr >= end)
		return 0;
	return fn(entry, arg);
}

/* Those of one line, which begins at start, stand behind each other, with some of other lines. */
NOPATCH static int walk_slots(struct table *table, uintptr_t start, uintptr_t end, table_fn *fn,
			      void *arg)
{
	struct slots *slots = load_acquire(&table->slots);
	uintptr_t line = start >> table->shift, last = (end - 1) >> table->shift, from, to;
	struct entry *entry;
	int ret = 0;

	if (!slots || start >= end)
		return 0;
	if (last - line >= slots->mask) {
		for (size_t i = 0; i <= slots->mask && ret == 0; i++)
			ret = call_for_slot(load_slot(slots, i), start, end, fn, arg);
		return ret;
	}
	for (; line <= last && ret == 0; line++) {
		from = line << table->shift;
		to = from + ((uintptr_t)1 << table->shift);
		for (size_t i = home_of(table, from); (entry = load_slot(slots, i)) && ret == 0;
		     i++)
			ret = call_for_slot(entry, from > start ? from : start, to < end ? to : end,
					    fn, arg);
	}
	return ret;
}

NOPATCH int table_each_in(struct table *table, uintptr_t start, uintptr_t end, table_fn *fn,
			  void *arg)
{
	uint64_t filling;
	int ret;

	do {
		/* As in table_find(). */
		filling = load_acquire(&table->fillings);
		ret = walk_slots(table, start, end, fn, arg);
	} while (ret == 0 && filling != load_acquire(&table->fillings));
	return ret;
}
