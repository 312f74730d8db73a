/* SPDX-License-Identifier: MIT */
/*
 * Every kind of memory that code runs in, patched in every way: on one page, and
 * across two. At the end it has the protection that it had.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/tests/text_library.h"
#include "patchcore/tests/text_pages.h"

#define HUGE_SIZE ((size_t)2 << 20)
/* Where the functions are, from the start of the first of two pages. */
#define INSIDE 256
#define ACROSS (CODE_PAGE - 2)

/* Two pages with functions on them, ready to run. */
struct kind {
	const char *name;
	uint8_t *(*map)(void);
	int prot;
};

static void put_functions(uint8_t *at)
{
	code_put(at + INSIDE, CODE_OLD);
	code_put(at + ACROSS, CODE_OLD);
}

static uint8_t *protect(uint8_t *at, size_t len, int prot)
{
	MUST(mprotect(at, len, prot) == 0);
	return at;
}

static uint8_t *map_anonymous(int prot)
{
	uint8_t *at = code_map(2, RW);

	put_functions(at);
	return protect(at, 2 * CODE_PAGE, prot);
}

static uint8_t *map_plain(void)
{
	return map_anonymous(RX);
}

static uint8_t *map_jit(void)
{
	return map_anonymous(RWX);
}

static uint8_t *map_execute_only(void)
{
	return map_anonymous(PROT_EXEC);
}

/* --- Files ----------------------------------------------------------------------------------- */

static char path[] = "/tmp/test_text.XXXXXX";
static int file;

/* Three pages, of which the last two are mapped. */
static void make_file(void)
{
	static uint8_t page[3 * CODE_PAGE];

	memset(page, CODE_NOP, sizeof(page));
	put_functions(page + CODE_PAGE);
	file = mkstemp(path);
	MUST(file >= 0 && write(file, page, sizeof(page)) == (ssize_t)sizeof(page));
	unlink(path);
}

static void file_must_be_as_it_was(void)
{
	uint8_t page[CODE_PAGE], function[CODE_LEN + 1];

	if (file <= 0)
		return;
	code_put(function, CODE_OLD);
	MUST(pread(file, page, sizeof(page), CODE_PAGE) == (ssize_t)sizeof(page));
	MUST(memcmp(page + INSIDE, function, sizeof(function)) == 0);
}

static uint8_t *map_file(void)
{
	uint8_t *at;

	make_file();
	at = mmap(NULL, 2 * CODE_PAGE, RX, MAP_PRIVATE, file, CODE_PAGE);
	if (at == MAP_FAILED)
		child_skip("nothing in the folder for temporary files may be executed");
	return at;
}

static uint8_t *map_library(void)
{
	static struct text_library library;
	uint8_t code[CODE_LEN + 1], *page;

	library_copy(&library);
	library_open(&library);
	unlink(library.path);
	/* Two pages of code, wherever that function lies. */
	page = library.fn - ((uintptr_t)library.fn & (CODE_PAGE - 1));
	MUST(code_prot(page) == RX && code_prot(page + CODE_PAGE) == RX);
	code_put(code, CODE_OLD);
	MUST(pc_text_open(page, 2 * CODE_PAGE) == 0);
	memcpy(page + INSIDE, code, sizeof(code));
	memcpy(page + ACROSS, code, sizeof(code));
	MUST(pc_text_close(page, 2 * CODE_PAGE) == 0);
	return page;
}

/* --- Huge pages ------------------------------------------------------------------------------ */

static uint8_t *map_huge(void)
{
	uint8_t *at = mmap(NULL, HUGE_SIZE, RW,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

	if (at == MAP_FAILED)
		child_skip("no huge pages are set aside here");
	put_functions(at + 8 * CODE_PAGE);
	return protect(at, HUGE_SIZE, RX) + 8 * CODE_PAGE;
}

/* Anonymous memory that the kernel makes huge pages of. */
static uint8_t *map_transparent(void)
{
	uint8_t *area = mmap(NULL, 2 * HUGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;

	MUST(area != MAP_FAILED);
	at = area + (-(uintptr_t)area & (HUGE_SIZE - 1));
	if (madvise(at, HUGE_SIZE, MADV_HUGEPAGE) < 0)
		child_skip("no transparent huge pages");
	memset(at, CODE_NOP, HUGE_SIZE);
	put_functions(at + 8 * CODE_PAGE);
	return protect(at, HUGE_SIZE, RX) + 8 * CODE_PAGE;
}

static const struct kind kinds[] = {
	{ "private memory", map_plain, RX },
	{ "JIT memory", map_jit, RWX },
	{ "execute-only memory", map_execute_only, PROT_EXEC },
	{ "file", map_file, RX },
	{ "shared library", map_library, RX },
	{ "huge pages", map_huge, RX },
	{ "transparent huge pages", map_transparent, RX },
};

/* --- Every way ------------------------------------------------------------------------------- */

static int begin(enum pc_text_way way, uint8_t *at)
{
	if (way == PC_TEXT_OPEN)
		return pc_text_open(at, 2 * CODE_PAGE);
	return way == PC_TEXT_ALIAS ? pc_text_alias(at, 2 * CODE_PAGE) : 0;
}

static int end(enum pc_text_way way, uint8_t *at)
{
	return way == PC_TEXT_PROTECT ? 0 : pc_text_close(at, 2 * CODE_PAGE);
}

static void must_patch(uint8_t *at)
{
	static const uint32_t numbers[] = { CODE_NEW, CODE_OLD, CODE_NEW };
	uint8_t code[CODE_LEN];

	for (size_t i = 0; i < LENGTH(numbers); i++) {
		code_load(code, numbers[i]);
		MUST(pc_patch(at, code, sizeof(code)) == 0);
		MUST(code_run(at) == numbers[i]);
	}
}

static void must_be_way(uint8_t *at, enum pc_text_way expected)
{
	static const int runs_as[] = { [PC_TEXT_PROTECT] = 0, [PC_TEXT_OPEN] = PROT_WRITE };
	enum pc_text_way way = PC_TEXT_PROTECT;
	char reason[128] = "";

	MUST(pc_text_way(at + ACROSS, CODE_LEN, &way, reason, sizeof(reason)) == 0);
	MUST(way == expected && strlen(reason) > 10 && !strchr(reason, '\n'));
	if (way == PC_TEXT_ALIAS)
		MUST(!(code_prot(at) & PROT_WRITE));
	else
		MUST((code_prot(at) & runs_as[way]) == runs_as[way]);
}

static void every_way(const void *arg)
{
	const struct kind *kind = arg;
	uint8_t *at;

	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	at = kind->map();
	for (int way = PC_TEXT_PROTECT; way <= PC_TEXT_ALIAS; way++) {
		MUST(begin(way, at) == 0);
		must_be_way(at, way);
		must_patch(at + INSIDE);
		must_patch(at + ACROSS);
		MUST(end(way, at) == 0);
		for (size_t i = 0; i < 2; i++)
			MUST(code_prot(at + i * CODE_PAGE) == kind->prot);
		MUST(code_prot(at + CODE_PAGE) == kind->prot);
		file_must_be_as_it_was();
		MUST(code_run(at + INSIDE) == CODE_NEW && code_run(at + ACROSS) == CODE_NEW);
		/* From the beginning, for the next way. */
		must_patch(at + INSIDE);
	}
}

static void run_kind(void **state)
{
	child_must_pass(every_way, *state);
}

/* A huge page is opened whole, and closed when its last part is. */
static void huge_parts(const void *arg)
{
	uint8_t *at;

	(void)arg;
	start_library();
	at = map_huge();
	MUST(pc_text_open(at, 1) == 0);
	MUST(code_prot(at + 100 * CODE_PAGE) == RWX);
	MUST(pc_text_open(at + 100 * CODE_PAGE, 1) == 0);
	MUST(pc_text_close(at, 1) == 0);
	MUST(code_prot(at) == RWX);
	MUST(pc_text_close(at + 100 * CODE_PAGE, 1) == 0);
	MUST(code_prot(at) == RX && code_prot(at + 100 * CODE_PAGE) == RX);
	MUST(pc_text_close(at, 1) == -ENOENT);
}

int main(void)
{
	struct CMUnitTest tests[LENGTH(kinds) + 1];

	for (size_t i = 0; i < LENGTH(kinds); i++)
		tests[i] = (struct CMUnitTest){ kinds[i].name, run_kind, NULL, NULL,
						(void *)(uintptr_t)&kinds[i] };
	tests[LENGTH(kinds)] = (struct CMUnitTest)child_unit_test(huge_parts);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
