/* SPDX-License-Identifier: MIT */
/*
 * Pages whose code is gone.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/alias.h"
#include "patchcore/objects.h"
#include "patchcore/text_page.h"

/* Called with text_lock held. */
static void forget(struct page *page)
{
	/* First of all, that nobody begins to write. */
	atomic_store_explicit(&page->opens, 0, memory_order_relaxed);
	page->users = 0;
	page->owed = false;
	page->granule = TEXT_PAGE;
	if (page_shift(page))
		alias_forget(page);
}

void text_forget(uintptr_t start, uintptr_t end)
{
	forklock_take(&text_lock);
	for (uintptr_t p = page_of(start); p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (page)
			forget(page);
	}
	forklock_drop(&text_lock);
}

struct maps {
	struct mapping *list;
	int count;
};

/* Is that mapping what this library made of it? */
static bool is_there(const struct page *page, const struct maps *maps)
{
	uintptr_t addr = page->entry.addr;
	const struct mapping *map = mappings_find(maps->list, maps->count, addr);
	struct origin origin;

	if (!map)
		return false;
	origin = mapping_origin(map, addr);
	if (!origin_same(&origin, &page->origin))
		return false;
	return page_shift(page) || (map->prot & PROT_WRITE);
}

static int forget_if_gone(struct entry *entry, void *maps)
{
	struct page *page = (struct page *)entry;

	if ((page->users || page->owed || page_shift(page)) && !is_there(page, maps))
		forget(page);
	return 0;
}

void text_forget_unmapped(void)
{
	static _Atomic(uint64_t) seen; /* written under text_lock */
	uint64_t unloads = objects_unloads();
	struct maps now;

	if (atomic_load_explicit(&seen, memory_order_acquire) == unloads)
		return;
	forklock_take(&text_lock);
	now.count = mappings_read(0, UINTPTR_MAX, &now.list);
	/* Without memory it is left to the next call. */
	if (now.count >= 0) {
		table_each(&text_pages, forget_if_gone, &now);
		atomic_store_explicit(&seen, unloads, memory_order_release);
	}
	free(now.list);
	forklock_drop(&text_lock);
}
