/* SPDX-License-Identifier: MIT */
/* Pages are made writable and get their protection back. */
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

#include "patchcore/tests/text_pages.h"

/* --- Protection comes back ------------------------------------------------------------------- */

static void patched(const void *arg)
{
	static const int prot[] = { RX, RO, RWX, RW, RX };

	(void)arg;
	start_library();
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

/* Refused for another reason, the page is closed all the same. */
static void refused(const void *arg)
{
	static const int prot[] = { RX };
	uint8_t *at;

	(void)arg;
	start_library();
	lay_out((const int[]){ RW }, 1);
	at = page_at(0);
	*at = CODE_INT3;
	MUST(mprotect(at, CODE_PAGE, RX) == 0);
	MUST(patch(at) == -EAGAIN);
	must_be(prot);
}

static void opened(const void *arg)
{
	static const int prot[] = { RX, RO, RWX, RW, PROT_NONE };
	static const int open[] = { RWX, RW, RWX, RW, PROT_WRITE };
	int now[LENGTH(prot)];

	(void)arg;
	start_library();
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

/* One byte on either side of a boundary is two pages. */
static void by_pages(const void *arg)
{
	static const int prot[] = { RX, RX, RX };

	(void)arg;
	start_library();
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

static void nested(const void *arg)
{
	static const int prot[] = { RX }, open[] = { RWX };

	(void)arg;
	start_library();
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

static void overlapping(const void *arg)
{
	static const int prot[] = { RX, RO, RX, RX };

	(void)arg;
	start_library();
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

/* What the caller set meanwhile is what comes back the next time. */
static void changed_meanwhile(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(open_pages(0, 1) == 0 && close_pages(0, 1) == 0);
	MUST(mprotect(page_at(0), CODE_PAGE, RO) == 0);
	MUST(open_pages(0, 1) == 0);
	must_be((const int[]){ RW });
	MUST(close_pages(0, 1) == 0);
	must_be((const int[]){ RO });
}

/* --- This program's own code ----------------------------------------------------------------- */

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
	start_library();
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
	start_library();
	lay_out((const int[]){ RX, NO }, 2);
	for (int i = 0; i < 100; i++) {
		MUST(patch(page_at(0)) == 0);
		MUST(patch(page_at(1)) == -EFAULT);
	}
	MUST(dup(0) == fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(patched),
		child_unit_test(refused),
		child_unit_test(opened),
		child_unit_test(by_pages),
		child_unit_test(nested),
		child_unit_test(overlapping),
		child_unit_test(changed_meanwhile),
		cmocka_unit_test(test_own_code),
		child_unit_test(leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
