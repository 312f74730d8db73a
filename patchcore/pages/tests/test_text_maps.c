/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says is mapped: the same whether it is asked for single mappings (Linux 6.11) or
 * its text is read.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/pages/text.h"
#include "patchcore/tests/mappings.h"
#include "patchcore/tests/text_pages.h"

#define MAX 4096

/* --- What there is to see ------------------------------------------------------------------ */

static uint8_t *map_pages(size_t count, int prot, int flags, int fd, off_t at)
{
	uint8_t *got = mmap(NULL, count * CODE_PAGE, prot, flags, fd, at);

	MUST(got != MAP_FAILED);
	return got;
}

static int make_memory(const char *name, size_t count)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	MUST(fd >= 0 && ftruncate(fd, (off_t)(count * CODE_PAGE)) == 0);
	return fd;
}

/* Every protection, private and shared, files with long and with odd names, holes, a huge range. */
static void map_many_kinds(void)
{
	static const int prots[] = { PROT_NONE, RO, RW, RX, RWX, PROT_EXEC, PROT_WRITE };
	int fd = make_memory("of several\npages, and with (deleted) 7f0000000000-7f0000001000 rwxp",
			     64);
	char path[] = "/tmp/test_text_maps.XXXXXX/", name[512];
	int file;

	for (size_t i = 0; i < LENGTH(prots); i++) {
		map_pages(i + 1, prots[i], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		map_pages(i + 1, prots[i], MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		map_pages(2, prots[i], MAP_PRIVATE, fd, (off_t)(i * CODE_PAGE));
		map_pages(2, prots[i], MAP_SHARED, fd, (off_t)(i * 3 * CODE_PAGE));
	}
	path[strlen(path) - 1] = 0;
	MUST(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/%0200d", path, 1);
	file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(file >= 0 && ftruncate(file, 8 * CODE_PAGE) == 0);
	map_pages(3, RO, MAP_PRIVATE, file, 5 * CODE_PAGE);
	map_pages(3, RO, MAP_SHARED, file, 5 * CODE_PAGE);
	unlink(name);
	rmdir(path);
	map_pages((size_t)1 << 32, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (int i = 0; i < 300; i++)
		map_pages(1, i % 2 ? RO : RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* --- Both ways ------------------------------------------------------------------------------- */

struct all {
	struct mapping list[MAX];
	int count;
};

static int add_mapping(const struct mapping *map, void *arg)
{
	struct all *all = arg;

	MUST(all->count < MAX);
	all->list[all->count++] = *map;
	return 0;
}

static void list_mappings(struct all *all, uintptr_t start, uintptr_t end, enum mapping_kind kind,
			  bool text)
{
	all->count = 0;
	mappings_by_text = text;
	MUST(mappings_each(start, end, kind, add_mapping, all) == 0);
	mappings_by_text = false;
}

static bool are_same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end && a->prot == b->prot &&
	       a->shared == b->shared && origin_same(a->origin, b->origin);
}

static void must_be_same(uintptr_t start, uintptr_t end, enum mapping_kind kind)
{
	static struct all asked, read;

	list_mappings(&asked, start, end, kind, false);
	list_mappings(&read, start, end, kind, true);
	MUST(asked.count == read.count);
	for (int i = 0; i < asked.count; i++)
		MUST(are_same(&asked.list[i], &read.list[i]));
}

static void compare_both_ways(const void *arg)
{
	static struct all all;

	(void)arg;
	map_many_kinds();
	must_be_same(0, UINTPTR_MAX, MAPPING_ANY);
	must_be_same(0, UINTPTR_MAX, MAPPING_SHARED);
	list_mappings(&all, 0, UINTPTR_MAX, MAPPING_ANY, true);
	MUST(all.count > 350);
	for (int i = 0; i < all.count; i++) {
		const struct mapping *map = &all.list[i];

		must_be_same(map->start, map->end, MAPPING_ANY);
		must_be_same(map->start, map->start + 1, MAPPING_ANY);
		must_be_same(map->end - 1, map->end + 1, MAPPING_ANY);
		must_be_same(map->end, map->end + CODE_PAGE, MAPPING_ANY);
		must_be_same(map->start, UINTPTR_MAX, MAPPING_SHARED);
	}
}

/* Shared ones, and no others. */
static void list_shared_only(const void *arg)
{
	static struct all all;
	unsigned found = 0;

	(void)arg;
	map_many_kinds();
	list_mappings(&all, 0, UINTPTR_MAX, MAPPING_ANY, true);
	for (int i = 0; i < all.count; i++)
		found += all.list[i].shared;
	list_mappings(&all, 0, UINTPTR_MAX, MAPPING_SHARED, false);
	MUST(found > 10 && all.count == (int)found);
}

static int stop_at_third(const struct mapping *map, void *arg)
{
	int *seen = arg;

	MUST(map->end > map->start);
	return ++*seen == 3 ? -7 : 0;
}

static void stop_the_list(const void *arg)
{
	(void)arg;
	for (int text = 0; text < 2; text++) {
		int seen = 0;

		mappings_by_text = text;
		MUST(mappings_each(0, UINTPTR_MAX, MAPPING_ANY, stop_at_third, &seen) == -7);
		MUST(seen == 3);
	}
}

/* As a list, in order. */
static void read_a_list(const void *arg)
{
	static struct all all;

	(void)arg;
	map_many_kinds();
	list_mappings(&all, 0, UINTPTR_MAX, MAPPING_ANY, true);
	for (int text = 0; text < 2; text++) {
		struct mapping *list;
		int count;

		mappings_by_text = text;
		MUST(mappings_read(1, 2, &list) == 0 && !list);
		count = mappings_read(all.list[0].start, UINTPTR_MAX, &list);
		/* The list itself may need a mapping. */
		MUST(count >= all.count && (CHILD_ASAN || count <= all.count + 2));
		for (int i = 1; i < count; i++)
			MUST(list[i - 1].end <= list[i].start);
		free(list);
	}
}

static void tell_page_sizes(const void *arg)
{
	uint8_t *plain = map_pages(4, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *huge;

	(void)arg;
	huge = mmap(NULL, 2 << 20, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	for (int text = 0; text < 2; text++) {
		mappings_by_text = text;
		MUST(mapping_page_size((uintptr_t)plain + 5000) == CODE_PAGE);
		MUST(mapping_page_size(CODE_PAGE) == CODE_PAGE);
		if (huge != MAP_FAILED)
			MUST(mapping_page_size((uintptr_t)huge + 9000) == 2 << 20);
	}
}

/* --- What the kernel does not answer ---------------------------------------------------------- */

static void go_on_when_refused(const void *arg)
{
	static const struct rlimit none;
	static struct all all, before;

	(void)arg;
	list_mappings(&before, 0, UINTPTR_MAX, MAPPING_ANY, true);
	/* A filter of before it was there. */
	child_filter(SYS_ioctl, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	list_mappings(&all, 0, UINTPTR_MAX, MAPPING_ANY, false);
	MUST(all.count == before.count);
	child_filter(SYS_read, 0, 0, SECCOMP_RET_ERRNO | EIO);
	MUST(mappings_each(0, UINTPTR_MAX, MAPPING_ANY, add_mapping, &all) == -EACCES);
	setrlimit(RLIMIT_NOFILE, &none);
	MUST(mappings_each(0, UINTPTR_MAX, MAPPING_ANY, add_mapping, &all) == -EACCES);
	MUST(mapping_page_size((uintptr_t)&none) == CODE_PAGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(compare_both_ways), child_unit_test(list_shared_only),
		child_unit_test(stop_the_list),	    child_unit_test(read_a_list),
		child_unit_test(tell_page_sizes),   child_unit_test(go_on_when_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
