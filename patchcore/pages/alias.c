/* SPDX-License-Identifier: MIT */
/* Memory that the library maps twice: executable where it runs, writable elsewhere. */
#include "patchcore/pages/text_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchcore/pages/text.h"
#include "patchcore/syscall/sys.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

#define PATIENCE_MS 1000
#define LATE_MAX    16 /* children that may be late at a time; fork() waits for the next one */

static size_t aliased; /* pages that have an alias of the library's own, or are about to */

static int error_of_refusal(int error)
{
	if (error == ENOMEM || error == ENOSPC)
		return -ENOMEM;
	return error == EMFILE || error == ENFILE || error == EINVAL ? -error : -EACCES;
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void memory_drop(struct memory *memory)
{
	if (memory->at)
		munmap(memory->at, memory->len);
	memory->at = NULL;
	close_if_open(&memory->fd);
}

int memory_make(struct memory *memory, size_t len)
{
	void *at = MAP_FAILED;
	struct rlimit limit;
	struct stat stat;
	int ret;

	*memory = (struct memory){ .fd = -1, .len = len };
	/* Beyond the limit the kernel sends a signal instead of returning an error. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < len)
		return -EACCES;
	/* Some systems refuse memory that does not rule out becoming a program. */
	memory->fd = memfd_create("patchcore", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (memory->fd < 0 && errno == EINVAL)
		memory->fd = memfd_create("patchcore", MFD_CLOEXEC);
	if (memory->fd >= 0 && fallocate(memory->fd, 0, 0, (off_t)len) == 0 &&
	    fstat(memory->fd, &stat) == 0)
		at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (at != MAP_FAILED) {
		memory->at = at;
		memory->origin = (struct origin){ stat.st_dev, stat.st_ino, 0 };
		return 0;
	}
	ret = error_of_refusal(errno);
	memory_drop(memory);
	return ret;
}

/* Counted before it has an alias and after it lost it: fork() must not miss one. */
static void set_shift(struct page *page, ptrdiff_t shift)
{
	aliased += shift != 0;
	store_relaxed(&page->stale, false);
	store_relaxed(&page->shift, shift);
	atomic_signal_fence(memory_order_seq_cst);
	aliased -= shift == 0;
}

/* --- Making and ending one ------------------------------------------------------------------- */

#define CHUNK ((size_t)1 << 30) /* bytes: a system call reads less than twice that */

/* New memory with that code in it. */
static int copy_code(struct memory *copy, uintptr_t from, size_t len)
{
	int ret = memory_make(copy, len);

	for (size_t done = 0, some; done < len && ret >= 0; done += some) {
		some = len - done < CHUNK ? len - done : CHUNK;
		ret = text_read(copy->at + done, (const void *)(from + done), some);
	}
	if (ret < 0)
		memory_drop(copy);
	return ret;
}

/* That memory where the code runs: at that shift is its alias; 0: it has none. */
static int put_in_place(const struct memory *memory, uintptr_t start, int prot, ptrdiff_t shift)
{
	int flags = MAP_FIXED | (shift ? MAP_SHARED : MAP_PRIVATE);

	if (mmap((void *)start, memory->len, prot, flags, memory->fd, 0) == MAP_FAILED)
		return error_of_refusal(errno);
	for (uintptr_t p = start; p < start + memory->len; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		page->granule = TEXT_PAGE;
		set_shift(page, shift);
		page->origin = memory->origin;
		page->origin.offset = p - start;
	}
	return 0;
}

/*
 * A uprobe, or a debugger, has its INT3 in memory and not in the file. In a copy it would stay for
 * good, and nothing there would answer for it. The path counts if it still leads to that file.
 */
static bool has_breakpoint(const struct mapping *map, uintptr_t start, const uint8_t *code,
			   size_t len)
{
	uint8_t page[TEXT_PAGE];
	char link[64], path[PATH_MAX];
	bool found = false;
	struct stat stat;
	ssize_t n;
	int fd;

	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", map->start, map->end);
	n = map->shared ? -1 : readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &stat) < 0 || stat.st_ino != map->origin.inode)
		len = 0;
	for (size_t done = 0; done < len && !found; done += TEXT_PAGE) {
		off_t at = (off_t)mapping_origin(map, start + done).offset;

		n = pread(fd, page, sizeof(page), at);
		for (ssize_t i = 0; i < n; i++)
			found |= code[done + (size_t)i] == WORD_INT3 && page[i] != WORD_INT3;
	}
	close(fd);
	return found;
}

int alias_make(uintptr_t start, uintptr_t end, const struct mapping *map)
{
	struct memory copy;
	int ret = copy_code(&copy, start, end - start);

	if (ret >= 0 && has_breakpoint(map, start, copy.at, copy.len))
		ret = -EBUSY;
	if (ret >= 0)
		ret = put_in_place(&copy, start, alias_prot(page_find(start)),
				   (intptr_t)copy.at - (intptr_t)start);
	if (ret == 0)
		copy.at = NULL; /* it stays, as the alias */
	memory_drop(&copy);
	return ret;
}

void alias_forget(struct page *page)
{
	uint8_t *alias = page_alias(page);

	set_shift(page, 0);
	munmap(alias, TEXT_PAGE);
}

/* Not the same memory with one mapping less: children would still share it. */
int alias_end(uintptr_t start, uintptr_t end)
{
	const struct page *first = page_find(start);
	uint8_t *alias = page_alias(first);
	struct memory copy;
	int ret = copy_code(&copy, page_may_be_written(first) ? (uintptr_t)alias : start,
			    end - start);

	if (ret >= 0)
		ret = put_in_place(&copy, start, first->prot, 0);
	memory_drop(&copy);
	if (ret == 0)
		munmap(alias, end - start);
	return ret;
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
	struct memory memory;
	size_t used;
	bool is_whole;
	uint64_t number; /* of the copies of this process and its ancestors */
	int ready[2];	 /* a pipe, -1: there is none */
} copied = { .memory.fd = -1, .ready = { -1, -1 } };

/* The pipes of children that are late: descriptor + 1, 0 where there is none. */
static _Atomic(int) late[LATE_MAX];
static _Atomic(unsigned) lates;

NOPATCH_INLINE bool is_copied(const struct page *page)
{
	return copied.is_whole && page->copied_in == copied.number;
}

/* The code, the alias and the copy of the two are each in one piece. */
NOPATCH static bool are_one_run(const struct page *page, const struct page *next)
{
	return page && page_shift(page) && page_shift(next) == page_shift(page) &&
	       is_copied(next) == is_copied(page) &&
	       (!is_copied(page) || (next->copied_at == page->copied_at + TEXT_PAGE &&
				     next->copied_prot == page->copied_prot));
}

void text_drop_copy(void)
{
	/* First, for a handler that patches here and now. */
	copied.is_whole = false;
	atomic_signal_fence(memory_order_seq_cst);
	memory_drop(&copied.memory);
	close_if_open(&copied.ready[0]);
	close_if_open(&copied.ready[1]);
}

/* Copy what is ours there: the alias, since the code may not be readable. */
static int copy_page(struct entry *entry, void *mapping)
{
	struct page *page = (struct page *)entry;
	const struct mapping *map = mapping;

	/* A thread that a debugger had stopped inside may make more of them just now. */
	if (copied.used == copied.memory.len || !page_shift(page) || !page_may_be_written(page) ||
	    !origin_same(mapping_origin(map, entry->addr), page->origin))
		return 0;
	memcpy(copied.memory.at + copied.used, page_alias(page), TEXT_PAGE);
	page->copied_at = copied.used;
	page->copied_in = copied.number;
	page->copied_prot = map->prot;
	copied.used += TEXT_PAGE;
	return 0;
}

static int copy_mapped(const struct mapping *map, void *unused)
{
	(void)unused;
	return table_each_in(&text_pages, map->start, map->end, copy_page, (void *)(uintptr_t)map);
}

void text_before_fork(void)
{
	text_child_is_late();
	if (!aliased)
		return;
	copied.number++;
	copied.used = 0;
	if (memory_make(&copied.memory, aliased * TEXT_PAGE) < 0 ||
	    mappings_each(0, UINTPTR_MAX, MAPPING_SHARED, copy_mapped, NULL) < 0) {
		text_drop_copy();
		return;
	}
	/* From now on it counts: a child that is made past the handlers takes no half of it. */
	atomic_signal_fence(memory_order_seq_cst);
	copied.is_whole = true;
	if (pipe2(copied.ready, O_CLOEXEC) < 0)
		copied.ready[0] = copied.ready[1] = -1;
}

void text_copy_again(const struct text_span *span)
{
	uintptr_t addr = (uintptr_t)span->addr;
	const struct page *const ends[] = { page_find(addr), page_find(addr + span->len - 1) };

	for (int i = 0; i < 2; i++)
		if (ends[i] && page_shift(ends[i]) && is_copied(ends[i]))
			memcpy(copied.memory.at + ends[i]->copied_at, page_alias(ends[i]),
			       TEXT_PAGE);
}

/* No child holds the other end any more. A signal that is handled makes it no longer wait. */
NOPATCH static bool is_ready(int fd, int ms)
{
	struct pollfd child = { .fd = fd };

	return sys_call(SYS_poll, (long)&child, 1, ms) > 0;
}

NOPATCH bool text_child_is_late(void)
{
	if (load_acquire(&lates) == 0)
		return false;
	for (unsigned i = 0; i < LATE_MAX; i++) {
		int fd = load_acquire(&late[i]);

		/* The thread that takes it out closes it. */
		if (fd && is_ready(fd - 1, 0) &&
		    atomic_compare_exchange_strong_explicit(&late[i], &fd, 0, memory_order_acq_rel,
							    memory_order_relaxed)) {
			sys_call(SYS_close, fd - 1);
			atomic_fetch_sub_explicit(&lates, 1, memory_order_release);
		}
	}
	return load_acquire(&lates) != 0;
}

/* The forking thread alone, with the gate closed. False: there is no room. */
static bool note_late(int fd)
{
	text_child_is_late();
	for (unsigned i = 0; i < LATE_MAX; i++) {
		if (load_relaxed(&late[i]))
			continue;
		store_release(&late[i], fd + 1);
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
	store_relaxed(&lates, 0);
}

/* --- In the child ---------------------------------------------------------------------------- */

NOPATCH static bool map_copy_at(uintptr_t at, size_t len, int prot, size_t from)
{
	return sys_call(SYS_mmap, at, len, prot, MAP_SHARED | MAP_FIXED, copied.memory.fd, from) ==
	       (long)at;
}

/* At the first page of a run, all of it. What the parent could not write to has no copy. */
NOPATCH static int adopt_run(struct entry *entry, void *unused)
{
	struct page *first = (struct page *)entry, *page = first;
	uintptr_t start = entry->addr, end = start + TEXT_PAGE;
	bool taken;

	(void)unused;
	if (!page_shift(first) || !page_may_be_written(first) ||
	    are_one_run(page_find(start - TEXT_PAGE), first))
		return 0;
	for (struct page *next; (next = page_find(end)) && are_one_run(page, next); page = next)
		end += TEXT_PAGE;
	/* The code first: an alias of its own is of no use for code that it shares. */
	taken = is_copied(first) &&
		map_copy_at(start, end - start, first->copied_prot, first->copied_at) &&
		map_copy_at((uintptr_t)page_alias(first), end - start, PROT_READ | PROT_WRITE,
			    first->copied_at);
	/* Else what this process stores there goes nowhere: a change that it goes on with. */
	if (!taken)
		sys_call(SYS_mmap, page_alias(first), end - start, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		page = page_find(p);
		store_relaxed(&page->stale, !taken);
		if (!taken)
			continue;
		page->origin = copied.memory.origin;
		page->origin.offset = page->copied_at;
	}
	return 0;
}

NOPATCH void text_adopt(void)
{
	table_each(&text_pages, adopt_run, NULL);
	if (copied.ready[1] >= 0)
		sys_call(SYS_close, copied.ready[1]);
	copied.ready[1] = -1;
}
