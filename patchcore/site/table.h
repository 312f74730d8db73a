/* SPDX-License-Identifier: MIT */
/*
 * A table of entries by address: lock-free to read, also from a signal
 * handler; entries are added and never removed or moved. Private.
 */
#ifndef PATCHCORE_SITE_TABLE_H
#define PATCHCORE_SITE_TABLE_H

#include <stddef.h>

#include "patchcore/site/lock.h"

/* The first member of each entry of a table. It never changes. */
struct entry {
	uintptr_t addr;
};

struct slots;

struct table {
	size_t entry_size; /* bytes to allocate per entry, zeroed */
	size_t entry_align;
	struct lock lock; /* held to add; protects used, and writes to slots */
	size_t used;
	_Atomic(struct slots *) slots; /* published with release, read with acquire */
};

#define TABLE_INIT(type)                                                                           \
	{                                                                                          \
		.entry_size = sizeof(type), .entry_align = _Alignof(type), .lock = LOCK_INIT,      \
	}

/* table_find - the entry of that address or NULL. Async-signal-safe. */
struct entry *table_find(struct table *table, uintptr_t addr);

/* table_get - the same, added if need be. NULL: out of memory. */
struct entry *table_get(struct table *table, uintptr_t addr);

/* table_each - call fn for every entry until it returns non-zero, and return that. */
typedef int table_fn(struct entry *entry, void *arg);

int table_each(struct table *table, table_fn *fn, void *arg);

#endif
