/* SPDX-License-Identifier: MIT */
/*
 * A stretch of pages, each with its own protection, and what becomes of it. For
 * cmocka tests, which include cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_TEXT_PAGES_H
#define PATCHCORE_TESTS_TEXT_PAGES_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define RO PROT_READ
#define RW (PROT_READ | PROT_WRITE)
#define NO (-1) /* not mapped */

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static uint8_t *base;
static size_t pages;

static inline void lay_out(const int *prot, size_t count)
{
	base = code_map(count, RW);
	pages = count;
	for (size_t i = 0; i < count; i++) {
		uint8_t *at = base + i * CODE_PAGE;

		MUST((prot[i] == NO ? munmap(at, CODE_PAGE) : mprotect(at, CODE_PAGE, prot[i])) ==
		     0);
	}
}

static inline void must_be(const int *prot)
{
	for (size_t i = 0; i < pages; i++) {
		int now = code_prot(base + i * CODE_PAGE);

		if (now != prot[i])
			dprintf(2, "page %zu: %d, not %d\n", i, now, prot[i]);
		MUST(now == prot[i]);
	}
}

static inline void *page_at(size_t i)
{
	return base + i * CODE_PAGE;
}

static inline int open_pages(size_t first, size_t count)
{
	return pc_text_open(page_at(first), count * CODE_PAGE);
}

static inline int close_pages(size_t first, size_t count)
{
	return pc_text_close(page_at(first), count * CODE_PAGE);
}

static inline int patch(void *at)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };

	return pc_patch(at, bytes, sizeof(bytes));
}

/*
 * A page that may not be written to, since it is shared, and cannot: of a file that is open for
 * reading only.
 */
static inline void map_read_only_file(size_t page)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	MUST(fd >= 0);
	MUST(mmap(page_at(page), CODE_PAGE, RX, MAP_SHARED | MAP_FIXED, fd, 0) == page_at(page));
	close(fd);
}

/* With no machine.conf. */
static inline void start_library(void)
{
	conf_use_none();
	MUST(pc_init() == 0);
}

#endif
