/* SPDX-License-Identifier: MIT */
/*
 * Keeping code pages writable, counted per page, with their own protection
 * given back at the end.
 */
#include "patchcore/text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/machine/choice.h"
#include "patchcore/mapping.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/alias.h"
#include "patchcore/text/text_page.h"

struct table text_pages = TABLE_INIT(struct page);
struct lock text_lock = LOCK_INIT;
uint64_t text_forgets;
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
	return page && (page->owed || page->changing);
}

static bool is_like(const struct page *a, const struct page *b)
{
	return page_shift(a) == page_shift(b) && a->prot == b->prot && a->callers == b->callers;
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

static bool is_mapped(uintptr_t page)
{
	unsigned char unused;

	return mincore((void *)page, TEXT_PAGE, &unused) == 0 || errno != ENOMEM;
}

/* What is not mapped any more has no protection to get back. */
static int protect_mapped(uintptr_t start, uintptr_t end, int prot)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		if (is_mapped(p) && mprotect((void *)p, TEXT_PAGE, prot) < 0)
			return errno == ENOMEM ? -ENOMEM : -EACCES;
	return 0;
}

static int protect(uintptr_t start, uintptr_t end, int prot)
{
	if (mprotect((void *)start, end - start, prot) == 0)
		return 0;
	return errno == ENOMEM ? protect_mapped(start, end, prot) : -EACCES;
}

static int give_back_run(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	int ret = 0;

	if (first->callers)
		alias_return(start, end);
	else if (page_shift(first))
		ret = alias_end(start, end);
	else if (!(first->prot & PROT_WRITE))
		ret = protect(start, end, first->prot);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		page_find(p)->owed = ret < 0;
		page_find(p)->changing &= ret < 0;
	}
	return ret;
}

/* All that is owed in [start, end). The first error, if any. */
static int give_back_pages(uintptr_t start, uintptr_t end)
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
		page->shared = false;
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

/* Until they have a user, they are to be given back. */
static void note_changed(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->owed = page->users == 0;
		page->changing = false;
	}
}

/* What is to become of some pages. */
struct wish;

/* For pages of one mapping. *reached: how far it came. */
typedef int prepare_fn(const struct wish *wish, uintptr_t start, uintptr_t end,
		       const struct mapping *map, uintptr_t *reached);

struct wish {
	prepare_fn *prepare;
	unsigned opens;		     /* 1; 0: only for one patch */
	bool shared;		     /* also if others see what changes there */
	ptrdiff_t shift;	     /* to the caller's alias, ... */
	const struct mapping *alias; /* ... what is mapped there, ... */
	int alias_count;	     /* ... and how many of them */
	uint64_t *loan;		     /* where to say when; NULL: it is for more than a patch */
};

/* May the pages be written where they run, though other mappings of the same show it? */
static int check_shared(const struct wish *wish, uintptr_t start, uintptr_t end,
			const struct mapping *map)
{
	if (!map->shared || wish->shared)
		return 0;
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		const struct page *page = page_find(p);

		/* One patch may go where the page is open for all. */
		if (wish->opens || !page->users || !page->shared)
			return -EPERM;
	}
	return 0;
}

/* What of [start, end) has no alias. */
static int prepare_open(const struct wish *wish, uintptr_t start, uintptr_t end,
			const struct mapping *map, uintptr_t *reached)
{
	int ret = note_pages(start, end, map);

	while (start < end && ret == 0) {
		uintptr_t to = alike_until(start, end);

		if (!page_shift(page_find(start))) {
			ret = check_shared(wish, start, to, map);
			/* Noted before: a thread that ends in between leaves what others give back.
			 */
			if (ret == 0)
				note_changed(start, to);
			if (ret == 0)
				ret = unprotect(start, to, map->prot);
		}
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

static int prepare_alias(const struct wish *wish, uintptr_t start, uintptr_t end,
			 const struct mapping *map, uintptr_t *reached)
{
	int ret = note_pages(start, end, map);

	(void)wish;
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

/* Is it the memory of that page, and will it stay that when the process forks? */
static bool is_alias_of(const struct wish *wish, uintptr_t addr, const struct mapping *map)
{
	uintptr_t at = addr + (uintptr_t)wish->shift;
	const struct mapping *alias = mappings_find(wish->alias, wish->alias_count, at);
	struct origin origin = mapping_origin(map, addr), other;

	if (!alias || !(alias->prot & PROT_WRITE) || !alias->shared || !map->shared)
		return false;
	other = mapping_origin(alias, at);
	return origin_same(&origin, &other);
}

static int check_alias(const struct wish *wish, uintptr_t start, uintptr_t end,
		       const struct mapping *map)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		const struct page *page = page_find(p);

		if (!is_alias_of(wish, p, map))
			return -EINVAL;
		if ((page->users || page_shift(page)) &&
		    !(page->callers && page_shift(page) == wish->shift &&
		      page_may_be_written(page)))
			return -EBUSY;
	}
	return 0;
}

static int prepare_use(const struct wish *wish, uintptr_t start, uintptr_t end,
		       const struct mapping *map, uintptr_t *reached)
{
	int ret = note_pages(start, end, map);

	if (ret == 0)
		ret = check_alias(wish, start, end, map);
	if (ret == 0)
		ret = alias_use(start, end, wish->shift);
	if (ret < 0)
		return ret;
	note_changed(start, end);
	*reached = end;
	return 0;
}

/* All of it, or leave it as it is. */
static int prepare_pages(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	struct mapping *map;
	int count = mappings_read(start, end, &map);
	int ret = count < 0 ? count : 0;
	uintptr_t reached = start;

	if (ret == 0 && !mappings_cover(map, count, start, end))
		ret = -EFAULT;
	for (int i = 0; i < count && ret == 0; i++)
		ret = wish->prepare(wish, map[i].start > start ? map[i].start : start,
				    map[i].end < end ? map[i].end : end, &map[i], &reached);
	free(map);
	/* Of what lies behind, only an old protection is known; to set it again does no harm. */
	if (ret < 0)
		give_back_pages(start, end);
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

/* To what was opened along with the first and the last page. */
static void widen_to_opened(uintptr_t *start, uintptr_t *end)
{
	*start &= ~(page_granule(page_find(*start)) - 1);
	*end = ((*end - 1) | (page_granule(page_find(*end - 1)) - 1)) + 1;
}

/* --- Users ----------------------------------------------------------------------------------- */

static void add_users(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->users++;
		page->owed = false;
		page->shared |= wish->shared;
		/* Release: pairs with the acquire in page_is_open. */
		atomic_fetch_add_explicit(&page->opens, wish->opens, memory_order_release);
	}
}

/* Where a protection can only be had for more than was asked for. */
static int use_widened(const struct wish *wish, uintptr_t *start, uintptr_t *end)
{
	int ret = prepare_pages(wish, *start, *end);

	if (ret != -EINVAL)
		return ret;
	if (widen_to_mapped(start, end)) {
		ret = prepare_pages(wish, *start, *end);
		if (ret == 0)
			note_granules(*start, *end);
	}
	return ret == -EINVAL ? -EACCES : ret;
}

/* An alias that a thread began to make or to end, before that thread ended. */
static int end_changes(uintptr_t start, uintptr_t end)
{
	bool found = false;

	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		found |= page_find(p) && page_find(p)->changing;
	return found ? give_back_pages(start, end) : 0;
}

static int use_locked(const struct wish *wish, uintptr_t start, uintptr_t end)
{
	int ret;

	if (!wish->alias)
		widen_to_opened(&start, &end);
	ret = end_changes(start, end);
	if (ret < 0)
		return ret;
	ret = wish->alias ? prepare_pages(wish, start, end) : use_widened(wish, &start, &end);
	if (ret == 0)
		add_users(wish, start, end);
	if (ret == 0 && wish->loan)
		*wish->loan = text_forgets + 1;
	return ret;
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

static int drop_users(uintptr_t start, uintptr_t end, uint64_t loan)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (page && page->users && !page_has_changed(page, loan))
			page->owed = --page->users == 0;
	}
	return give_back_pages(start, end);
}

int text_borrow(uintptr_t start, uintptr_t end, uint64_t *loan)
{
	return use_pages(&(struct wish){ .prepare = prepare_open, .loan = loan }, start, end);
}

void text_return(uintptr_t start, uintptr_t end, uint64_t loan)
{
	lock_take(&text_lock);
	widen_to_opened(&start, &end);
	/* A protection that could not be given back is tried again later. */
	drop_users(start, end, loan);
	lock_drop(&text_lock);
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

int text_drop(uintptr_t start, uintptr_t end, uint64_t loan)
{
	int ret;

	lock_take(&text_lock);
	ret = drop_users(start, end, loan);
	lock_drop(&text_lock);
	return ret;
}

/* --- One patch ------------------------------------------------------------------------------- */

NOPATCH bool page_may_be_written(const struct page *page)
{
	if (!page_shift(page))
		return true;
	if (page->callers)
		return page->process == atomic_load_explicit(&process_epoch, memory_order_relaxed);
	return !atomic_load_explicit(&page->stale, memory_order_relaxed);
}

NOPATCH bool text_is_stale(uintptr_t addr)
{
	const struct page *page = page_find(addr);

	return page && !page_may_be_written(page);
}

NOPATCH bool text_span_is_ours(const struct text_span *span)
{
	uintptr_t addr = (uintptr_t)span->addr;

	return (!span->shift[0] || !text_is_stale(addr)) &&
	       (!span->shift[1] || !text_is_stale(addr + span->len - 1));
}

static int set_shift(struct text_span *span, int i, const struct page *page)
{
	if (!page_may_be_written(page))
		return -EACCES;
	span->shift[i] = page_shift(page);
	return 0;
}

/* The bytes of both ends, which may be on one page. */
static int set_shifts(struct text_span *span, const struct page *first, const struct page *last)
{
	int ret = set_shift(span, 0, first);

	return ret < 0 ? ret : set_shift(span, 1, last);
}

/* Across two pages, or on one that is not open. */
__attribute__((noinline)) static int begin_anywhere(struct text_span *span)
{
	uintptr_t start = page_of((uintptr_t)span->addr), end;
	int ret = 0;

	/* The last pages are no program's, and sums of addresses wrap there. */
	if ((uintptr_t)span->addr > UINTPTR_MAX - 2 * TEXT_PAGE) {
		fork_leave(thread_here);
		return -EFAULT;
	}
	end = page_of((uintptr_t)span->addr + span->len - 1) + TEXT_PAGE;
	if (!text_is_open(start, end)) {
		ret = text_borrow(start, end, &span->loan);
	}
	if (ret == 0)
		ret = set_shifts(span, page_find((uintptr_t)span->addr),
				 page_find((uintptr_t)span->addr + span->len - 1));
	if (ret < 0)
		text_end(span);
	return ret;
}

/* As a rule one page, open, which is found once. */
int text_begin(struct text_span *span, void *addr, size_t len)
{
	const struct page *page = page_find((uintptr_t)addr);
	struct thread *self;
	int ret = fork_enter_in_handler(&self);

	if (ret < 0)
		return ret;
	*span = (struct text_span){ .addr = addr, .len = len };
	if (!page_is_open(page) || (uintptr_t)addr % TEXT_PAGE + len > TEXT_PAGE)
		return begin_anywhere(span);
	if (page_shift(page) && set_shifts(span, page, page) < 0) {
		text_end(span);
		return -EACCES;
	}
	return 0;
}

void text_return_kept(struct text_span *span)
{
	uintptr_t start, end;

	if (span->loan && text_range(span->addr, span->len, &start, &end) == 0)
		text_return(start, end, span->loan);
	span->loan = 0;
}

void text_end(struct text_span *span)
{
	text_return_kept(span);
	text_keep(span);
}

void text_keep(struct text_span *span)
{
	struct thread *self = thread_here;

	/* For this very thread the gate of a fork is open: see text_fork.c. */
	if (__builtin_expect(fork_is_mine(self), 0))
		text_copy_again(span);
	fork_leave(self);
}

/* --- The public functions -------------------------------------------------------------------- */

int text_asked(const void *addr, size_t len, uintptr_t *start, uintptr_t *end)
{
	int ret = text_range(addr, len, start, end);

	if (ret < 0)
		return ret;
	return choice_sync() ? 0 : -ESHUTDOWN;
}

static int use_asked(const struct wish *wish, void *addr, size_t len)
{
	uintptr_t start, end;
	int ret = text_asked(addr, len, &start, &end);
	struct thread *self;

	if (ret < 0)
		return ret;
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	ret = use_pages(wish, start, end);
	fork_leave(self);
	return ret;
}

int pc_text_open(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .prepare = prepare_open, .opens = 1 }, addr, len);
}

int pc_text_open_shared(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .prepare = prepare_open, .opens = 1, .shared = true },
			 addr, len);
}

int pc_text_alias(void *addr, size_t len)
{
	return use_asked(&(struct wish){ .prepare = prepare_alias, .opens = 1 }, addr, len);
}

/* Whole pages of it, which are as far away. */
static int find_alias(struct wish *wish, const void *addr, size_t len, const void *writable)
{
	uintptr_t start, end, alias_start, alias_end;
	struct mapping *map;
	int ret = text_asked(addr, len, &start, &end);

	wish->shift = (intptr_t)writable - (intptr_t)addr;
	if (ret == 0)
		ret = text_range(writable, len, &alias_start, &alias_end);
	if (ret == 0 && (wish->shift == 0 || wish->shift % (ptrdiff_t)TEXT_PAGE != 0))
		ret = -EINVAL;
	if (ret < 0)
		return ret;
	wish->alias_count = mappings_read(alias_start, alias_end, &map);
	if (wish->alias_count == 0) {
		free(map);
		return -EINVAL;
	}
	wish->alias = map;
	return wish->alias_count < 0 ? wish->alias_count : 0;
}

int pc_text_use_alias(void *addr, size_t len, void *writable)
{
	struct wish wish = { .prepare = prepare_use, .opens = 1 };
	int ret = find_alias(&wish, addr, len, writable);

	if (ret == 0)
		ret = use_asked(&wish, addr, len);
	free((void *)(uintptr_t)wish.alias);
	return ret;
}
