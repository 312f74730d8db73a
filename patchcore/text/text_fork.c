/* SPDX-License-Identifier: MIT */
/*
 * Pages of code around fork().
 *
 * An alias is shared memory, so a child would patch its parent, and the reverse. Before a fork the
 * aliased pages are therefore copied, and the child maps the copy in their place, at both
 * addresses. No other thread is inside the library meanwhile (fork.c); what the forking thread
 * itself stores goes into both.
 *
 * Until the child has done so it runs its parent's pages, and no membarrier of the parent reaches
 * it. So the parent's changes wait. The child holds the end of a pipe and closes it when it is
 * ready; if it dies, or if there is no child, the kernel closes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/alias.h"
#include "patchcore/text/text.h"
#include "patchcore/text/text_page.h"

#define PATIENCE_MS 1000

/* The copy for the child, from before the fork until both have it behind them. */
static struct {
	int fd; /* -1: there is none */
	uint8_t *at;
	size_t len;
	uint64_t device;
	uint64_t inode;
	int ready[2]; /* a pipe, -1: there is none */
} copied = { .fd = -1, .ready = { -1, -1 } };

/* --- The copy -------------------------------------------------------------------------------- */

/* The end of pages whose code and whose aliases are both in one piece. */
NOPATCH static struct page *run_last(struct page *first)
{
	struct page *page = first;

	while (page->next && page->next->entry.addr == page->entry.addr + TEXT_PAGE &&
	       page_shift(page->next) == page_shift(first) &&
	       alias_prot(page->next) == alias_prot(first))
		page = page->next;
	return page;
}

static bool write_whole(int fd, const uint8_t *from, size_t len, size_t to)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, (off_t)to);

		if (n <= 0)
			return false;
		from += n;
		len -= (size_t)n;
		to += (size_t)n;
	}
	return true;
}

static size_t number_pages(void)
{
	size_t len = 0;

	for (struct page *page = alias_first; page; page = page->next, len += TEXT_PAGE)
		page->copied_at = len;
	return len;
}

static bool fill_copy(int fd)
{
	struct page *last;

	for (struct page *page = alias_first; page; page = last->next) {
		size_t len;

		last = run_last(page);
		len = last->entry.addr - page->entry.addr + TEXT_PAGE;
		/* The code may not be readable; its alias is. */
		if (!write_whole(fd, (uint8_t *)(page->entry.addr + (uintptr_t)page_shift(page)),
				 len, page->copied_at))
			return false;
	}
	return true;
}

static void close_end(int end)
{
	if (copied.ready[end] >= 0)
		close(copied.ready[end]);
	copied.ready[end] = -1;
}

void text_drop_copy(void)
{
	uint8_t *at = copied.at;

	/* First, for a handler that patches here and now. */
	copied.at = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	if (at)
		munmap(at, copied.len);
	if (copied.fd >= 0)
		close(copied.fd);
	copied.fd = -1;
	close_end(0);
	close_end(1);
}

static bool map_copy(void)
{
	void *at = mmap(NULL, copied.len, PROT_READ | PROT_WRITE, MAP_SHARED, copied.fd, 0);

	copied.at = at == MAP_FAILED ? NULL : at;
	return copied.at;
}

void text_before_fork(void)
{
	struct stat stat;

	if (!alias_first)
		return;
	copied.len = number_pages();
	copied.fd = alias_memory(copied.len);
	if (copied.fd < 0 || !fill_copy(copied.fd) || fstat(copied.fd, &stat) < 0 || !map_copy()) {
		text_drop_copy();
		return;
	}
	copied.device = stat.st_dev;
	copied.inode = stat.st_ino;
	if (pipe2(copied.ready, O_CLOEXEC) < 0)
		copied.ready[0] = copied.ready[1] = -1;
}

static void copy_page(const struct page *page)
{
	if (page && page_shift(page) && !page->callers)
		memcpy(copied.at + page->copied_at,
		       (void *)(page->entry.addr + (uintptr_t)page_shift(page)), TEXT_PAGE);
}

void text_copy_again(const struct text_span *span)
{
	if (!copied.at)
		return;
	copy_page(page_find((uintptr_t)span->addr));
	copy_page(page_find((uintptr_t)span->addr + span->len - 1));
}

/* A signal that is handled does not shorten it. */
static void await_child(void)
{
	struct pollfd child = { .fd = copied.ready[0] };
	int64_t until = clock_ns() + PATIENCE_MS * CLOCK_MS, left = until - clock_ns();

	while (left > 0 && poll(&child, 1, (int)(left / CLOCK_MS) + 1) < 0 && errno == EINTR)
		left = until - clock_ns();
}

void text_after_fork(void)
{
	close_end(1);
	if (copied.ready[0] >= 0)
		await_child();
	text_drop_copy();
}

/* --- In the child ---------------------------------------------------------------------------- */

NOPATCH static bool map_copy_at(uintptr_t at, size_t len, int prot, size_t from)
{
	return sys_call(SYS_mmap, at, len, prot, MAP_SHARED | MAP_FIXED, copied.fd, from) ==
	       (long)at;
}

/* The code first: an alias of its own for code that it shares would be of no use. */
NOPATCH static bool map_run(const struct page *first, size_t len)
{
	uintptr_t alias = first->entry.addr + (uintptr_t)page_shift(first);

	return copied.fd >= 0 &&
	       map_copy_at(first->entry.addr, len, alias_prot(first), first->copied_at) &&
	       map_copy_at(alias, len, PROT_READ | PROT_WRITE, first->copied_at);
}

NOPATCH static void take_run(struct page *first, const struct page *last)
{
	bool taken = map_run(first, last->entry.addr - first->entry.addr + TEXT_PAGE);

	for (struct page *page = first; page && page->entry.addr <= last->entry.addr;
	     page = page->next) {
		if (taken)
			page->origin =
				(struct origin){ copied.device, copied.inode, page->copied_at };
		else
			atomic_store_explicit(&page->stale, true, memory_order_relaxed);
	}
}

NOPATCH static void take_copy(void)
{
	struct page *last;

	for (struct page *page = alias_first; page; page = last->next) {
		last = run_last(page);
		/* What the parent could not write to, it could not copy either. */
		if (!atomic_load_explicit(&page->stale, memory_order_relaxed))
			take_run(page, last);
	}
	if (copied.ready[1] >= 0)
		sys_call(SYS_close, copied.ready[1]);
	copied.ready[1] = -1;
}

NOPATCH void text_adopt(void)
{
	take_copy();
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
