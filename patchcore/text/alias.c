/* SPDX-License-Identifier: MIT */
/*
 * Memory that the library maps twice: executable where it runs, writable elsewhere.
 */
#include "patchcore/text/text_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

struct page *alias_first;

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

int alias_memory(size_t len)
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

/* New memory with that code in it: its descriptor. */
static int memory_with(uintptr_t from, size_t len)
{
	int fd = alias_memory(len), ret = 0;

	if (fd < 0)
		return fd;
	/* By system call, so that what cannot be read is an error and not a signal. */
	for (size_t done = 0; ret == 0 && done < len;) {
		ssize_t n = pwrite(fd, (const void *)(from + done), len - done, (off_t)done);

		if (n < 0 && errno == EFAULT) {
			ret = copy_forcibly(fd, from, len);
			break;
		}
		if (n < 0 && errno != EINTR)
			ret = error_of_refusal(errno);
		done += n > 0 ? (size_t)n : 0;
	}
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

static int put_in_place(uintptr_t at, size_t len, int prot, int flags, int fd)
{
	void *put = mmap((void *)at, len, prot, flags | MAP_FIXED, fd, 0);

	return put == MAP_FAILED ? error_of_refusal(errno) : 0;
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
	ret = put_in_place(start, len, alias_prot(page_find(start)), MAP_SHARED, fd);
	if (ret == 0) {
		note_origin(start, end, fd);
	} else {
		list_remove(start, end);
		munmap(at, len);
	}
	close(fd);
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
 * Not the same memory with one mapping less: that would still be shared with
 * every child to come. The alias stays until nothing leads to it: a thread that
 * ends in between leaves what can be done again from the beginning.
 */
int alias_end(uintptr_t start, uintptr_t end)
{
	struct page *first = page_find(start);
	uint8_t *alias = page_alias(first);
	int fd = memory_with((uintptr_t)alias, end - start);
	int ret;

	if (fd < 0)
		return fd;
	note_changing(start, end, true);
	ret = put_in_place(start, end - start, first->prot, MAP_PRIVATE, fd);
	if (ret == 0)
		note_origin(start, end, fd);
	close(fd);
	if (ret < 0)
		return ret;
	list_remove(start, end);
	munmap(alias, end - start);
	return 0;
}
