/* SPDX-License-Identifier: MIT */
#include "patchcore/call/stub.h"

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

static uintptr_t lowest_stub(uintptr_t end)
{
	uintptr_t low = end > REACH + BOTTOM ? end - REACH : BOTTOM;

	return (low + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1);
}

static uintptr_t highest_stub(uintptr_t end)
{
	uintptr_t high = end < TOP - REACH ? end + REACH : TOP;

	return high & ~(uintptr_t)(TEXT_PAGE - 1);
}

/*
 * At the end of the hole, as the kernel does it: the heap may grow into its
 * beginning. But the main thread's stack grows the other way.
 */
static bool map_in_hole(uint8_t **at, const struct hole *hole, size_t size)
{
	uint8_t *wanted, *got;

	if (hole->end <= hole->start || hole->end - hole->start < size)
		return false;
	wanted = (uint8_t *)(hole->below_stack ? hole->start : hole->end - size);
	got = mmap(wanted, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	/* Another thread was faster, or this is no place for a mapping. */
	if (got == MAP_FAILED)
		return false;
	/* Before Linux 4.17 that address is only a hint. */
	if (got != wanted) {
		munmap(got, size);
		return false;
	}
	*at = got;
	return true;
}

int stub_place(uint8_t **at, uintptr_t end, size_t size)
{
	uintptr_t high = highest_stub(end), on_stack = getauxval(AT_RANDOM);
	struct hole hole = { .start = lowest_stub(end) };
	struct mapping *map;
	int count = mappings_read(hole.start, UINTPTR_MAX, &map);
	bool done = false;

	for (int i = 0; i < count && !done && hole.start < high; i++) {
		hole.end = map[i].start < high ? map[i].start : high;
		hole.below_stack = map[i].start <= on_stack && on_stack < map[i].end;
		done = map_in_hole(at, &hole, size);
		hole.start = map[i].end > hole.start ? map[i].end : hole.start;
	}
	free(map);
	if (count < 0)
		return count;
	hole.end = high;
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

uintptr_t stub_find_ret(uintptr_t end)
{
	uintptr_t found = 0, low = lowest_stub(end), high = highest_stub(end);
	struct mapping *map;
	int count = mappings_read(end - 1, end, &map);

	if (count == 1 && (map->prot & BOTH) == BOTH) {
		low = map->start > low ? map->start : low;
		high = map->end < high ? map->end : high;
		/* Of the same function rather than of one before. */
		for (uintptr_t at = end; at < high && !found; at++)
			if (is_function_end((const uint8_t *)at, high - at))
				found = at;
		for (uintptr_t at = end - CALL_MAX; at > low && !found; at--)
			if (is_function_end((const uint8_t *)at, end - at))
				found = at;
	}
	free(map);
	return found;
}
