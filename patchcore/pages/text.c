/* SPDX-License-Identifier: MIT */
/* Code pages that are kept writable, counted, and get their own protection back at the end. */
#include "patchcore/pages/text.h"

#include <errno.h>
#include <sys/mman.h>

#include "patchcore/machine/policy.h"
#include "patchcore/mapping.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/site/fork.h"

static bool renew_page(struct entry *entry);

struct table text_pages = TABLE_INIT(struct page, 12, renew_page);
struct lock text_lock;
static uint64_t text_forgets; /* how often a page was forgotten, under text_lock */

__thread int text_refused_with __attribute__((tls_model("initial-exec")));

/*
 * The bytes whose protection changes together there, with text_lock. Of a page without users
 * nothing is known: something else may lie there now.
 */
static size_t page_granule(const struct page *page)
{
	return page && (page->users || page->owed) ? page->granule : TEXT_PAGE;
}

/* With text_lock: from now on no loan and no opening of before counts. */
static void page_lose_users(struct page *page)
{
	page->users = 0;
	store_relaxed(&page->forgotten, ++text_forgets);
}

/* Else it was forgotten since: its users are of other code. */
static bool is_on_loan(const struct page *page, uint64_t loan)
{
	return page && load_relaxed(&page->forgotten) < loan;
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

/* Give back all pages in [start, end) that are owed, alike neighbours by one call. First error. */
static int give_back_pages(uintptr_t start, uintptr_t end)
{
	uintptr_t to;
	int ret = 0;

	for (uintptr_t p = start; p < end; p = to) {
		const struct page *first = page_find(p), *page;
		int failed = 0;

		to = p + TEXT_PAGE;
		if (!first || !first->owed)
			continue;
		while (to < end && (page = page_find(to)) && page->owed &&
		       page_shift(page) == page_shift(first) && page->prot == first->prot)
			to += TEXT_PAGE;
		if (page_shift(first))
			failed = alias_end(p, to);
		else if (!(first->prot & PROT_WRITE) &&
			 mprotect((void *)p, to - p, first->prot) < 0)
			failed = errno == ENOMEM ? -ENOMEM : -EACCES;
		for (uintptr_t at = p; at < to; at += TEXT_PAGE)
			page_find(at)->owed = failed < 0;
		if (ret == 0)
			ret = failed;
	}
	return ret;
}

struct text_range {
	uintptr_t start, end;
};

/* --- What lies there now --------------------------------------------------------------------- */

/* Called with text_lock held. */
static void forget_page(struct page *page)
{
	/* First of all, so that no patcher begins to write. */
	store_relaxed(&page->opens, 0);
	page_lose_users(page);
	page->owed = false;
	page->granule = TEXT_PAGE;
	if (page_shift(page))
		alias_forget(page);
}

static bool is_known(const struct page *page)
{
	return page->users || page->owed || page_shift(page);
}

/* Is it what the library left there, under a protection that the program may have changed? */
static int compare_page(struct entry *entry, void *mapping)
{
	struct page *page = (struct page *)entry;
	const struct mapping *map = mapping;
	bool is_aliased = page_shift(page);

	if (!is_known(page))
		return 0;
	if (!map || map->start > entry->addr ||
	    !origin_same(mapping_origin(map, entry->addr), page->origin) ||
	    (!is_aliased && !(map->prot & PROT_WRITE)))
		forget_page(page);
	else if (map->prot != (is_aliased ? alias_prot(page) : page->prot | PROT_WRITE))
		page->prot = map->prot;
	return 0;
}

/* Up to the end of that mapping; without one, to the end of the range. */
static int compare_until(const struct mapping *map, void *range)
{
	struct text_range *rest = range;
	uintptr_t end = map && map->end < rest->end ? map->end : rest->end;

	table_each_in(&text_pages, rest->start, end, compare_page, (void *)(uintptr_t)map);
	rest->start = end;
	return 0;
}

/* To the whole huge pages in which the first and the last page lie, as they were opened. */
static void widen_to_opened(uintptr_t *start, uintptr_t *end)
{
	*start &= ~(page_granule(page_find(*start)) - 1);
	*end = ((*end - 1) | (page_granule(page_find(*end - 1)) - 1)) + 1;
}

static int is_known_entry(struct entry *entry, void *unused)
{
	(void)unused;
	return is_known((const struct page *)entry);
}

/* Asks only where there is something to compare with. */
void text_compare(uintptr_t start, uintptr_t end)
{
	struct text_range rest = { start, end };

	widen_to_opened(&rest.start, &rest.end);
	if (table_each_in(&text_pages, rest.start, rest.end, is_known_entry, NULL) &&
	    mappings_each(rest.start, rest.end, MAPPING_ANY, compare_until, &rest) == 0)
		compare_until(NULL, &rest);
}

/* --- Making writable ------------------------------------------------------------------------- */

/* What is to become of some pages. */
struct page_wish {
	unsigned opens; /* 1; 0: only for one patch */
	bool shared;	/* also if others see what changes there */
	bool alias;	/* written through an alias */
	uint64_t *loan; /* where to say when; NULL: it is for more than a patch */
};

/* Until they have a user, they are to be given back. */
static void note_changed(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		page_find(p)->owed = page_find(p)->users == 0;
}

/* Does that mapping run the same memory at other addresses? */
static int compare_view(const struct mapping *map, void *arg)
{
	const struct mapping *part = arg;
	uint64_t at = map->origin.offset, from = part->origin.offset;

	return map->prot & PROT_EXEC && (map->start >= part->end || map->end <= part->start) &&
	       map->origin.device == part->origin.device &&
	       map->origin.inode == part->origin.inode && at < from + (part->end - part->start) &&
	       from < at + (map->end - map->start);
}

/* Where they run: [start, end), all of one mapping and without an alias. */
static int make_writable(const struct page_wish *wish, uintptr_t start, uintptr_t end,
			 const struct mapping *map)
{
	struct mapping part = { start, end, .origin = mapping_origin(map, start) };
	char byte;

	/* A change of shared memory shows in its other mappings. */
	for (uintptr_t p = start; map->shared && !wish->shared && p < end; p += TEXT_PAGE) {
		const struct page *page = page_find(p);

		/* One patch may go where the page is open for all. */
		if (wish->opens || !page->users || !page->shared)
			return -EPERM;
	}
	/* An INT3 in one that runs would be none that the library knows. */
	if (map->shared && wish->opens &&
	    mappings_each(0, UINTPTR_MAX, MAPPING_SHARED, compare_view, &part))
		return -EPERM;
	/* Behind the end of a file that is cut short a store is a SIGBUS, under any protection. */
	if (wish->loan && map->origin.inode && map->prot & PROT_READ &&
	    text_read(&byte, (const void *)(end - TEXT_PAGE), 1) == -EFAULT)
		return -EFAULT;
	note_changed(start, end);
	/* A page that is open already is writable already; asking again is harmless. */
	if (map->prot & PROT_WRITE ||
	    mprotect((void *)start, end - start, map->prot | PROT_WRITE) == 0)
		return 0;
	text_refused_with = errno;
	return errno == ENOMEM || errno == EINVAL ? -errno : -EACCES;
}

/* For pages of one mapping. */
static int prepare_mapped(const struct page_wish *wish, uintptr_t start, uintptr_t end,
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
			ret = used ? -EBUSY : alias_make(start, to, map);
		else if (!aliased)
			ret = make_writable(wish, start, to, map);
		if (ret == 0)
			note_changed(start, to);
		start = to;
	}
	return ret;
}

/* --- Users ----------------------------------------------------------------------------------- */

#define LONGEST ((size_t)4 << 30) /* bytes to open at a time: 1,048,576 entries */

struct open_request {
	const struct page_wish *wish; /* NULL: only see whether all of it is mapped */
	uintptr_t reached, end;
};

static int prepare_next(const struct mapping *map, void *arg)
{
	struct open_request *request = arg;
	uintptr_t from = request->reached;

	if (map->start > from)
		return -EFAULT;
	request->reached = map->end < request->end ? map->end : request->end;
	return request->wish ? prepare_mapped(request->wish, from, request->reached, map) : 0;
}

/* -EFAULT: there is a hole. */
static int prepare_all(const struct page_wish *wish, uintptr_t start, uintptr_t end)
{
	struct open_request request = { wish, start, end };
	int ret = mappings_each(start, end, MAPPING_ANY, prepare_next, &request);

	return ret == 0 && request.reached < end ? -EFAULT : ret;
}

/* All of it, or leave it as it is. */
static int prepare_range(const struct page_wish *wish, uintptr_t *start, uintptr_t *end)
{
	int ret;

	/* Other parts of an opened huge page count only if they are still the same memory. */
	text_compare(*start, *end);
	widen_to_opened(start, end);
	ret = prepare_all(NULL, *start, *end);
	if (ret < 0)
		return ret;
	if (*end - *start > LONGEST)
		return -ENOMEM;
	ret = prepare_all(wish, *start, *end);
	/* Pages behind the one that failed have their old protection: it may be set again. */
	if (ret < 0)
		give_back_pages(*start, *end);
	return ret;
}

static int use_locked(const struct page_wish *wish, uintptr_t start, uintptr_t end)
{
	int ret = prepare_range(wish, &start, &end);

	/* A protection that can only be had for more than was asked for: for whole huge pages. */
	if (ret == -EINVAL) {
		start &= ~(mapping_page_size(start) - 1);
		end = ((end - 1) | (mapping_page_size(end - 1) - 1)) + 1;
		ret = prepare_range(wish, &start, &end);
		for (uintptr_t p = start, size; ret == 0 && p < end; p += size) {
			size = mapping_page_size(p);
			for (uintptr_t part = p; part < p + size; part += TEXT_PAGE)
				page_find(part)->granule = size;
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

static int use_pages(const struct page_wish *wish, uintptr_t start, uintptr_t end)
{
	int ret;

	text_refused_with = 0;
	if (choice_is_quiet())
		return -ENOTSUP;
	/* Before the pages are used: code mapped there since has no change in flight yet. */
	forget_gone();
	lock_take(&text_lock);
	ret = use_locked(wish, start, end);
	lock_drop(&text_lock);
	return ret;
}

int text_borrow(uintptr_t start, uintptr_t end, uint64_t *loan)
{
	return use_pages(&(struct page_wish){ .loan = loan }, start, end);
}

/* With text_lock. A protection that could not be given back is tried again later. */
static int return_pages(uintptr_t start, uintptr_t end, uint64_t loan)
{
	text_compare(start, end);
	widen_to_opened(&start, &end);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (is_on_loan(page, loan) && page->users)
			page->owed = --page->users == 0;
	}
	return give_back_pages(start, end);
}

int text_return(uintptr_t start, uintptr_t end, uint64_t loan)
{
	int ret;

	lock_take(&text_lock);
	ret = return_pages(start, end, loan);
	lock_drop(&text_lock);
	return ret;
}

/* All users give the page up, or the borrowers alone. */
static int close_entry(struct entry *entry, void *only_borrowers)
{
	struct page *page = (struct page *)entry;
	unsigned opens = only_borrowers ? load_relaxed(&page->opens) : 0;

	if (only_borrowers && page->users <= opens)
		return 0;
	page->owed = !opens && (only_borrowers ? !page_shift(page) : is_known(page));
	page_lose_users(page);
	page->users = opens;
	store_relaxed(&page->opens, opens);
	return 0;
}

/* The first owed part of a huge page gives all of it back. */
static int give_back_owed(struct entry *entry, void *first_failure)
{
	const struct page *page = (struct page *)entry;
	int *first = first_failure, ret = 0;

	if (page->owed)
		ret = return_pages(entry->addr, entry->addr + TEXT_PAGE, 0);
	if (*first == 0)
		*first = ret;
	return 0;
}

static int give_back_all(bool *only_borrowers)
{
	int ret = 0;

	lock_take(&text_lock);
	table_each(&text_pages, close_entry, only_borrowers);
	table_each(&text_pages, give_back_owed, &ret);
	lock_drop(&text_lock);
	return ret;
}

int text_give_back(void)
{
	return give_back_all(NULL);
}

void text_give_back_borrowed(void)
{
	give_back_all(&(bool){ true });
}

/* --- Closing --------------------------------------------------------------------------------- */

int text_stop_using(uintptr_t *start, uintptr_t *end, uint64_t *loan)
{
	bool is_open;

	if (choice_is_quiet())
		return -ENOTSUP;
	lock_take(&text_lock);
	if (text_is_open(*start, *end))
		text_compare(*start, *end);
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
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (is_on_loan(page, loan))
			atomic_fetch_add_explicit(&page->opens, 1, memory_order_relaxed);
	}
	lock_drop(&text_lock);
}

/* --- Pages whose code is gone ----------------------------------------------------------------- */

/* With [start, end): not a part of a huge page. *to: the end of the page. */
static bool is_gone(uintptr_t page, uintptr_t start, uintptr_t end, uintptr_t *to)
{
	size_t granule = page_granule(page_find(page));
	uintptr_t first = page & ~(granule - 1);

	*to = first + granule;
	return first >= start && first < end && end - first >= granule;
}

void text_end_outside(const struct text_span *span, uintptr_t start, uintptr_t end)
{
	uintptr_t page, last, to;

	if (!span->loan || text_range(span->addr, span->len, &page, &last) < 0)
		return;
	lock_take(&text_lock);
	for (; page < last; page = to)
		if (!is_gone(page, start, end, &to))
			return_pages(page, page + TEXT_PAGE, span->loan);
	lock_drop(&text_lock);
}

/* No loan of before counts there, and it is in no copy. With text_lock. */
static bool renew_page(struct entry *entry)
{
	struct page *page = (struct page *)entry;

	page->copied_in = 0;
	store_relaxed(&page->forgotten, text_forgets);
	return true;
}

static int forget_gone_page(struct entry *entry, void *arg)
{
	const struct text_range *gone = arg;
	uintptr_t to;

	if (is_gone(entry->addr, gone->start, gone->end, &to)) {
		forget_page((struct page *)entry);
		table_remove(&text_pages, entry);
	}
	return 0;
}

void text_forget(uintptr_t start, uintptr_t end)
{
	struct text_range gone = { start, end };

	lock_take(&text_lock);
	table_each_in(&text_pages, start, end, forget_gone_page, &gone);
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

static int use_asked(const struct page_wish *wish, void *addr, size_t len)
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
	return use_asked(&(struct page_wish){ .opens = 1 }, addr, len);
}

int pc_text_open_shared(void *addr, size_t len)
{
	return use_asked(&(struct page_wish){ .opens = 1, .shared = true }, addr, len);
}

int pc_text_alias(void *addr, size_t len)
{
	return use_asked(&(struct page_wish){ .opens = 1, .alias = true }, addr, len);
}
