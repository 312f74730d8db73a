/* SPDX-License-Identifier: MIT */
/*
 * Costs that must not grow: with the mappings of the process, with its aliases, with pages that
 * were open once, or with the length of a range that is refused. Counted are bytes that were read
 * and pages that were looked up, not seconds.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/pages/text_page.h"
#include "patchcore/site/table.h"
#include "patchcore/tests/text_fork.h"

#define MANY	  10000
#define FEW_BYTES 2000 /* that one operation may read */

/* The linker hands these calls to us: see local.mk. */
struct entry *__real_table_find(struct table *table, uintptr_t addr);
struct entry *__wrap_table_find(struct table *table, uintptr_t addr);

static size_t finds, finds_allowed = SIZE_MAX;

struct entry *__wrap_table_find(struct table *table, uintptr_t addr)
{
	MUST(finds++ < finds_allowed);
	return __real_table_find(table, addr);
}

/* All bytes that this thread has read by system calls. */
static unsigned long bytes_read(void)
{
	FILE *file = fopen("/proc/thread-self/io", "re");
	unsigned long bytes;

	if (!file)
		child_skip("the kernel does not count what is read");
	MUST(fscanf(file, "rchar: %lu", &bytes) == 1);
	fclose(file);
	return bytes;
}

/* Linux 6.11: before, all mappings are read. */
static void need_queries(void)
{
	uint64_t query[13] = { sizeof(query), 0x10 };
	int fd = open("/proc/self/maps", O_RDONLY);

	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, sizeof(query)), query) < 0)
		child_skip("the kernel tells all mappings or none");
	close(fd);
}

static void start_counting(void)
{
	need_queries();
	start_with_threads();
}

/* Mappings that cannot be one. */
static void map_many(void)
{
	for (int i = 0; i < MANY; i++)
		MUST(mmap(NULL, CODE_PAGE, i % 2 ? RO : RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		     MAP_FAILED);
}

static void must_read_little(int (*operation)(void))
{
	unsigned long before, own;

	MUST(operation() == 0);
	before = bytes_read();
	own = bytes_read() - before;
	before = bytes_read();
	MUST(operation() == 0);
	MUST(bytes_read() - before - own < FEW_BYTES);
}

/* --- Mappings --------------------------------------------------------------------------------- */

static int change(void)
{
	static uint32_t number = 7;

	return try_patch(fn, number++);
}

static int open_and_close(void)
{
	return open_pages(0, 3) || close_pages(0, 3);
}

static int alias_and_close(void)
{
	return pc_text_alias(base, 3 * CODE_PAGE) || close_pages(0, 3);
}

static int ask(void)
{
	enum pc_text_way way;

	return pc_text_way(base, 1, &way, NULL, 0);
}

static int fork_with_alias(void)
{
	pid_t pid;

	MUST(pc_text_alias(base, 3 * CODE_PAGE) == 0);
	pid = fork();
	if (pid == 0) {
		must_patch(fn, CODE_NEW);
		_exit(0);
	}
	must_end_well(pid);
	return close_pages(0, 3);
}

static int (*const operations[])(void) = {
	change, open_and_close, alias_and_close, ask, fork_with_alias,
};

static void mappings(const void *arg)
{
	(void)arg;
	start_counting();
	map_many();
	for (size_t i = 0; i < LENGTH(operations); i++)
		must_read_little(operations[i]);
}

/* --- In a child ------------------------------------------------------------------------------- */

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Of a process that had threads, where the dynamic linker cannot be asked. */
static void in_child(const void *arg)
{
	size_t size = (size_t)4096 * CODE_PAGE, alone;
	pthread_t thread;
	uint8_t *once;
	pid_t pid;

	(void)arg;
	start_counting();
	MUST(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
	map_many();
	once = mmap(NULL, size, RX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(change() == 0);
	finds = 0;
	MUST(change() == 0);
	alone = finds;
	MUST(once != MAP_FAILED && pc_text_open(once, size) == 0 && pc_text_close(once, size) == 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < LENGTH(operations); i++)
			must_read_little(operations[i]);
		finds = 0;
		MUST(change() == 0 && finds <= alone + 10);
		_exit(0);
	}
	must_end_well(pid);
}

/* --- Aliases ---------------------------------------------------------------------------------- */

static int alias_next(void)
{
	static size_t next;

	return pc_text_alias(page_at(next++), 1);
}

/* Page by page, each costs what the first one did. */
static void aliases(const void *arg)
{
	enum {
		COUNT = 500
	};
	size_t first;

	(void)arg;
	start_counting();
	base = code_map(COUNT, RX);
	pages = COUNT;
	MUST(alias_next() == 0);
	finds = 0;
	MUST(alias_next() == 0);
	first = finds;
	for (size_t i = 2; i < COUNT - 2; i++)
		MUST(alias_next() == 0);
	finds = 0;
	must_read_little(alias_next);
	MUST(finds <= 2 * first);
}

/* --- Pages that come and go ------------------------------------------------------------------- */

/* As a JIT makes them: at addresses that are new each time. */
static void forgotten(const void *arg)
{
	enum {
		COUNT = 2000
	};
	size_t before, first = 0;

	(void)arg;
	start_library();
	base = code_map(COUNT, RX);
	pages = COUNT;
	before = text_pages.count;
	for (size_t i = 0; i < COUNT; i++) {
		finds = 0;
		MUST((i % 2 ? open_pages(i, 1) : pc_text_alias(page_at(i), 1)) == 0);
		if (i % 3)
			MUST(close_pages(i, 1) == 0);
		MUST(pc_forget(page_at(i), CODE_PAGE) == 0 && text_pages.count == before);
		MUST(close_pages(i, 1) == -ENOENT);
		first = i < 6 && finds > first ? finds : first;
		MUST(finds <= first);
	}
}

/* --- Ranges ----------------------------------------------------------------------------------- */

static void must_refuse_at_once(void *at, size_t len, int error)
{
	enum pc_text_way way;

	finds = 0;
	finds_allowed = 1000;
	MUST(pc_text_open(at, len) == error && pc_text_open_shared(at, len) == error);
	MUST(pc_text_alias(at, len) == error && pc_text_close(at, len) == -ENOENT);
	MUST(pc_text_way(at, len, &way, NULL, 0) == error && way == PC_TEXT_PROTECT);
	finds_allowed = SIZE_MAX;
}

/* Not mapped, but for its ends; and more addresses than there can be entries for. */
static void ranges(const void *arg)
{
	size_t size = (size_t)1 << 43;
	uint8_t *at;

	(void)arg;
	start_library();
	at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		child_skip("no range as long as that can be had");
	must_refuse_at_once(at, size, -ENOMEM);
	MUST(munmap(at + CODE_PAGE, size - 2 * CODE_PAGE) == 0);
	must_refuse_at_once(at, size, -EFAULT);
	MUST(pc_text_open(at, 1) == 0);
	must_refuse_at_once(at, size, -EFAULT);
	MUST(pc_text_close(at, 1) == 0);
	MUST(munmap(at, CODE_PAGE) == 0);
	must_refuse_at_once(at, size, -EFAULT);
	MUST(pc_fini() == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(mappings),  child_unit_test(in_child), child_unit_test(aliases),
		child_unit_test(forgotten), child_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
