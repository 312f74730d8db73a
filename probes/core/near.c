/* SPDX-License-Identifier: MIT */
/*
 * Memory for stubs within 2 GiB of an object.
 *
 * A region is a mapping near some object, aligned to its size. It serves every object that all of
 * it reaches. It begins with a copy of the fast part of the trampoline; the rest of that may be
 * anywhere.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define REGIONS_MAX 1024
#define REGION_SIZE (UINT64_C(512) << 10)
#define REACH	    ((UINT64_C(1) << 31) - 4096)
#define STEP	    (UINT64_C(2) << 20)
#define FLOOR	    (UINT64_C(64) << 10)

static struct region {
	uint8_t *start;
	size_t used;
} regions[REGIONS_MAX];
static size_t regions_n;
static uint8_t *opened; /* the region whose pages are writable now */

static bool is_in_reach(uintptr_t region, const struct object *object)
{
	return object->end <= region + REACH && region + REGION_SIZE <= object->start + REACH;
}

static void *map_at(uintptr_t at, const struct object *object)
{
	void *map;

	at &= -REGION_SIZE;
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
	struct region *region = &regions[regions_n];

	if (regions_n == REGIONS_MAX)
		return NULL;
	*region = (struct region){ map_near(object), ENTRY_COPY };
	if (!region->start)
		return NULL;
	entry_copy(region->start);
	if (mprotect(region->start, REGION_SIZE, PROT_READ | PROT_EXEC) < 0) {
		munmap(region->start, REGION_SIZE);
		return NULL;
	}
	regions_n++;
	return region;
}

/* The newest first, as the others are full. */
void *near_alloc(const struct object *object, size_t size)
{
	struct region *region = NULL;
	void *place;

	size = (size + 15) & ~(size_t)15;
	for (size_t i = regions_n; i-- > 0 && !region;)
		if (is_in_reach((uintptr_t)regions[i].start, object) &&
		    regions[i].used + size <= REGION_SIZE)
			region = &regions[i];
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
	*size = REGION_SIZE;
	for (size_t i = 0; i < regions_n && i < max; i++)
		start[i] = regions[i].start;
	return (long)regions_n;
}

void near_unload(void)
{
	while (regions_n)
		munmap(regions[--regions_n].start, REGION_SIZE);
}

static uint8_t *find_region(const void *place)
{
	return (uint8_t *)((uintptr_t)place & -REGION_SIZE);
}

void *near_stub(struct probe *probe, size_t size)
{
	if (!probe->stub || !is_in_reach((uintptr_t)find_region(probe->stub), probe->object))
		probe->stub = near_alloc(probe->object, size);
	return probe->stub;
}

void *near_entry(const void *place, uint32_t id)
{
	return find_region(place) + entry_at(id);
}

/* All of the region at once: stubs that others run stay executable throughout. */
int near_write(void *place, const void *code, size_t len)
{
	uint8_t *region = find_region(place);

	if (opened != region) {
		near_seal();
		if (mprotect(region, REGION_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
			return -errno;
		opened = region;
	}
	memcpy(place, code, len);
	return 0;
}

void near_seal(void)
{
	if (opened)
		mprotect(opened, REGION_SIZE, PROT_READ | PROT_EXEC);
	opened = NULL;
}
