/* SPDX-License-Identifier: MIT */
/*
 * Memory that is mapped twice: executable where it runs, writable elsewhere.
 */
#include "patchcore/alias.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

struct page *alias_first;

/* 1 on a page that fork() leaves empty in the child; NULL until the first alias. */
static _Atomic(atomic_int *) ours;

static int refusal(int error)
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

static int open_memory(void)
{
	/* That it shall never be a program is asked for by some systems. */
	int fd = memfd_create("patchcore", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("patchcore", MFD_CLOEXEC);
	return fd < 0 ? refusal(errno) : fd;
}

int alias_memory(size_t len)
{
	struct rlimit limit;
	int fd, ret;

	/* More than that would be a signal, and not an error. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < len)
		return -EACCES;
	fd = open_memory();
	if (fd < 0 || ftruncate(fd, (off_t)len) == 0)
		return fd;
	ret = refusal(errno);
	close(fd);
	return ret;
}

bool alias_is_ours(void)
{
	atomic_int *flag = atomic_load_explicit(&ours, memory_order_acquire);

	return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

void alias_now_ours(void)
{
	atomic_int *flag = atomic_load_explicit(&ours, memory_order_acquire);

	if (flag)
		atomic_store_explicit(flag, 1, memory_order_relaxed);
}

static int set_up_ours(void)
{
	void *flag;

	if (atomic_load_explicit(&ours, memory_order_relaxed))
		return 0;
	flag = mmap(NULL, TEXT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (flag == MAP_FAILED)
		return -ENOMEM;
	/* Without it, such a child goes unnoticed. */
	madvise(flag, TEXT_PAGE, MADV_WIPEONFORK);
	atomic_store_explicit(&ours, flag, memory_order_release);
	alias_now_ours();
	return 0;
}

int alias_prot(const struct page *page)
{
	return page->prot & ~PROT_WRITE;
}

/* --- The list of them ------------------------------------------------------------------------ */

static struct page **place_of(uintptr_t addr)
{
	struct page **link = &alias_first;

	while (*link && (*link)->entry.addr < addr)
		link = &(*link)->next;
	return link;
}

static void list_add(uintptr_t start, uintptr_t end, ptrdiff_t shift)
{
	struct page **link = place_of(start);

	for (uintptr_t p = start; p < end; p += TEXT_PAGE, link = &(*link)->next) {
		struct page *page = page_find(p);

		page->next = *link;
		*link = page;
		page->granule = TEXT_PAGE;
		atomic_store_explicit(&page->stale, false, memory_order_relaxed);
		atomic_store_explicit(&page->shift, shift, memory_order_relaxed);
	}
}

/* All of them have one. */
static void list_remove(uintptr_t start, uintptr_t end)
{
	struct page **link = place_of(start);

	while (*link && (*link)->entry.addr < end) {
		struct page *page = *link;

		*link = page->next;
		page->next = NULL;
		atomic_store_explicit(&page->shift, 0, memory_order_relaxed);
		atomic_store_explicit(&page->stale, false, memory_order_relaxed);
	}
}

/* --- Making and ending one ------------------------------------------------------------------- */

/* Also what only executes can be read here. */
static int copy_forcibly(int fd, uintptr_t from, size_t len)
{
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	uint8_t page[TEXT_PAGE];
	size_t done = 0;

	if (mem < 0)
		return refusal(errno);
	while (done < len && pread(mem, page, sizeof(page), (off_t)(from + done)) == TEXT_PAGE &&
	       pwrite(fd, page, sizeof(page), (off_t)done) == TEXT_PAGE)
		done += TEXT_PAGE;
	close(mem);
	return done < len ? -EFAULT : 0;
}

/* By system call, so that what cannot be read is an error and not a signal. */
static int copy(int fd, uintptr_t from, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const void *)(from + done), len - done, (off_t)done);

		if (n < 0 && errno == EFAULT)
			return copy_forcibly(fd, from, len);
		if (n < 0 && errno != EINTR)
			return refusal(errno);
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

static int memory_with(uintptr_t from, size_t len)
{
	int fd = alias_memory(len), ret;

	if (fd < 0)
		return fd;
	ret = copy(fd, from, len);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

static int put_in_place(uintptr_t at, size_t len, int prot, int flags, int fd)
{
	void *put = mmap((void *)at, len, prot, flags | MAP_FIXED, fd, 0);

	return put == MAP_FAILED ? refusal(errno) : 0;
}

static void note_origin(uintptr_t start, uintptr_t end, int fd)
{
	struct stat stat = { 0 };

	fstat(fd, &stat);
	for (uintptr_t p = start; p < end; p += TEXT_PAGE)
		page_find(p)->origin = (struct origin){
			.device = stat.st_dev,
			.inode = stat.st_ino,
			.offset = p - start,
		};
}

static int map_twice(uintptr_t start, uintptr_t end, int fd)
{
	size_t len = end - start;
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int ret;

	if (at == MAP_FAILED)
		return refusal(errno);
	ret = put_in_place(start, len, alias_prot(page_find(start)), MAP_SHARED, fd);
	if (ret < 0) {
		munmap(at, len);
		return ret;
	}
	note_origin(start, end, fd);
	list_add(start, end, (intptr_t)at - (intptr_t)start);
	return 0;
}

int alias_make(uintptr_t start, uintptr_t end)
{
	int ret = set_up_ours(), fd;

	if (ret < 0)
		return ret;
	fd = memory_with(start, end - start);
	if (fd < 0)
		return fd;
	ret = map_twice(start, end, fd);
	close(fd);
	return ret;
}

static void *alias_of(const struct page *page)
{
	return (void *)(page->entry.addr + (uintptr_t)page_shift(page));
}

void alias_forget(struct page *page)
{
	munmap(alias_of(page), TEXT_PAGE);
	list_remove(page->entry.addr, page->entry.addr + TEXT_PAGE);
}

/*
 * Not the same memory with one mapping less: that would still be shared with
 * every child to come.
 */
int alias_end(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	int fd = memory_with((uintptr_t)alias_of(first), end - start);
	int ret;

	if (fd < 0)
		return fd;
	ret = put_in_place(start, end - start, first->prot, MAP_PRIVATE, fd);
	if (ret == 0)
		note_origin(start, end, fd);
	close(fd);
	if (ret < 0)
		return ret;
	munmap(alias_of(first), end - start);
	list_remove(start, end);
	return 0;
}
