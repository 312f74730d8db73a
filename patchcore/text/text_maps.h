/* SPDX-License-Identifier: MIT */
/* What the kernel says is mapped where. Private. */
#ifndef PATCHCORE_TEXT_TEXT_MAPS_H
#define PATCHCORE_TEXT_TEXT_MAPS_H

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
	struct origin origin; /* of its first page */
};

/*
 * mappings_read - those that share a byte with [start, end), in order. Their number, or -EACCES,
 * -ENOMEM. The caller frees *list.
 */
int mappings_read(uintptr_t start, uintptr_t end, struct mapping **list);

/* mappings_find - the one that addr lies in, or NULL. */
const struct mapping *mappings_find(const struct mapping *list, int count, uintptr_t addr);

/* mapping_origin - what the page at addr, inside it, shows. */
struct origin mapping_origin(const struct mapping *map, uintptr_t addr);

static inline bool origin_same(struct origin a, struct origin b)
{
	return a.device == b.device && a.inode == b.inode && a.offset == b.offset;
}

/*
 * mapping_page_size - of the pages that the mapping at addr is made of, bytes: more than the usual
 * by MAP_HUGETLB or hugetlbfs. The usual where the kernel does not say. Slow.
 */
size_t mapping_page_size(uintptr_t addr);

#endif
