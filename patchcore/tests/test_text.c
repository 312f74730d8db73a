/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define RO PROT_READ
#define RW (PROT_READ | PROT_WRITE)
#define NO (-1) /* not mapped */

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* --- A stretch of pages ----------------------------------------------------------------- */

static uint8_t *base;
static size_t pages;

static void lay_out(const int *prot, size_t count)
{
	base = code_map(count, RW);
	pages = count;
	for (size_t i = 0; i < count; i++) {
		uint8_t *at = base + i * CODE_PAGE;

		MUST((prot[i] == NO ? munmap(at, CODE_PAGE) : mprotect(at, CODE_PAGE, prot[i])) ==
		     0);
	}
}

static void must_be(const int *prot)
{
	for (size_t i = 0; i < pages; i++) {
		int now = code_prot(base + i * CODE_PAGE);

		if (now != prot[i])
			dprintf(2, "page %zu: %d, not %d\n", i, now, prot[i]);
		MUST(now == prot[i]);
	}
}

static void *page_at(size_t i)
{
	return base + i * CODE_PAGE;
}

static int open_pages(size_t first, size_t count)
{
	return pc_text_open(page_at(first), count * CODE_PAGE);
}

static int close_pages(size_t first, size_t count)
{
	return pc_text_close(page_at(first), count * CODE_PAGE);
}

static int patch(void *at)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };

	return pc_patch(at, bytes, sizeof(bytes));
}

/* A page that can never be written: of a file that is open for reading only. */
static void map_read_only_file(size_t page)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	MUST(fd >= 0);
	MUST(mmap(page_at(page), CODE_PAGE, RX, MAP_SHARED | MAP_FIXED, fd, 0) == page_at(page));
	close(fd);
}

/* --- Protection comes back ---------------------------------------------------------------- */

static void patched(const void *arg)
{
	static const int prot[] = { RX, RO, RWX, RW, RX };

	(void)arg;
	conf_use_none();
	lay_out(prot, LENGTH(prot));
	for (size_t i = 0; i < LENGTH(prot); i++) {
		MUST(patch((uint8_t *)page_at(i) + 64) == 0);
		must_be(prot);
	}
	/* Where one protection ends and another begins. */
	for (size_t i = 1; i < LENGTH(prot); i++) {
		int ret = patch((uint8_t *)page_at(i) - 2);

		if (ret == -ENOTSUP)
			child_skip("no straddlers here");
		MUST(ret == 0);
		must_be(prot);
	}
}

static void test_patched(void **state)
{
	(void)state;
	child_must_pass(patched, NULL);
}

/* Refused for another reason, the page is closed all the same. */
static void refused(const void *arg)
{
	static const int prot[] = { RX };
	uint8_t *at;

	(void)arg;
	conf_use_none();
	lay_out((const int[]){ RW }, 1);
	at = page_at(0);
	*at = CODE_INT3;
	MUST(mprotect(at, CODE_PAGE, RX) == 0);
	MUST(patch(at) == -EAGAIN);
	must_be(prot);
}

static void test_refused(void **state)
{
	(void)state;
	child_must_pass(refused, NULL);
}

static void opened(const void *arg)
{
	static const int prot[] = { RX, RO, RWX, RW, PROT_NONE };
	static const int open[] = { RWX, RW, RWX, RW, PROT_WRITE };
	int now[LENGTH(prot)];

	(void)arg;
	lay_out(prot, LENGTH(prot));
	for (size_t i = 0; i < LENGTH(prot); i++) {
		memcpy(now, prot, sizeof(now));
		now[i] = open[i];
		MUST(pc_text_open((uint8_t *)page_at(i) + 17, 1) == 0);
		must_be(now);
		MUST(pc_text_close((uint8_t *)page_at(i) + 17, 1) == 0);
		must_be(prot);
	}
	MUST(open_pages(0, LENGTH(prot)) == 0);
	must_be(open);
	MUST(close_pages(0, LENGTH(prot)) == 0);
	must_be(prot);
}

static void test_opened(void **state)
{
	(void)state;
	child_must_pass(opened, NULL);
}

/* One byte on either side of a boundary is two pages. */
static void by_pages(const void *arg)
{
	static const int prot[] = { RX, RX, RX };

	(void)arg;
	lay_out(prot, LENGTH(prot));
	MUST(pc_text_open((uint8_t *)page_at(1) - 1, 2) == 0);
	must_be((const int[]){ RWX, RWX, RX });
	MUST(pc_text_close((uint8_t *)page_at(1) - 1, 2) == 0);
	MUST(pc_text_open(page_at(1), CODE_PAGE) == 0);
	must_be((const int[]){ RX, RWX, RX });
	MUST(pc_text_close(page_at(1), CODE_PAGE) == 0);
	MUST(pc_text_open(page_at(1), CODE_PAGE + 1) == 0);
	must_be((const int[]){ RX, RWX, RWX });
	MUST(pc_text_close(page_at(1), CODE_PAGE + 1) == 0);
	must_be(prot);
}

static void test_by_pages(void **state)
{
	(void)state;
	child_must_pass(by_pages, NULL);
}

static void nested(const void *arg)
{
	static const int prot[] = { RX }, open[] = { RWX };

	(void)arg;
	conf_use_none();
	lay_out(prot, LENGTH(prot));
	for (int i = 0; i < 3; i++) {
		MUST(open_pages(0, 1) == 0);
		must_be(open);
		MUST(patch(page_at(0)) == 0);
		must_be(open);
	}
	for (int i = 0; i < 3; i++) {
		must_be(open);
		MUST(close_pages(0, 1) == 0);
	}
	must_be(prot);
	MUST(close_pages(0, 1) == -ENOENT);
	MUST(patch(page_at(0)) == 0);
	must_be(prot);
}

static void test_nested(void **state)
{
	(void)state;
	child_must_pass(nested, NULL);
}

static void overlapping(const void *arg)
{
	static const int prot[] = { RX, RO, RX, RX };

	(void)arg;
	lay_out(prot, LENGTH(prot));
	MUST(open_pages(0, 2) == 0);
	MUST(open_pages(1, 2) == 0);
	must_be((const int[]){ RWX, RW, RWX, RX });
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RW, RWX, RX });
	MUST(close_pages(0, 2) == -ENOENT);
	must_be((const int[]){ RX, RW, RWX, RX });
	MUST(open_pages(0, 4) == 0);
	MUST(close_pages(1, 2) == 0);
	must_be((const int[]){ RWX, RW, RWX, RWX });
	MUST(close_pages(0, 4) == 0);
	must_be(prot);
}

static void test_overlapping(void **state)
{
	(void)state;
	child_must_pass(overlapping, NULL);
}

/* What the caller set meanwhile is what comes back the next time. */
static void changed_meanwhile(const void *arg)
{
	(void)arg;
	lay_out((const int[]){ RX }, 1);
	MUST(open_pages(0, 1) == 0 && close_pages(0, 1) == 0);
	MUST(mprotect(page_at(0), CODE_PAGE, RO) == 0);
	MUST(open_pages(0, 1) == 0);
	must_be((const int[]){ RW });
	MUST(close_pages(0, 1) == 0);
	must_be((const int[]){ RO });
}

static void test_changed_meanwhile(void **state)
{
	(void)state;
	child_must_pass(changed_meanwhile, NULL);
}

/* --- What is refused ------------------------------------------------------------------------ */

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

static void test_bad_ranges(void **state)
{
	(void)state;
	child_must_pass(bad_ranges, NULL);
}

static void holes(const void *arg)
{
	static const int layouts[][4] = {
		{ NO, RX, RO, RX }, { RX, NO, RX, RX }, { RX, RO, NO, RX },
		{ RO, RX, RX, NO }, { NO, RX, RX, NO }, { RX, NO, NO, RX },
	};

	(void)arg;
	for (size_t i = 0; i < LENGTH(layouts); i++) {
		lay_out(layouts[i], LENGTH(layouts[i]));
		MUST(open_pages(0, LENGTH(layouts[i])) == -EFAULT);
		must_be(layouts[i]);
		MUST(close_pages(0, LENGTH(layouts[i])) == -ENOENT);
	}
}

static void test_holes(void **state)
{
	(void)state;
	child_must_pass(holes, NULL);
}

/* Where it fails in the middle, what was opened before it is closed again. */
static void refused_in_the_middle(const void *arg)
{
	static const int prot[] = { RX, RO, RX, RWX, RX };

	(void)arg;
	lay_out(prot, LENGTH(prot));
	map_read_only_file(2);
	MUST(open_pages(0, LENGTH(prot)) == -EACCES);
	must_be(prot);
	MUST(close_pages(0, 1) == -ENOENT);
	MUST(patch((uint8_t *)page_at(2) - 2) == -EACCES);
	MUST(patch(page_at(2)) == -EACCES);
	must_be(prot);
}

static void test_refused_in_the_middle(void **state)
{
	(void)state;
	child_must_pass(refused_in_the_middle, NULL);
}

/* A failure takes nothing away from those who have the pages open. */
static void refused_to_another(const void *arg)
{
	(void)arg;
	lay_out((const int[]){ RX, RX, RX }, 3);
	map_read_only_file(1);
	MUST(open_pages(0, 1) == 0 && open_pages(2, 1) == 0);
	MUST(open_pages(0, 3) == -EACCES);
	must_be((const int[]){ RWX, RX, RWX });
	MUST(close_pages(0, 1) == 0 && close_pages(2, 1) == 0);
	must_be((const int[]){ RX, RX, RX });
}

static void test_refused_to_another(void **state)
{
	(void)state;
	child_must_pass(refused_to_another, NULL);
}

/* A page that the failure did not reach has what its owner gave it since. */
static void refused_before(const void *arg)
{
	(void)arg;
	lay_out((const int[]){ RX, RX }, 2);
	MUST(open_pages(1, 1) == 0 && close_pages(1, 1) == 0);
	map_read_only_file(0);
	MUST(mprotect(page_at(1), CODE_PAGE, RO) == 0);
	MUST(open_pages(0, 2) == -EACCES);
	must_be((const int[]){ RX, RO });
}

static void test_refused_before(void **state)
{
	(void)state;
	child_must_pass(refused_before, NULL);
}

/* The system forbids pages that are writable and executable. */
static void must_be_denied(void)
{
	static const int prot[] = { RX, RX };
	uint8_t before[2 * CODE_PAGE];

	memcpy(before, base, sizeof(before));
	MUST(patch((uint8_t *)page_at(0) + 64) == -EACCES);
	MUST(patch((uint8_t *)page_at(1) - 2) == -EACCES);
	MUST(open_pages(0, 2) == -EACCES);
	MUST(close_pages(0, 2) == -ENOENT);
	must_be(prot);
	MUST(memcmp(base, before, sizeof(before)) == 0);
}

static void denied_by_kernel(const void *arg)
{
	(void)arg;
	lay_out((const int[]){ RX, RX }, 2);
	/* PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN */
	if (prctl(65, 1, 0, 0, 0) < 0)
		child_skip("Linux before 6.3 has no PR_SET_MDWE");
	must_be_denied();
}

static void test_denied_by_kernel(void **state)
{
	(void)state;
	child_must_pass(denied_by_kernel, NULL);
}

static void denied_by_filter(const void *arg)
{
	(void)arg;
	lay_out((const int[]){ RX, RX }, 2);
	child_filter(SYS_mprotect, 2, PROT_WRITE | PROT_EXEC, SECCOMP_RET_ERRNO | EPERM);
	must_be_denied();
}

static void test_denied_by_filter(void **state)
{
	(void)state;
	child_must_pass(denied_by_filter, NULL);
}

/* --- This program's own code ------------------------------------------------------------------ */

uint32_t own_code(void);
uint32_t own_straddler(void);

/* A straddler begins two bytes before a boundary. */
__asm__(".pushsection .text.own_code, \"ax\", @progbits\n"
	".balign 64\n"
	"own_code:\n"
	"	movl $0x11121314, %eax\n"
	"	ret\n"
	".balign 64\n"
	".skip 62, 0x90\n"
	"own_straddler:\n"
	"	movl $0x11121314, %eax\n"
	"	ret\n"
	".popsection\n");

static void must_change_own(uint32_t (*fn)(void))
{
	uint8_t *at = (uint8_t *)(uintptr_t)fn, code[CODE_LEN];

	code_load(code, CODE_NEW);
	MUST(fn() == CODE_OLD && code_prot(at) == RX);
	MUST(pc_patch(at, code, sizeof(code)) == 0);
	MUST(fn() == CODE_NEW && code_prot(at) == RX);
}

static void own(const void *arg)
{
	(void)arg;
	conf_use_none();
	must_change_own(own_code);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) == 0)
		must_change_own(own_straddler);
}

static void test_own_code(void **state)
{
	(void)state;
	child_must_pass(own, NULL);
	/* The file is as it was, and so is this process. */
	assert_int_equal(own_code(), CODE_OLD);
}

/* It reads a file each time, and must give back what that costs. */
static void leaves_nothing(const void *arg)
{
	int fd = dup(0);

	(void)arg;
	close(fd);
	conf_use_none();
	lay_out((const int[]){ RX, NO }, 2);
	for (int i = 0; i < 100; i++) {
		MUST(patch(page_at(0)) == 0);
		MUST(patch(page_at(1)) == -EFAULT);
	}
	MUST(dup(0) == fd);
}

static void test_leaves_nothing(void **state)
{
	(void)state;
	child_must_pass(leaves_nothing, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patched),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_opened),
		cmocka_unit_test(test_by_pages),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_overlapping),
		cmocka_unit_test(test_changed_meanwhile),
		cmocka_unit_test(test_bad_ranges),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_refused_in_the_middle),
		cmocka_unit_test(test_refused_to_another),
		cmocka_unit_test(test_refused_before),
		cmocka_unit_test(test_denied_by_kernel),
		cmocka_unit_test(test_denied_by_filter),
		cmocka_unit_test(test_own_code),

		cmocka_unit_test(test_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
