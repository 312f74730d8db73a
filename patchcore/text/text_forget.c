/* SPDX-License-Identifier: MIT */
/*
 * Pages whose code is gone.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/text/objects.h"
#include "patchcore/text/text.h"
#include "patchcore/text/text_page.h"

/* Called with text_lock held. */
static void forget_page(struct page *page)
{
	/* First of all, so that no patcher begins to write. */
	atomic_store_explicit(&page->opens, 0, memory_order_relaxed);
	page_lose_users(page);
	page->owed = false;
	page->granule = TEXT_PAGE;
	if (page_shift(page))
		alias_forget(page);
}

/* With text_lock: is it gone with [start, end)? A part of a huge page is not. *to: its end. */
static bool is_gone(uintptr_t page, uintptr_t start, uintptr_t end, uintptr_t *to)
{
	size_t granule = page_granule(page_find(page));
	uintptr_t first = page & ~(granule - 1);

	*to = first + granule;
	return first >= start && first < end && end - first >= granule;
}

/*
 * What was made writable for it on pages that stay is given back; the others are not touched. A
 * huge page is given back once, however many of its parts the span has.
 */
void text_end_outside(struct text_span *span, uintptr_t start, uintptr_t end)
{
	uintptr_t first, last, to;

	if (span->loan && text_range(span->addr, span->len, &first, &last) == 0) {
		for (uintptr_t p = first; p < last; p = to) {
			bool gone;

			lock_take(&text_lock);
			gone = is_gone(p, start, end, &to);
			lock_drop(&text_lock);
			if (!gone)
				text_return(p, p + TEXT_PAGE, span->loan);
		}
	}
	span->loan = 0;
}

void text_forget(uintptr_t start, uintptr_t end)
{
	uintptr_t to;

	lock_take(&text_lock);
	for (uintptr_t p = page_of(start + TEXT_PAGE - 1); p < end && end - p >= TEXT_PAGE;
	     p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (page && is_gone(p, start, end, &to))
			forget_page(page);
	}
	lock_drop(&text_lock);
}

struct maps {
	struct mapping *list;
	int count;
};

/* Unless the mapping there is what this library made of it. */
static int forget_if_gone(struct entry *entry, void *arg)
{
	const struct maps *maps = arg;
	const struct mapping *map = mappings_find(maps->list, maps->count, entry->addr);
	struct page *page = (struct page *)entry;
	struct origin origin = map ? mapping_origin(map, entry->addr) : (struct origin){ 0 };

	if ((page->users || page->owed || page_shift(page)) &&
	    !(map && origin_same(&origin, &page->origin) &&
	      (page_shift(page) || (map->prot & PROT_WRITE))))
		forget_page(page);
	return 0;
}

void text_forget_unmapped(void)
{
	static _Atomic(uint64_t) seen; /* written under text_lock */
	uint64_t unloads = objects_unloads();
	struct maps now;

	if (atomic_load_explicit(&seen, memory_order_acquire) == unloads)
		return;
	/* Now, that what is mapped there since has no change in flight yet. */
	forget_gone();
	lock_take(&text_lock);
	now.count = mappings_read(0, UINTPTR_MAX, &now.list);
	/* Without memory it is left to the next call. */
	if (now.count >= 0) {
		table_each(&text_pages, forget_if_gone, &now);
		atomic_store_explicit(&seen, unloads, memory_order_release);
	}
	free(now.list);
	lock_drop(&text_lock);
}
