/* SPDX-License-Identifier: MIT */
/* What the kernel says is mapped where. Private. */
#ifndef PATCHCORE_PAGES_TEXT_MAPS_H
#define PATCHCORE_PAGES_TEXT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a page shows: a page of a file, or all 0 for private memory. Shared memory is a file too. */
struct origin {
	uint64_t device;
	uint64_t inode;
	uint64_t offset;
};

/* One stretch of /proc/self/maps. */
struct mapping {
	uintptr_t start;
	uintptr_t end;
	int prot;
	bool shared;	      /* a change shows in other mappings of the same */
	size_t page_size;     /* bytes; before Linux 6.11 2 MiB if that could be */
	struct origin origin; /* of its first page */
};

typedef int mapping_fn(const struct mapping *map, void *arg);
enum mapping_kind {
	MAPPING_ANY,
	MAPPING_SHARED
};

/*
 * mappings_each - call fn for those that share a byte with [start, end), in order, until it returns
 * non-zero, and return that; or 0, -EACCES, -ENOMEM. Takes no lock and no memory. Before Linux
 * 6.11 all mappings below end are read as text; since then only these are asked for.
 */
int mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn,
		  void *arg);

/* For tests: as before Linux 6.11. */
extern bool mappings_by_text;

/* mapping_origin - what the page at addr, inside it, shows. */
struct origin mapping_origin(const struct mapping *map, uintptr_t addr);

static inline bool origin_same(struct origin a, struct origin b)
{
	return a.device == b.device && a.inode == b.inode && a.offset == b.offset;
}

/* mapping_page_size - of the mapping at addr. The usual where there is none. */
size_t mapping_page_size(uintptr_t addr);

#endif
