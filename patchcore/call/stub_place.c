/* SPDX-License-Identifier: MIT */
#include "patchcore/call/stub_place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "patchcore/call/call_form.h"
#include "patchcore/text/text.h"
#include "patchcore/text/text_maps.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define REACH  UINT64_C(0x7ffff000)	/* whole pages of the 2 GiB */
#define BOTTOM UINT64_C(0x100000)	/* nothing below, so that NULL plus a little still traps */
#define TOP    UINT64_C(0x7fffffff0000) /* the end of user space with four-level page tables */
#define BOTH   (PROT_READ | PROT_EXEC)

/* Free addresses in reach, whole pages. */
struct hole {
	uintptr_t start;
	uintptr_t end;
	bool below_stack; /* which wants to grow into it */
};

static uintptr_t lowest(uintptr_t end)
{
	uintptr_t low = end > REACH + BOTTOM ? end - REACH : BOTTOM;

	return (low + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1);
}

static uintptr_t highest(uintptr_t end)
{
	uintptr_t high = end < TOP - REACH ? end + REACH : TOP;

	return high & ~(uintptr_t)(TEXT_PAGE - 1);
}

/* True unless another thread was faster, or this is no place for a mapping. */
static bool map_hole_at(uint8_t **at, uintptr_t addr, size_t size)
{
	void *wanted = (void *)addr;
	void *got = mmap(wanted, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return false;
	if (got == wanted) {
		*at = got;
		return true;
	}
	/* Before Linux 4.17 that address is only a hint. */
	munmap(got, size);
	return false;
}

/*
 * At the end of the hole, as the kernel does it: the heap may grow into its
 * beginning. But the main thread's stack grows the other way.
 */
static bool map_in_hole(uint8_t **at, const struct hole *hole, size_t size)
{
	if (hole->end <= hole->start || hole->end - hole->start < size)
		return false;
	return map_hole_at(at, hole->below_stack ? hole->start : hole->end - size, size);
}

static bool has_stack(const struct mapping *map)
{
	uintptr_t inside = getauxval(AT_RANDOM);

	return map->start <= inside && inside < map->end;
}

int stub_place(uint8_t **at, uintptr_t end, size_t size)
{
	struct hole hole = { .start = lowest(end) };
	struct mapping *map;
	int count = mappings_read(hole.start, UINTPTR_MAX, &map);
	bool done = false;

	for (int i = 0; i < count && !done && hole.start < highest(end); i++) {
		hole.end = map[i].start < highest(end) ? map[i].start : highest(end);
		hole.below_stack = has_stack(&map[i]);
		done = map_in_hole(at, &hole, size);
		hole.start = map[i].end > hole.start ? map[i].end : hole.start;
	}
	free(map);
	if (count < 0)
		return count;
	hole.end = highest(end);
	hole.below_stack = false;
	return done || map_in_hole(at, &hole, size) ? 0 : -ENOSPC;
}

static bool is_function_end(const uint8_t *code, size_t left)
{
	static const struct {
		uint8_t bytes[4];
		uint8_t len;
	} after[] = {
		{ { 0x66, 0x2e, 0x0f, 0x1f }, 4 }, /* long NOPs */
		{ { 0x0f, 0x1f, 0x00 }, 3 },
		{ { 0x0f, 0x1f, 0x40, 0x00 }, 4 },
		{ { 0x0f, 0x1f, 0x44, 0x00 }, 4 },
		{ { 0x0f, 0x1f, 0x80, 0x00 }, 4 },
		{ { 0x0f, 0x1f, 0x84, 0x00 }, 4 },
		{ { 0x66, 0x0f, 0x1f, 0x44 }, 4 },
		{ { 0x66, 0x90 }, 2 },
		{ { 0x90, 0x90 }, 2 },
		{ { 0xcc, 0xcc }, 2 },
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4 }, /* the next one's ENDBR64 */
	};

	if (left == 0 || code[0] != 0xc3)
		return false;
	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++)
		if (left > after[i].len && memcmp(code + 1, after[i].bytes, after[i].len) == 0)
			return true;
	return false;
}

static uintptr_t find_in(const struct mapping *map, uintptr_t end)
{
	uintptr_t low = map->start > lowest(end) ? map->start : lowest(end);
	uintptr_t high = map->end < highest(end) ? map->end : highest(end);

	/* Of the same function rather than of one before. */
	for (uintptr_t at = end; at < high; at++)
		if (is_function_end((const uint8_t *)at, high - at))
			return at;
	for (uintptr_t at = end - CALL_MAX; at > low; at--)
		if (is_function_end((const uint8_t *)at, end - at))
			return at;
	return 0;
}

uintptr_t stub_find_ret(uintptr_t end)
{
	struct mapping *map;
	int count = mappings_read(end - 1, end, &map);
	uintptr_t found = 0;

	if (count == 1 && (map->prot & BOTH) == BOTH)
		found = find_in(map, end);
	free(map);
	return found;
}
