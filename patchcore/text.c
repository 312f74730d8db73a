/* SPDX-License-Identifier: MIT */
/*
 * Keeping code pages writable, counted per page, with their own protection
 * given back at the end.
 */
#include "patchcore/text.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/alias.h"
#include "patchcore/mapping.h"
#include "patchcore/objects.h"
#include "patchcore/text_page.h"

struct table text_pages = TABLE_INIT(struct page);
struct forklock text_lock = FORKLOCK_INIT;
__thread int text_refused_with __attribute__((tls_model("initial-exec")));

int text_range(const void *addr, size_t len, uintptr_t *start, uintptr_t *end)
{
	uintptr_t last = (uintptr_t)addr + len - 1;

	if (len == 0 || last < (uintptr_t)addr || last > UINTPTR_MAX - TEXT_PAGE)
		return -EINVAL;
	*start = page_of((uintptr_t)addr);
	*end = page_of(last) + TEXT_PAGE;
	return 0;
}

bool text_is_open(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		if (!page_is_open(page_find(p)))
			return false;
	return true;
}

/* --- Giving back ----------------------------------------------------------------------------- */

static bool needs_giving_back(const struct page *page)
{
	return page && page->owed;
}

static bool is_like(const struct page *a, const struct page *b)
{
	return page_shift(a) == page_shift(b) && a->prot == b->prot;
}

/* The end of what can be given back with one call, from start on. */
static uintptr_t run_end(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	uintptr_t p = start + TEXT_PAGE;

	while (p < end && needs_giving_back(page_find(p)) && is_like(page_find(p), first))
		p += TEXT_PAGE;
	return p;
}

static int give_back_run(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	int ret = 0;

	if (page_shift(first))
		ret = alias_end(start, end);
	else if (!(first->prot & PROT_WRITE) &&
		 mprotect((void *)start, end - start, first->prot) < 0)
		ret = errno == ENOMEM ? -ENOMEM : -EACCES;
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		page_find(p)->owed = ret < 0;
	return ret;
}

/* All that is owed in [start, end). The first error, if any. */
static int give_back(uintptr_t start, uintptr_t end)
{
	uintptr_t to;
	int ret = 0;

	for (uintptr_t p = start; p < end; p = to) {
		int failed = 0;

		to = p + TEXT_PAGE;
		if (!needs_giving_back(page_find(p)))
			continue;
		to = run_end(p, end);
		failed = give_back_run(p, to);
		if (ret == 0)
			ret = failed;
	}
	return ret;
}

/* --- Making writable ------------------------------------------------------------------------- */

/*
 * Make [start, end), all of one mapping, writable. A page that is open already
 * is writable already; asking again is harmless.
 */
static int unprotect(uintptr_t start, uintptr_t end, int prot)
{
	if (prot & PROT_WRITE)
		return 0;
	if (mprotect((void *)start, end - start, prot | PROT_WRITE) == 0)
		return 0;
	text_refused_with = errno;
	return errno == ENOMEM || errno == EINVAL ? -errno : -EACCES;
}

/* Note what pages that are not open yet are. */
static int note_pages(uintptr_t start, uintptr_t end, const struct mapping *map)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = (struct page *)table_get(&text_pages, p);

		if (!page)
			return -ENOMEM;
		if (page->users || page->owed)
			continue;
		page->prot = map->prot;
		page->granule = TEXT_PAGE;
		page->origin = mapping_origin(map, p);
	}
	return 0;
}

/* The end of pages alike: all with an alias, or all without. */
static uintptr_t alike_until(uintptr_t start, uintptr_t end)
{
	bool aliased = page_shift(page_find(start));
	uintptr_t p = start + TEXT_PAGE;

	while (p < end && (page_shift(page_find(p)) != 0) == aliased)
		p += TEXT_PAGE;
	return p;
}

/* Until somebody uses them, they are to be given back. */
static void note_changed(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->owed = page->users == 0;
	}
}

/* What of [start, end), of one mapping, has no alias. *reached: how far it came. */
static int prepare_open(uintptr_t start, uintptr_t end, const struct mapping *map,
			uintptr_t *reached)
{
	int ret = note_pages(start, end, map);

	while (start < end && ret == 0) {
		uintptr_t to = alike_until(start, end);

		if (!page_shift(page_find(start)))
			ret = unprotect(start, to, map->prot);
		if (ret < 0)
			break;
		note_changed(start, to);
		*reached = start = to;
	}
	return ret;
}

static bool is_used(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		if (page_find(p)->users)
			return true;
	return false;
}

static int prepare_alias(uintptr_t start, uintptr_t end, const struct mapping *map,
			 uintptr_t *reached)
{
	int ret = note_pages(start, end, map);

	while (start < end && ret == 0) {
		uintptr_t to = alike_until(start, end);

		if (!page_shift(page_find(start)))
			ret = is_used(start, to) ? -EBUSY : alias_make(start, to);
		if (ret < 0)
			break;
		note_changed(start, to);
		*reached = start = to;
	}
	return ret;
}

typedef int prepare_fn(uintptr_t start, uintptr_t end, const struct mapping *map,
		       uintptr_t *reached);

/* All of it, or leave it as it is. */
static int prepare(prepare_fn *fn, uintptr_t start, uintptr_t end)
{
	struct mapping *map;
	int count = mappings_read(start, end, &map);
	int ret = count < 0 ? count : 0;
	uintptr_t reached = start;

	if (ret == 0 && !mappings_cover(map, count, start, end))
		ret = -EFAULT;
	for (int i = 0; i < count && ret == 0; i++)
		ret = fn(map[i].start > start ? map[i].start : start,
			 map[i].end < end ? map[i].end : end, &map[i], &reached);
	free(map);
	/* Of what lies behind, only an old protection is known. */
	if (ret < 0)
		give_back(start, reached);
	return ret;
}

/* --- Huge pages ------------------------------------------------------------------------------ */

/* To whole pages of what is mapped there. */
static bool widen_to_mapped(uintptr_t *start, uintptr_t *end)
{
	uintptr_t first = mapping_page_size(*start), last = mapping_page_size(*end - 1);
	uintptr_t from = *start & ~(first - 1), to = ((*end - 1) | (last - 1)) + 1;
	bool wider = from < *start || to > *end;

	*start = from;
	*end = to;
	return wider;
}

static void note_granules(uintptr_t start, uintptr_t end)
{
	size_t granule = TEXT_PAGE;

	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (p == start || (p & (granule - 1)) == 0)
			granule = mapping_page_size(p);
		page->granule = granule;
	}
}

/* Of a page that nobody uses nothing is known: something else may lie there now. */
static size_t granule_of(uintptr_t addr)
{
	const struct page *page = page_find(addr);

	return page && (page->users || page->owed) ? page->granule : TEXT_PAGE;
}

/* To what was opened along with the first and the last page. */
static void widen_to_opened(uintptr_t *start, uintptr_t *end)
{
	*start &= ~(granule_of(*start) - 1);
	*end = ((*end - 1) | (granule_of(*end - 1) - 1)) + 1;
}

/* --- Users ----------------------------------------------------------------------------------- */

static void add_users(uintptr_t start, uintptr_t end, unsigned opens)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->users++;
		page->owed = false;
		/* Release: pairs with the acquire in page_is_open. */
		atomic_fetch_add_explicit(&page->opens, opens, memory_order_release);
	}
}

static int use_locked(prepare_fn *fn, uintptr_t start, uintptr_t end, unsigned opens)
{
	int ret;

	widen_to_opened(&start, &end);
	ret = prepare(fn, start, end);
	if (ret == -EINVAL && widen_to_mapped(&start, &end)) {
		ret = prepare(fn, start, end);
		if (ret == 0)
			note_granules(start, end);
	}
	if (ret == 0)
		add_users(start, end, opens);
	return ret == -EINVAL ? -EACCES : ret;
}

static int use(prepare_fn *fn, uintptr_t start, uintptr_t end, unsigned opens)
{
	int ret = text_watch_fork();

	if (ret < 0)
		return ret;
	text_refused_with = 0;
	text_forget_unmapped();
	forklock_take(&text_lock);
	ret = use_locked(fn, start, end, opens);
	forklock_drop(&text_lock);
	return ret;
}

static int drop_users(uintptr_t start, uintptr_t end, unsigned opens)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		/* It may have been forgotten meanwhile. */
		if (!page || page->users == 0)
			continue;
		page->owed = --page->users == 0;
		atomic_fetch_sub_explicit(&page->opens, opens, memory_order_relaxed);
	}
	return give_back(start, end);
}

int text_borrow(uintptr_t start, uintptr_t end)
{
	return use(prepare_open, start, end, 0);
}

void text_return(uintptr_t start, uintptr_t end)
{
	forklock_take(&text_lock);
	widen_to_opened(&start, &end);
	/* A protection that could not be given back is tried again later. */
	drop_users(start, end, 0);
	forklock_drop(&text_lock);
}

static int close_entry(struct entry *entry, void *unused)
{
	struct page *page = (struct page *)entry;

	(void)unused;
	if (page->users)
		page->owed = true;
	page->users = 0;
	atomic_store_explicit(&page->opens, 0, memory_order_relaxed);
	return 0;
}

static int give_back_entry(struct entry *entry, void *first_failure)
{
	uintptr_t start = entry->addr, end = start + TEXT_PAGE;
	int ret, *first = first_failure;

	widen_to_opened(&start, &end);
	ret = give_back(start, end);
	if (*first == 0)
		*first = ret;
	return 0;
}

int text_give_back(void)
{
	int ret = 0;

	forklock_take(&text_lock);
	table_each(&text_pages, close_entry, NULL);
	table_each(&text_pages, give_back_entry, &ret);
	forklock_drop(&text_lock);
	return ret;
}

/* --- One patch ------------------------------------------------------------------------------- */

static int find_shifts(struct text_span *span)
{
	const struct page *page[2] = {
		page_find((uintptr_t)span->addr),
		page_find((uintptr_t)span->addr + span->len - 1),
	};

	for (int i = 0; i < 2; i++) {
		span->shift[i] = page_shift(page[i]);
		if (span->shift[i] == 0)
			continue;
		if (!alias_is_ours() || atomic_load_explicit(&page[i]->stale, memory_order_relaxed))
			return -EACCES;
	}
	return 0;
}

int text_begin(struct text_span *span, void *addr, size_t len)
{
	uintptr_t start = page_of((uintptr_t)addr), end;
	int ret = 0;

	*span = (struct text_span){ .addr = addr, .len = len };
	/* The last pages are nobody's, and sums of addresses wrap there. */
	if ((uintptr_t)addr > UINTPTR_MAX - 2 * TEXT_PAGE)
		return -EFAULT;
	end = page_of((uintptr_t)addr + len - 1) + TEXT_PAGE;
	if (!text_is_open(start, end)) {
		ret = text_borrow(start, end);
		span->borrowed = ret == 0;
	}
	if (ret == 0)
		ret = find_shifts(span);
	if (ret < 0)
		text_end(span);
	return ret;
}

void text_end(struct text_span *span)
{
	uintptr_t start, end;

	if (span->borrowed && text_range(span->addr, span->len, &start, &end) == 0)
		text_return(start, end);
	span->borrowed = false;
}

/* --- The public functions -------------------------------------------------------------------- */

int pc_text_open(void *addr, size_t len)
{
	uintptr_t start, end;
	int ret = text_range(addr, len, &start, &end);

	return ret < 0 ? ret : use(prepare_open, start, end, 1);
}

int pc_text_alias(void *addr, size_t len)
{
	uintptr_t start, end;
	int ret = text_range(addr, len, &start, &end);

	return ret < 0 ? ret : use(prepare_alias, start, end, 1);
}

int pc_text_close(void *addr, size_t len)
{
	uintptr_t start, end;
	int ret = text_range(addr, len, &start, &end);

	if (ret < 0)
		return ret;
	forklock_take(&text_lock);
	widen_to_opened(&start, &end);
	ret = text_is_open(start, end) ? drop_users(start, end, 1) : -ENOENT;
	forklock_drop(&text_lock);
	return ret;
}
