/* SPDX-License-Identifier: MIT */
/*
 * Keeping code pages writable, counted per page, with their own protection
 * given back at the end.
 */
#include "patchcore/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "patchcore/patchcore.h"
#include "patchcore/table.h"

struct page {
	struct entry entry;
	int prot;	   /* to be given back; under text_lock */
	unsigned users;	   /* opens and borrowers, writable until 0; under text_lock */
	atomic_uint opens; /* written under text_lock, read without */
};

/* One stretch of /proc/self/maps. */
struct mapping {
	uintptr_t start;
	uintptr_t end;
	int prot;
};

static struct table pages = TABLE_INIT(struct page);
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER; /* nests outside pages.lock */

static uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(TEXT_PAGE - 1);
}

static struct page *page_find(uintptr_t addr)
{
	return (struct page *)table_find(&pages, addr);
}

static bool page_is_open(uintptr_t addr)
{
	struct page *page = page_find(addr);

	/* Acquire: pairs with the release in open_page, after mprotect. */
	return page && atomic_load_explicit(&page->opens, memory_order_acquire) > 0;
}

static bool is_open(uintptr_t addr, size_t len)
{
	for (uintptr_t p = page_of(addr); p < addr + len; p += TEXT_PAGE)
		if (!page_is_open(p))
			return false;
	return true;
}

static bool parse_mapping(const char *line, struct mapping *map)
{
	unsigned long start, end;
	char prot[5];

	if (sscanf(line, "%lx-%lx %4s", &start, &end, prot) != 3)
		return false;
	*map = (struct mapping){
		.start = start,
		.end = end,
		.prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
			(prot[2] == 'x' ? PROT_EXEC : 0),
	};
	return true;
}

/*
 * The mappings that cover [start, end), in order. Their number, -EFAULT if
 * they leave a hole, or another negative errno. The caller frees *list.
 */
static int read_mappings(uintptr_t start, uintptr_t end, struct mapping **list)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;
	int count = 0, ret = 0;
	uintptr_t reached = start;
	struct mapping map;

	*list = NULL;
	if (!file)
		return -EACCES;
	while (reached < end && getline(&line, &size, file) > 0) {
		struct mapping *more;

		if (!parse_mapping(line, &map) || map.end <= start)
			continue;
		if (map.start > reached)
			break;
		more = realloc(*list, (count + 1) * sizeof(map));
		if (!more) {
			ret = -ENOMEM;
			break;
		}
		*list = more;
		more[count++] = map;
		reached = map.end;
	}
	free(line);
	fclose(file);
	if (ret == 0 && reached < end)
		ret = -EFAULT;
	if (ret < 0) {
		free(*list);
		*list = NULL;
		return ret;
	}
	return count;
}

/* Give back the protection of the pages in [start, end) that nobody has open. */
static void restore(uintptr_t start, uintptr_t end)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (page && page->users == 0 && !(page->prot & PROT_WRITE))
			mprotect((void *)p, TEXT_PAGE, page->prot);
	}
}

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
	return errno == ENOMEM ? -ENOMEM : -EACCES;
}

/* Note the protection of pages that are not open yet. */
static int note_pages(uintptr_t start, uintptr_t end, int prot)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = (struct page *)table_get(&pages, p);

		if (!page)
			return -ENOMEM;
		if (page->users == 0)
			page->prot = prot;
	}
	return 0;
}

/* Make all of it writable, or leave it as it is. */
static int make_writable(uintptr_t start, uintptr_t end)
{
	struct mapping *map;
	int count = read_mappings(start, end, &map);
	int ret = count < 0 ? count : 0;
	uintptr_t reached = start;

	for (int i = 0; i < count && ret == 0; i++) {
		uintptr_t from = map[i].start > start ? map[i].start : start;
		uintptr_t to = map[i].end < end ? map[i].end : end;

		ret = note_pages(from, to, map[i].prot);
		if (ret == 0)
			ret = unprotect(from, to, map[i].prot);
		if (ret == 0)
			reached = to;
	}
	free(map);
	/* Of what lies behind, only an old protection is known. */
	if (ret < 0)
		restore(start, reached);
	return ret;
}

static int open_locked(uintptr_t start, uintptr_t end, unsigned opens)
{
	int ret = make_writable(start, end);

	if (ret < 0)
		return ret;
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->users++;
		/* Release: pairs with the acquire in page_is_open. */
		atomic_fetch_add_explicit(&page->opens, opens, memory_order_release);
	}
	return 0;
}

static int check_range(const void *addr, size_t len, uintptr_t *start, uintptr_t *end)
{
	uintptr_t last = (uintptr_t)addr + len - 1;

	if (len == 0 || last < (uintptr_t)addr || last > UINTPTR_MAX - TEXT_PAGE)
		return -EINVAL;
	*start = page_of((uintptr_t)addr);
	*end = page_of(last) + TEXT_PAGE;
	return 0;
}

static int open_range(void *addr, size_t len, unsigned opens)
{
	uintptr_t start, end;
	int ret = check_range(addr, len, &start, &end);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&text_lock);
	ret = open_locked(start, end, opens);
	pthread_mutex_unlock(&text_lock);
	return ret;
}

int pc_text_open(void *addr, size_t len)
{
	return open_range(addr, len, 1);
}

static void close_locked(uintptr_t start, uintptr_t end, unsigned opens)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->users--;
		atomic_fetch_sub_explicit(&page->opens, opens, memory_order_relaxed);
	}
	restore(start, end);
}

int text_begin(struct text_span *span, void *addr, size_t len)
{
	*span = (struct text_span){ .addr = addr, .len = len };
	/* The last pages are nobody's, and sums of addresses wrap there. */
	if ((uintptr_t)addr > UINTPTR_MAX - 2 * TEXT_PAGE)
		return -EFAULT;
	if (is_open((uintptr_t)addr, len))
		return 0;
	span->borrowed = true;
	return open_range(addr, len, 0);
}

void text_end(struct text_span *span)
{
	uintptr_t start, end;

	if (!span->borrowed || check_range(span->addr, span->len, &start, &end) < 0)
		return;
	pthread_mutex_lock(&text_lock);
	close_locked(start, end, 0);
	pthread_mutex_unlock(&text_lock);
}

int pc_text_close(void *addr, size_t len)
{
	uintptr_t start, end;
	int ret = check_range(addr, len, &start, &end);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&text_lock);
	if (is_open(start, end - start))
		close_locked(start, end, 1);
	else
		ret = -ENOENT;
	pthread_mutex_unlock(&text_lock);
	return ret;
}
