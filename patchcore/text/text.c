/* SPDX-License-Identifier: MIT */
/*
 * Keeping code pages writable, counted per page, with their own protection
 * given back at the end.
 */
#include "patchcore/text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/machine/policy.h"
#include "patchcore/mapping.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/objects.h"
#include "patchcore/text/text_page.h"

struct lock text_lock = LOCK_INIT;
static uint64_t text_forgets; /* how often a page was forgotten, under text_lock */

__thread int text_refused_with __attribute__((tls_model("initial-exec")));

/*
 * page_granule - with text_lock: the bytes whose protection changes together there. Of a page
 * without users nothing is known: something else may lie there now.
 */
static size_t page_granule(const struct page *page)
{
	return page && (page->users || page->owed) ? page->granule : TEXT_PAGE;
}

/* page_lose_users - with text_lock: from now on no loan and no opening of before counts. */
static void page_lose_users(struct page *page)
{
	page->users = 0;
	atomic_store_explicit(&page->forgotten, ++text_forgets, memory_order_relaxed);
}

/* page_has_changed - was it forgotten since that loan? Then its users are of other code. */
static bool page_has_changed(const struct page *page, uint64_t loan)
{
	return atomic_load_explicit(&page->forgotten, memory_order_relaxed) >= loan;
}

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
	return page && (page->owed || page->changing);
}

/* What is not mapped any more has no protection to get back. */
static int protect_again(uintptr_t start, uintptr_t end, int prot)
{
	unsigned char unused;

	if (mprotect((void *)start, end - start, prot) == 0)
		return 0;
	if (errno != ENOMEM)
		return -EACCES;
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		if ((mincore((void *)p, TEXT_PAGE, &unused) == 0 || errno != ENOMEM) &&
		    mprotect((void *)p, TEXT_PAGE, prot) < 0)
			return errno == ENOMEM ? -ENOMEM : -EACCES;
	return 0;
}

/* All that is owed in [start, end), with one call what is alike. The first error, if any. */
static int give_back_pages(uintptr_t start, uintptr_t end)
{
	uintptr_t to;
	int ret = 0;

	for (uintptr_t p = start; p < end; p = to) {
		const struct page *first = page_find(p), *page;
		int failed = 0;

		to = p + TEXT_PAGE;
		if (!needs_giving_back(first))
			continue;
		while (to < end && needs_giving_back(page = page_find(to)) &&
		       page_shift(page) == page_shift(first) && page->prot == first->prot)
			to += TEXT_PAGE;
		if (page_shift(first))
			failed = alias_end(p, to);
		else if (!(first->prot & PROT_WRITE))
			failed = protect_again(p, to, first->prot);
		for (uintptr_t at = p; at < to; at += TEXT_PAGE) {
			page_find(at)->owed = failed < 0;
			page_find(at)->changing &= failed < 0;
		}
		if (ret == 0)
			ret = failed;
	}
	return ret;
}

/* --- Making writable ------------------------------------------------------------------------- */

/* What is to become of some pages. */
struct wish {
	unsigned opens; /* 1; 0: only for one patch */
	bool shared;	/* also if others see what changes there */
	bool alias;	/* written through an alias */
	uint64_t *loan; /* where to say when; NULL: it is for more than a patch */
};

/* Until they have a user, they are to be given back. */
static void note_changed(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->owed = page->users == 0;
		page->changing = false;
	}
}

/* Where they run: [start, end), all of one mapping and without an alias. */
static int make_writable(const struct wish *wish, uintptr_t start, uintptr_t end,
			 const struct mapping *map)
{
	/* Other mappings of the same show what is changed in this one. */
	for (uintptr_t p = start; map->shared && !wish->shared && p < end; p += TEXT_PAGE) {
		const struct page *page = page_find(p);

		/* One patch may go where the page is open for all. */
		if (wish->opens || !page->users || !page->shared)
			return -EPERM;
	}
	/* Behind the end of a file that is cut short a store is a SIGBUS, under any protection.
	 */
	for (uintptr_t p = start;
	     wish->loan && map->origin.inode && map->prot & PROT_READ && p < end; p += TEXT_PAGE) {
		char byte;

		if (text_read(&byte, (const void *)p, 1) == -EFAULT)
			return -EFAULT;
	}
	/* Noted before: a thread that ends in between leaves what others give back. */
	note_changed(start, end);
	/* A page that is open already is writable already; asking again is harmless. */
	if (map->prot & PROT_WRITE ||
	    mprotect((void *)start, end - start, map->prot | PROT_WRITE) == 0)
		return 0;
	text_refused_with = errno;
	return errno == ENOMEM || errno == EINVAL ? -errno : -EACCES;
}

/* For pages of one mapping. */
static int prepare_mapped(const struct wish *wish, uintptr_t start, uintptr_t end,
			  const struct mapping *map)
{
	int ret = 0;

	/* Note what pages that are not open yet are. */
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = (struct page *)table_get(&text_pages, p);

		if (!page)
			return -ENOMEM;
		if (page->users || page->owed)
			continue;
		page->prot = map->prot;
		page->shared = false;
		page->granule = TEXT_PAGE;
		page->origin = mapping_origin(map, p);
	}
	/* What has an alias already is written through that. */
	while (start < end && ret == 0) {
		bool aliased = page_shift(page_find(start)), used = page_find(start)->users;
		uintptr_t to = start + TEXT_PAGE;

		for (; to < end && (page_shift(page_find(to)) != 0) == aliased; to += TEXT_PAGE)
			used |= page_find(to)->users > 0;
		if (!aliased && wish->alias)
			ret = used ? -EBUSY : alias_make(start, to);
		else if (!aliased)
			ret = make_writable(wish, start, to, map);
		if (ret == 0)
			note_changed(start, to);
		start = to;
	}
	return ret;
}

/* All of it, or leave it as it is. */
static int prepare_pages(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	uintptr_t reached = start;
	struct mapping *map;
	int count = mappings_read(start, end, &map), ret = count < 0 ? count : 0;

	for (int i = 0; i < count && map[i].start <= reached; i++)
		reached = map[i].end;
	if (ret == 0 && reached < end)
		ret = -EFAULT;
	for (int i = 0; i < count && ret == 0; i++)
		ret = prepare_mapped(wish, map[i].start > start ? map[i].start : start,
				     map[i].end < end ? map[i].end : end, &map[i]);
	free(map);
	/* Of what lies behind, only an old protection is known; to set it again does no harm. */
	if (ret < 0)
		give_back_pages(start, end);
	return ret;
}

/* --- Users ----------------------------------------------------------------------------------- */

/* To what was opened along with the first and the last page. */
static void widen_to_opened(uintptr_t *start, uintptr_t *end)
{
	*start &= ~(page_granule(page_find(*start)) - 1);
	*end = ((*end - 1) | (page_granule(page_find(*end - 1)) - 1)) + 1;
}

static int use_locked(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	size_t granule = TEXT_PAGE;
	bool left_over = false;
	int ret = 0;

	widen_to_opened(&start, &end);
	/* An alias that a thread began to make or to end, before that thread ended. */
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		left_over |= page_find(p) && page_find(p)->changing;
	if (left_over)
		ret = give_back_pages(start, end);
	if (ret < 0)
		return ret;
	ret = prepare_pages(wish, start, end);
	/* A protection that can only be had for more than was asked for: for whole huge pages. */
	if (ret == -EINVAL) {
		uintptr_t first = mapping_page_size(start), last = mapping_page_size(end - 1);
		uintptr_t from = start & ~(first - 1), to = ((end - 1) | (last - 1)) + 1;
		bool wider = from < start || to > end;

		start = from;
		end = to;
		if (wider)
			ret = prepare_pages(wish, start, end);
		for (uintptr_t p = start; wider && ret == 0 && p < end; p += TEXT_PAGE) {
			if ((p & (granule - 1)) == 0)
				granule = mapping_page_size(p);
			page_find(p)->granule = granule;
		}
		if (ret == -EINVAL)
			ret = -EACCES;
	}
	if (ret < 0)
		return ret;
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->users++;
		page->owed = false;
		page->shared |= wish->shared;
		/* Release: pairs with the acquire in page_is_open. */
		atomic_fetch_add_explicit(&page->opens, wish->opens, memory_order_release);
	}
	if (wish->loan)
		*wish->loan = text_forgets + 1;
	return 0;
}

static int use_pages(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	int ret;

	text_refused_with = 0;
	text_forget_unmapped();
	lock_take(&text_lock);
	ret = use_locked(wish, start, end);
	lock_drop(&text_lock);
	return ret;
}

int text_borrow(uintptr_t start, uintptr_t end, uint64_t *loan)
{
	return use_pages(&(struct wish){ .loan = loan }, start, end);
}

int text_return(uintptr_t start, uintptr_t end, uint64_t loan)
{
	int ret;

	lock_take(&text_lock);
	widen_to_opened(&start, &end);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (page && page->users && !page_has_changed(page, loan))
			page->owed = --page->users == 0;
	}
	/* A protection that could not be given back is tried again later. */
	ret = give_back_pages(start, end);
	lock_drop(&text_lock);
	return ret;
}

static int close_entry(struct entry *entry, void *unused)
{
	struct page *page = (struct page *)entry;

	(void)unused;
	if (page->users)
		page->owed = true;
	page_lose_users(page);
	atomic_store_explicit(&page->opens, 0, memory_order_relaxed);
	return 0;
}

static int give_back_entry(struct entry *entry, void *first_failure)
{
	uintptr_t start = entry->addr, end = start + TEXT_PAGE;
	int ret, *first = first_failure;

	widen_to_opened(&start, &end);
	ret = give_back_pages(start, end);
	if (*first == 0)
		*first = ret;
	return 0;
}

int text_give_back(void)
{
	int ret = 0;

	lock_take(&text_lock);
	table_each(&text_pages, close_entry, NULL);
	table_each(&text_pages, give_back_entry, &ret);
	lock_drop(&text_lock);
	return ret;
}

static int take_from_borrowers(struct entry *entry, void *unused)
{
	struct page *page = (struct page *)entry;
	unsigned opens = atomic_load_explicit(&page->opens, memory_order_relaxed);

	(void)unused;
	if (page->users <= opens)
		return 0;
	page_lose_users(page);
	page->users = opens;
	page->owed = !opens && !page_shift(page);
	return 0;
}

/* Of a huge page with the first of its parts. */
static int give_back_owed(struct entry *entry, void *unused)
{
	const struct page *page = (struct page *)entry;

	(void)unused;
	if (page->owed && !page_shift(page) && !page->changing)
		text_return(entry->addr, entry->addr + TEXT_PAGE, 0);
	return 0;
}

void text_give_back_borrowed(void)
{
	table_each(&text_pages, take_from_borrowers, NULL);
	table_each(&text_pages, give_back_owed, NULL);
}

/* --- Closing --------------------------------------------------------------------------------- */

int text_stop_using(uintptr_t *start, uintptr_t *end, uint64_t *loan)
{
	bool is_open;

	lock_take(&text_lock);
	widen_to_opened(start, end);
	is_open = text_is_open(*start, *end);
	for (uintptr_t p = *start; is_open && p < *end; p += TEXT_PAGE)
		atomic_fetch_sub_explicit(&page_find(p)->opens, 1, memory_order_relaxed);
	*loan = text_forgets + 1;
	lock_drop(&text_lock);
	return is_open ? 0 : -ENOENT;
}

/* The caller may be outside: a fork waits for the lock, not for it. */
void text_use_again(uintptr_t start, uintptr_t end, uint64_t loan)
{
	lock_take(&text_lock);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		if (!page_has_changed(page_find(p), loan))
			atomic_fetch_add_explicit(&page_find(p)->opens, 1, memory_order_relaxed);
	lock_drop(&text_lock);
}

/* --- Pages whose code is gone ----------------------------------------------------------------- */

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

bool text_is_gone(uintptr_t page, uintptr_t start, uintptr_t end, uintptr_t *to)
{
	size_t granule = page_granule(page_find(page));
	uintptr_t first = page & ~(granule - 1);

	*to = first + granule;
	return first >= start && first < end && end - first >= granule;
}

struct gone {
	uintptr_t start, end;
};

static int forget_gone_page(struct entry *entry, void *arg)
{
	const struct gone *gone = arg;
	uintptr_t to;

	if (text_is_gone(entry->addr, gone->start, gone->end, &to))
		forget_page((struct page *)entry);
	return 0;
}

/* By the list of pages: a range may be as long as the address space. */
void text_forget(uintptr_t start, uintptr_t end)
{
	struct gone gone = { start, end };

	lock_take(&text_lock);
	table_each(&text_pages, forget_gone_page, &gone);
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

	if ((page->users || page->owed || page_shift(page)) &&
	    !(map && origin_same(mapping_origin(map, entry->addr), page->origin) &&
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

/* --- The public functions -------------------------------------------------------------------- */

int text_enter(const void *addr, size_t len, uintptr_t *start, uintptr_t *end, struct thread **self)
{
	int ret = text_range(addr, len, start, end);

	if (ret < 0)
		return ret;
	return choice_sync() ? fork_enter(self) : -ESHUTDOWN;
}

static int use_asked(const struct wish *wish, void *addr, size_t len)
{
	uintptr_t start, end;
	struct thread *self;
	int ret = text_enter(addr, len, &start, &end, &self);

	if (ret < 0)
		return ret;
	ret = use_pages(wish, start, end);
	fork_leave(self);
	return ret;
}

int pc_text_open(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .opens = 1 }, addr, len);
}

int pc_text_open_shared(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .opens = 1, .shared = true }, addr, len);
}

int pc_text_alias(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .opens = 1, .alias = true }, addr, len);
}
