/* SPDX-License-Identifier: MIT */
/* What cannot be written to stays as it was, and it is said why. */
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
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/tests/text_pages.h"

/* --- What is refused ------------------------------------------------------------------------- */

static void bad_ranges(const void *arg)
{
	static const struct {
		uintptr_t addr;
		size_t len;
	} wraps[] = {
		{ UINTPTR_MAX, 1 },	     { UINTPTR_MAX, 2 },
		{ UINTPTR_MAX - 1, 2 },	     { CODE_PAGE, UINTPTR_MAX },
		{ CODE_PAGE, SIZE_MAX - 1 }, { UINTPTR_MAX - CODE_PAGE, CODE_PAGE + 2 },
	};

	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(pc_text_open(base, 0) == -EINVAL);
	MUST(pc_text_close(base, 0) == -EINVAL);
	for (size_t i = 0; i < LENGTH(wraps); i++) {
		MUST(pc_text_open((void *)wraps[i].addr, wraps[i].len) == -EINVAL);
		MUST(pc_text_close((void *)wraps[i].addr, wraps[i].len) == -EINVAL);
	}
	MUST(pc_text_open(NULL, 1) == -EFAULT);
	MUST(pc_text_close(NULL, 1) == -ENOENT);
	MUST(close_pages(0, 1) == -ENOENT);
	must_be((const int[]){ RX });
}

static void holes(const void *arg)
{
	static const int layouts[][4] = {
		{ NO, RX, RO, RX }, { RX, NO, RX, RX }, { RX, RO, NO, RX },
		{ RO, RX, RX, NO }, { NO, RX, RX, NO }, { RX, NO, NO, RX },
	};

	(void)arg;
	start_library();
	for (size_t i = 0; i < LENGTH(layouts); i++) {
		lay_out(layouts[i], LENGTH(layouts[i]));
		MUST(open_pages(0, LENGTH(layouts[i])) == -EFAULT);
		must_be(layouts[i]);
		MUST(close_pages(0, LENGTH(layouts[i])) == -ENOENT);
	}
}

/* Where it fails in the middle, what was opened before it is closed again. */
static void refused_in_the_middle(const void *arg)
{
	static const int prot[] = { RX, RO, RX, RWX, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	map_read_only_file(2);
	MUST(open_pages(0, LENGTH(prot)) == -EPERM);
	must_be(prot);
	MUST(close_pages(0, 1) == -ENOENT);
	MUST(patch((uint8_t *)page_at(2) - 2) == -EPERM);
	MUST(patch(page_at(2)) == -EPERM);
	must_be(prot);
}

/* A failure leaves pages open for the callers that have opened them. */
static void refused_to_another(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX, RX }, 3);
	map_read_only_file(1);
	MUST(open_pages(0, 1) == 0 && open_pages(2, 1) == 0);
	MUST(open_pages(0, 3) == -EPERM);
	must_be((const int[]){ RWX, RX, RWX });
	MUST(close_pages(0, 1) == 0 && close_pages(2, 1) == 0);
	must_be((const int[]){ RX, RX, RX });
}

/* A page that the failure did not reach has what its owner gave it since. */
static void refused_before(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	MUST(open_pages(1, 1) == 0 && close_pages(1, 1) == 0);
	map_read_only_file(0);
	MUST(mprotect(page_at(1), CODE_PAGE, RO) == 0);
	MUST(open_pages(0, 2) == -EPERM);
	must_be((const int[]){ RX, RO });
}

/* The system forbids pages that are writable and executable. The reason names what does. */
static void must_be_denied(const char *error, const char *who)
{
	enum pc_text_way way = PC_TEXT_OPEN;
	char reason[128];

	static const int prot[] = { RX, RX };
	uint8_t before[2 * CODE_PAGE];

	memcpy(before, base, sizeof(before));
	MUST(patch((uint8_t *)page_at(0) + 64) == -EACCES);
	MUST(patch((uint8_t *)page_at(1) - 2) == -EACCES);
	MUST(open_pages(0, 2) == -EACCES);
	MUST(close_pages(0, 2) == -ENOENT);
	MUST(pc_text_way(base, 2 * CODE_PAGE, &way, reason, sizeof(reason)) == -EACCES);
	MUST(way == PC_TEXT_PROTECT && strstr(reason, error) && strstr(reason, who));
	must_be(prot);
	MUST(memcmp(base, before, sizeof(before)) == 0);
}

static void denied_by_kernel(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	/* PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN */
	if (prctl(65, 1, 0, 0, 0) < 0)
		child_skip("Linux before 6.3 has no PR_SET_MDWE");
	must_be_denied("EACCES", "PR_SET_MDWE");
}

static void denied_by_filter(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	child_filter(SYS_mprotect, 2, PROT_WRITE | PROT_EXEC, SECCOMP_RET_ERRNO | EPERM);
	must_be_denied("EPERM", "seccomp");
}

/* --- Asked for the way ----------------------------------------------------------------------- */

static enum pc_text_way way_of(size_t first, size_t count)
{
	enum pc_text_way way = (enum pc_text_way)77;

	MUST(pc_text_way(page_at(first), count * CODE_PAGE, &way, NULL, 0) == 0);
	return way;
}

static void ways(const void *arg)
{
	static const int prot[] = { RX, RWX, RX, NO };
	enum pc_text_way way;
	char reason[128];

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(pc_text_way(page_at(2), CODE_PAGE + 1, &way, reason, sizeof(reason)) == -EFAULT);
	MUST(strstr(reason, "not mapped"));
	/* Cut short, and ended. */
	MUST(pc_text_way(page_at(3), 1, &way, reason, 5) == -EFAULT && strcmp(reason, "some") == 0);
	MUST(pc_text_way(base, 1, NULL, reason, sizeof(reason)) == -EINVAL);
	MUST(pc_text_way(base, 0, &way, reason, sizeof(reason)) == -EINVAL);
	MUST(pc_text_way(page_at(1), 1, &way, reason, sizeof(reason)) == 0);
	MUST(way == PC_TEXT_PROTECT && strstr(reason, "writable already"));
	MUST(way_of(0, 3) == PC_TEXT_PROTECT);
	must_be(prot);
	/* The hole may be filled now: with the alias. */
	pages--;
	MUST(open_pages(1, 1) == 0 && pc_text_alias(page_at(2), 1) == 0);
	MUST(way_of(0, 3) == PC_TEXT_PROTECT && way_of(1, 1) == PC_TEXT_OPEN);
	MUST(way_of(2, 1) == PC_TEXT_ALIAS && way_of(1, 2) == PC_TEXT_ALIAS);
	MUST(close_pages(1, 2) == 0);
	must_be(prot);
}

/* A file that is shorter than its mapping: a store behind its end would be a SIGBUS. */
static void behind_the_end(const void *arg)
{
	static const uint8_t code[5];
	int file = memfd_create("short", 0);
	enum pc_text_way way;
	uint8_t *at;

	(void)arg;
	start_library();
	MUST(file >= 0 && ftruncate(file, CODE_PAGE) == 0);
	at = mmap(NULL, 2 * CODE_PAGE, RX, MAP_PRIVATE, file, 0);
	if (at == MAP_FAILED)
		child_skip("memory files may not be run");
	MUST(pc_patch(at + CODE_PAGE, code, 5) == -EFAULT);
	MUST(pc_patch(at + CODE_PAGE - 3, code, 5) == -EFAULT);
	MUST(code_prot(at) == RX && code_prot(at + CODE_PAGE) == RX);
	MUST(pc_text_alias(at, 2 * CODE_PAGE) < 0 && code_prot(at) == RX);
	MUST(pc_patch(at + CODE_PAGE - 8, code, 5) == 0 && code_prot(at) == RX);
	MUST(pc_text_way(at, 1, &way, NULL, 0) == 0 && way == PC_TEXT_PROTECT);
	/* As for a loader that maps more than there is: only changes are refused. */
	MUST(pc_text_open(at, 2 * CODE_PAGE) == 0 && pc_text_close(at, 2 * CODE_PAGE) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(bad_ranges),
		child_unit_test(holes),
		child_unit_test(refused_in_the_middle),
		child_unit_test(refused_to_another),
		child_unit_test(refused_before),
		child_unit_test(denied_by_kernel),
		child_unit_test(denied_by_filter),
		child_unit_test(ways),
		child_unit_test(behind_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
