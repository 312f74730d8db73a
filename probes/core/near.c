/* SPDX-License-Identifier: MIT */
/*
 * Memory for stubs within 2 GiB of an object.
 *
 * A region is a mapping near some object. It serves every object that all of it reaches. It begins
 * with a copy of the fast part of the trampoline; the rest of that may be anywhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define REGION_SIZE (UINT64_C(512) << 10)
#define REACH	    ((UINT64_C(1) << 31) - 4096)
#define STEP	    (UINT64_C(2) << 20)
#define FLOOR	    (UINT64_C(64) << 10)

struct region {
	uint8_t *start;
	size_t used;
	struct region *next;
};

static struct region *regions;
static const struct region *opened; /* its pages are writable now */

static bool is_in_reach(uintptr_t region, const struct object *object)
{
	return object->end <= region + REACH && region + REGION_SIZE <= object->start + REACH;
}

static void *map_at(uintptr_t at, const struct object *object)
{
	void *map;

	at &= ~UINT64_C(4095);
	if (!is_in_reach(at, object))
		return NULL;
	map = mmap((void *)at, REGION_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	/* A kernel older than 4.17 takes the address for a hint. */
	if ((uintptr_t)map != at) {
		munmap(map, REGION_SIZE);
		return NULL;
	}
	return map;
}

/* Below the object first: above a program lies the heap, which grows. */
static void *map_near(const struct object *object)
{
	void *map = NULL;

	for (uintptr_t down = REGION_SIZE; !map && down < REACH; down += STEP)
		if (object->start > down + FLOOR)
			map = map_at(object->start - down, object);
	for (uintptr_t up = REACH - REGION_SIZE; !map && up > STEP; up -= STEP)
		map = map_at(object->start + up, object);
	return map;
}

static struct region *make_region(const struct object *object)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region)
		return NULL;
	region->start = map_near(object);
	if (!region->start) {
		free(region);
		return NULL;
	}
	entry_copy(region->start);
	region->used = ENTRY_COPY;
	if (mprotect(region->start, REGION_SIZE, PROT_READ | PROT_EXEC) < 0) {
		munmap(region->start, REGION_SIZE);
		free(region);
		return NULL;
	}
	region->next = regions;
	regions = region;
	return region;
}

void *near_alloc(const struct object *object, size_t size)
{
	struct region *region = regions;
	void *place;

	size = (size + 15) & ~(size_t)15;
	while (region && (!is_in_reach((uintptr_t)region->start, object) ||
			  region->used + size > REGION_SIZE))
		region = region->next;
	if (!region)
		region = make_region(object);
	if (!region)
		return NULL;
	place = region->start + region->used;
	region->used += size;
	return place;
}

long fi_stubs(void *start[], size_t max, size_t *size)
{
	long n = 0;

	*size = REGION_SIZE;
	for (const struct region *region = regions; region; region = region->next, n++)
		if ((size_t)n < max)
			start[n] = region->start;
	return n;
}

void near_unload(void)
{
	while (regions) {
		struct region *region = regions;

		regions = region->next;
		munmap(region->start, REGION_SIZE);
		free(region);
	}
}

static const struct region *find_region(const void *place)
{
	const struct region *region = regions;

	while (region && (uintptr_t)place - (uintptr_t)region->start >= REGION_SIZE)
		region = region->next;
	return region;
}

void *near_stub(struct probe *probe, size_t size)
{
	const struct region *region = probe->stub ? find_region(probe->stub) : NULL;

	if (!region || !is_in_reach((uintptr_t)region->start, probe->object))
		probe->stub = near_alloc(probe->object, size);
	return probe->stub;
}

void *near_entry(const void *place, uint32_t id)
{
	const struct region *region = find_region(place);

	return region ? region->start + entry_at(id) : NULL;
}

/* All of the region at once: stubs that others run stay executable throughout. */
int near_write(void *place, const void *code, size_t len)
{
	const struct region *region = find_region(place);

	if (!region)
		return -EFAULT;
	if (opened != region) {
		near_seal();
		if (mprotect(region->start, REGION_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
			return -errno;
		opened = region;
	}
	memcpy(place, code, len);
	return 0;
}

void near_seal(void)
{
	if (opened)
		mprotect(opened->start, REGION_SIZE, PROT_READ | PROT_EXEC);
	opened = NULL;
}
