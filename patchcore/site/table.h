/* SPDX-License-Identifier: MIT */
/*
 * A table of entries by address: lock-free to read, also from a signal handler. Private.
 *
 * Entries never move. One that is removed is used again for another address, and its memory stays
 * memory of an entry: a thread that still points to it reads no other data.
 */
#ifndef PATCHCORE_SITE_TABLE_H
#define PATCHCORE_SITE_TABLE_H

#include <stddef.h>

#include "patchcore/site/lock.h"

/* The first member of each entry of a table. */
struct entry {
	uintptr_t addr;	    /* the same as long as the entry is in the table */
	struct entry *next; /* among those that were removed */
};

struct slots;

/*
 * table_renew_fn - get an entry ready for another address: a removed one, or new memory, which is
 * zeroed and has the address 0. False: that cannot be done now.
 */
typedef bool table_renew_fn(struct entry *entry);

struct table {
	size_t entry_size; /* bytes to allocate per entry, zeroed */
	size_t entry_align;
	unsigned shift;	       /* addresses that differ below this bit only stand together */
	table_renew_fn *renew; /* NULL: zeroed */
	struct lock lock;      /* held to add and remove; protects writes to slots, and: */
	size_t count;	       /* entries */
	size_t used;	       /* slots that are not empty */
	struct entry *removed;
	struct slots *spare;	       /* that were in use before */
	_Atomic(struct slots *) slots; /* published with release, read with acquire */
	/* How often slots were filled anew: a search that found nothing meanwhile is repeated. */
	_Atomic(uint64_t) fillings;
};

#define TABLE_INIT(type, low_bits, how_to_renew)                                                   \
	{                                                                                          \
		.entry_size = sizeof(type), .entry_align = _Alignof(type), .shift = (low_bits),    \
		.renew = (how_to_renew),                                                           \
	}

/* table_find - the entry of that address or NULL. Async-signal-safe. */
struct entry *table_find(struct table *table, uintptr_t addr);

/* table_get - the same, added if need be. NULL: out of memory. */
struct entry *table_get(struct table *table, uintptr_t addr);

/* table_remove - an entry that no other thread removes. */
void table_remove(struct table *table, struct entry *entry);

/*
 * table_each - call fn for every entry until it returns non-zero, and return that. It may remove
 * the entry. It may be called twice for one, where others are added meanwhile. table_each_in - for
 * those in [start, end): takes as long as that range or as the table, whichever is smaller.
 */
typedef int table_fn(struct entry *entry, void *arg);

#define table_each(table, fn, arg) table_each_in(table, 0, UINTPTR_MAX, fn, arg)
int table_each_in(struct table *table, uintptr_t start, uintptr_t end, table_fn *fn, void *arg);

#endif
