/* SPDX-License-Identifier: MIT */
#include "bench/cases/toggle/toggle_case.h"

#include <errno.h>
#include <sys/mman.h>
#include <x86intrin.h>

#define LINE	   64
#define L2_DEFAULT (2u << 20)

/* The larger of the two caches that are a core's own. */
static size_t own_cache_bytes(hwloc_topology_t topology)
{
	hwloc_obj_t l2 = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L2CACHE, 0);

	return l2 && l2->attr->cache.size ? l2->attr->cache.size : L2_DEFAULT;
}

int toggle_sweep_open(struct toggle *toggle, hwloc_topology_t topology)
{
	size_t bytes = 2 * own_cache_bytes(topology);
	/* Populated as writable: pages of its own, not the one page of zeros. */
	uint8_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	toggle->sweep = map;
	toggle->sweep_bytes = bytes;
	return 0;
}

void toggle_sweep_close(struct toggle *toggle)
{
	if (toggle->sweep)
		munmap(toggle->sweep, toggle->sweep_bytes);
	toggle->sweep = NULL;
}

static void sweep(const struct toggle *toggle)
{
	const volatile uint8_t *byte = toggle->sweep;

	for (size_t i = 0; i < toggle->sweep_bytes; i += LINE)
		(void)byte[i];
}

void toggle_chill(const struct toggle *toggle, const void *site)
{
	sweep(toggle);
	_mm_clflush(site);
	_mm_clflush((const uint8_t *)site + LINE);
	_mm_mfence();
}
