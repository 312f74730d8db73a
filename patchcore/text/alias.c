/* SPDX-License-Identifier: MIT */
/* Memory that the library maps twice: executable where it runs, writable elsewhere. */
#include "patchcore/text/text_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/text.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

#define PATIENCE_MS 1000
#define LATE_MAX    16 /* children that may be late at a time; fork() waits for the next one */

struct table text_pages = TABLE_INIT(struct page, 12, NULL);

/* The pages that have an alias of the library's own, in order. */
static struct page *alias_first;

static int error_of_refusal(int error)
{
	switch (error) {
	case ENOMEM:
	case ENOSPC:
		return -ENOMEM;
	case EMFILE:
	case ENFILE:
	case EINVAL:
		return -error;
	default:
		return -EACCES;
	}
}

/* New memory to map, as a file. Its descriptor or -errno. */
static int alias_memory(size_t len)
{
	struct rlimit limit;
	int fd, ret;

	/* Beyond the limit the kernel sends a signal instead of returning an error. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < len)
		return -EACCES;
	/* Some systems refuse memory that does not rule out becoming a program. */
	fd = memfd_create("patchcore", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("patchcore", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)len) == 0)
		return fd;
	ret = error_of_refusal(errno);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* --- The list of them ------------------------------------------------------------------------ */

static struct page **place_in_list(uintptr_t addr)
{
	struct page **link = &alias_first;

	while (*link && (*link)->entry.addr < addr)
		link = &(*link)->next;
	return link;
}

/* Noted before its shift is, so that a shift alone always leads to the code. */
static void note_changing(uintptr_t start, uintptr_t end, bool changing)
{
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		page_find(p)->changing = changing;
	/* The thread may end behind each of these. */
	atomic_signal_fence(memory_order_seq_cst);
}

/* Of what is changing, some may not be in the list, as the thread that began it has ended. */
static void list_remove(uintptr_t start, uintptr_t end)
{
	struct page **link = place_in_list(start);

	while (*link && (*link)->entry.addr < end)
		*link = (*link)->next;
	atomic_signal_fence(memory_order_seq_cst);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->next = NULL;
		atomic_store_explicit(&page->shift, 0, memory_order_relaxed);
		atomic_store_explicit(&page->stale, false, memory_order_relaxed);
	}
	note_changing(start, end, false);
}

/* --- Making and ending one ------------------------------------------------------------------- */

/* Also what only executes can be read here. */
static int copy_forcibly(int fd, uintptr_t from, size_t len)
{
	int mem = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	uint8_t page[TEXT_PAGE];
	size_t done = 0;

	if (mem < 0)
		return error_of_refusal(errno);
	while (done < len && pread(mem, page, sizeof(page), (off_t)(from + done)) == TEXT_PAGE &&
	       pwrite(fd, page, sizeof(page), (off_t)done) == TEXT_PAGE)
		done += TEXT_PAGE;
	close(mem);
	return done < len ? -EFAULT : 0;
}

/* By system call, so that what cannot be read, or has no room, is an error and not a signal. */
static int write_memory(int fd, size_t at, const void *from, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n =
			pwrite(fd, (const uint8_t *)from + done, len - done, (off_t)(at + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* New memory with that code in it: its descriptor. */
static int memory_with(uintptr_t from, size_t len)
{
	int fd = alias_memory(len), ret;

	if (fd < 0)
		return fd;
	ret = write_memory(fd, 0, (const void *)from, len);
	if (ret == -EFAULT)
		ret = copy_forcibly(fd, from, len);
	else if (ret < 0)
		ret = error_of_refusal(-ret);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

/* That memory where the code runs. The descriptor is closed, also after an error. */
static int put_in_place(uintptr_t start, uintptr_t end, int prot, int flags, int fd)
{
	void *put = mmap((void *)start, end - start, prot, flags | MAP_FIXED, fd, 0);
	int ret = put == MAP_FAILED ? error_of_refusal(errno) : 0;
	struct stat stat = { 0 };

	fstat(fd, &stat);
	for (uintptr_t p = start; ret == 0 && p < end; p += TEXT_PAGE)
		page_find(p)->origin = (struct origin){
			.device = stat.st_dev,
			.inode = stat.st_ino,
			.offset = p - start,
		};
	close(fd);
	return ret;
}

int alias_make(uintptr_t start, uintptr_t end)
{
	struct page **link = place_in_list(start);
	size_t len = end - start;
	int fd = memory_with(start, len), ret;
	uint8_t *at;

	if (fd < 0)
		return fd;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		ret = error_of_refusal(errno);
		close(fd);
		return ret;
	}
	note_changing(start, end, true);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE, link = &(*link)->next) {
		struct page *page = page_find(p);

		page->granule = TEXT_PAGE;
		atomic_store_explicit(&page->stale, false, memory_order_relaxed);
		atomic_store_explicit(&page->shift, (intptr_t)at - (intptr_t)start,
				      memory_order_relaxed);
		page->next = *link;
		*link = page;
	}
	ret = put_in_place(start, end, alias_prot(page_find(start)), MAP_SHARED, fd);
	if (ret < 0) {
		list_remove(start, end);
		munmap(at, len);
	}
	return ret;
}

void alias_forget(struct page *page)
{
	uintptr_t start = page->entry.addr;
	uint8_t *alias = page_alias(page);

	list_remove(start, start + TEXT_PAGE);
	munmap(alias, TEXT_PAGE);
}

/*
 * Not the same memory with one mapping less: that would still be shared with every child to come.
 * The alias stays until nothing leads to it: a thread that ends in between leaves what can be done
 * again from the beginning.
 */
int alias_end(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	uint8_t *alias = page_alias(first);
	bool stale = atomic_load_explicit(&first->stale, memory_order_relaxed);
	int fd = memory_with(stale ? start : (uintptr_t)alias, end - start), ret;

	if (fd < 0)
		return fd;
	note_changing(start, end, true);
	ret = put_in_place(start, end, first->prot, MAP_PRIVATE, fd);
	if (ret < 0)
		return ret;
	list_remove(start, end);
	munmap(alias, end - start);
	return 0;
}

/* --- Around fork() --------------------------------------------------------------------------- */

/*
 * An alias is shared memory, so a child would patch its parent, and the reverse. Before a fork the
 * aliased pages are therefore copied, and the child maps the copy in their place, at both
 * addresses. No other thread is inside the library meanwhile (fork.c); what the forking thread
 * itself stores goes into both.
 *
 * Until the child has done so it runs its parent's pages, and no membarrier of the parent reaches
 * it. So the parent's changes wait. The child holds the end of a pipe and closes it when it is
 * ready; if it dies, or if there is no child, the kernel closes it. fork() waits for that, but not
 * without end: the child may be stopped by a debugger, or starved. Then it is late, and until it
 * is ready changes of pages with an alias are refused (-EAGAIN).
 */

/* The copy for the child, from before the fork until both have it behind them. */
static struct {
	int fd; /* -1: there is none */
	uint8_t *at;
	size_t len;
	uint64_t device;
	uint64_t inode;
	int ready[2]; /* a pipe, -1: there is none */
} copied = { .fd = -1, .ready = { -1, -1 } };

/* The pipes of children that are late: descriptor + 1, 0 where there is none. */
static _Atomic(int) late[LATE_MAX];
static _Atomic(unsigned) lates;

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

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void text_drop_copy(void)
{
	uint8_t *at = copied.at;

	/* First, for a handler that patches here and now. */
	copied.at = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	if (at)
		munmap(at, copied.len);
	close_if_open(&copied.fd);
	close_if_open(&copied.ready[0]);
	close_if_open(&copied.ready[1]);
}

void text_before_fork(void)
{
	void *at = MAP_FAILED;
	struct page *last;
	struct stat stat;
	bool all;

	text_child_is_late();
	if (!alias_first)
		return;
	copied.len = 0;
	for (struct page *page = alias_first; page; page = page->next, copied.len += TEXT_PAGE)
		page->copied_at = copied.len;
	copied.fd = alias_memory(copied.len);
	all = copied.fd >= 0 && fstat(copied.fd, &stat) == 0;
	/* The code may not be readable; its alias is. */
	for (struct page *page = alias_first; page && all; page = last->next) {
		last = run_last(page);
		all = write_memory(copied.fd, page->copied_at, page_alias(page),
				   last->entry.addr - page->entry.addr + TEXT_PAGE) == 0;
	}
	if (all)
		at = mmap(NULL, copied.len, PROT_READ | PROT_WRITE, MAP_SHARED, copied.fd, 0);
	if (at == MAP_FAILED) {
		text_drop_copy();
		return;
	}
	copied.at = at;
	copied.device = stat.st_dev;
	copied.inode = stat.st_ino;
	if (pipe2(copied.ready, O_CLOEXEC) < 0)
		copied.ready[0] = copied.ready[1] = -1;
}

void text_copy_again(const struct text_span *span)
{
	uintptr_t addr = (uintptr_t)span->addr;
	const struct page *const ends[] = { page_find(addr), page_find(addr + span->len - 1) };

	for (int i = 0; copied.at && i < 2; i++)
		if (ends[i] && page_shift(ends[i]))
			memcpy(copied.at + ends[i]->copied_at, page_alias(ends[i]), TEXT_PAGE);
}

/* No child holds the other end any more. A signal that is handled makes it no longer wait. */
NOPATCH static bool is_ready(int fd, int ms)
{
	struct pollfd child = { .fd = fd };

	return sys_call(SYS_poll, (long)&child, 1, ms) > 0;
}

NOPATCH bool text_child_is_late(void)
{
	if (atomic_load_explicit(&lates, memory_order_acquire) == 0)
		return false;
	for (unsigned i = 0; i < LATE_MAX; i++) {
		int fd = atomic_load_explicit(&late[i], memory_order_acquire);

		/* The thread that takes it out closes it. */
		if (fd && is_ready(fd - 1, 0) &&
		    atomic_compare_exchange_strong_explicit(&late[i], &fd, 0, memory_order_acq_rel,
							    memory_order_relaxed)) {
			sys_call(SYS_close, fd - 1);
			atomic_fetch_sub_explicit(&lates, 1, memory_order_release);
		}
	}
	return atomic_load_explicit(&lates, memory_order_acquire) != 0;
}

/* The forking thread alone, with the gate closed. False: there is no room. */
static bool note_late(int fd)
{
	text_child_is_late();
	for (unsigned i = 0; i < LATE_MAX; i++) {
		if (atomic_load_explicit(&late[i], memory_order_relaxed))
			continue;
		atomic_store_explicit(&late[i], fd + 1, memory_order_release);
		atomic_fetch_add_explicit(&lates, 1, memory_order_release);
		return true;
	}
	return false;
}

void text_after_fork(void)
{
	int64_t left = PATIENCE_MS * CLOCK_MS, until = clock_ns() + left;
	int fd = copied.ready[0];
	bool ready = fd < 0;

	close_if_open(&copied.ready[1]);
	while (!ready && left > 0) {
		ready = is_ready(fd, (int)(left / CLOCK_MS) + 1);
		left = until - clock_ns();
	}
	while (!ready && !note_late(fd))
		ready = is_ready(fd, PATIENCE_MS);
	if (!ready)
		copied.ready[0] = -1;
	text_drop_copy();
}

/* Not the child's affair: it has a copy of its own. */
void text_drop_late(void)
{
	for (unsigned i = 0; i < LATE_MAX; i++) {
		int fd = atomic_exchange_explicit(&late[i], 0, memory_order_relaxed);

		if (fd)
			close(fd - 1);
	}
	atomic_store_explicit(&lates, 0, memory_order_relaxed);
}

/* --- In the child ---------------------------------------------------------------------------- */

NOPATCH static bool map_copy_at(uintptr_t at, size_t len, int prot, size_t from)
{
	return sys_call(SYS_mmap, at, len, prot, MAP_SHARED | MAP_FIXED, copied.fd, from) ==
	       (long)at;
}

NOPATCH void text_adopt(void)
{
	struct page *last;

	for (struct page *first = alias_first; first; first = last->next) {
		size_t len;
		bool taken;

		last = run_last(first);
		/* What the parent could not write to, it could not copy either. */
		if (atomic_load_explicit(&first->stale, memory_order_relaxed))
			continue;
		len = last->entry.addr - first->entry.addr + TEXT_PAGE;
		/* The code first: an alias of its own is of no use for code that it shares. */
		taken = copied.fd >= 0 &&
			map_copy_at(first->entry.addr, len, alias_prot(first), first->copied_at) &&
			map_copy_at((uintptr_t)page_alias(first), len, PROT_READ | PROT_WRITE,
				    first->copied_at);
		/* Else what this process stores there goes nowhere: a change that it goes on with.
		 */
		if (!taken)
			sys_call(SYS_mmap, page_alias(first), len, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		for (struct page *page = first; page != last->next; page = page->next) {
			if (taken)
				page->origin = (struct origin){ copied.device, copied.inode,
								page->copied_at };
			else
				atomic_store_explicit(&page->stale, true, memory_order_relaxed);
		}
	}
	if (copied.ready[1] >= 0)
		sys_call(SYS_close, copied.ready[1]);
	copied.ready[1] = -1;
}
