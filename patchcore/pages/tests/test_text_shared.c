/* SPDX-License-Identifier: MIT */
/* Code that others see, too: shared mappings, which are changed only when asked for. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/call/call_form.h"
#include "patchcore/merge.h"
#include "patchcore/tests/text_pages.h"

#define PAGES 3

static uint8_t *writable; /* the same memory as base */
static int file;

/* Memory of one file, at base as it runs and at writable. */
static void map_twice(int prot)
{
	pages = PAGES;
	file = memfd_create("test_text", MFD_CLOEXEC);
	MUST(file >= 0 && ftruncate(file, PAGES * CODE_PAGE) == 0);
	writable = mmap(NULL, PAGES * CODE_PAGE, RW, MAP_SHARED, file, 0);
	MUST(writable != MAP_FAILED);
	memset(writable, CODE_NOP, PAGES * CODE_PAGE);
	for (size_t i = 0; i < PAGES; i++)
		code_put(writable + i * CODE_PAGE + 64, CODE_OLD);
	base = mmap(NULL, PAGES * CODE_PAGE, prot, MAP_SHARED, file, 0);
	MUST(base != MAP_FAILED);
}

static void start(void)
{
	start_library();
	map_twice(RX);
}

static int change(size_t page, uint32_t number)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, number);
	return pc_patch((uint8_t *)page_at(page) + 64, bytes, sizeof(bytes));
}

static uint32_t run(size_t page)
{
	return code_run((uint8_t *)page_at(page) + 64);
}

/* --- Not unless asked for ---------------------------------------------------------------- */

static void must_refuse_all(void)
{
	static const uint8_t bytes[CODE_LEN] = { 0xb8, 1, 2, 3, 4 };
	struct pc_op op = { .addr = page_at(0), .bytes = bytes, .len = CODE_LEN };
	uint8_t before[CODE_PAGE], *at = page_at(0);
	enum pc_text_way way = PC_TEXT_OPEN;
	struct pc_call call;
	char reason[128];

	call_encode(at + 512, CALL_NEAR, 0);
	MUST(mprotect(at, PAGES * CODE_PAGE, RX) == 0);
	memcpy(before, at, CODE_PAGE);
	MUST(pc_patch(at + 64, bytes, CODE_LEN) == -EPERM);
	MUST(pc_patch_starts(at + 64, bytes, CODE_LEN, 1) == -EPERM);
	MUST(pc_start_patch(at + 64, bytes, CODE_LEN) == -EPERM);
	MUST(pc_patch_batch(&op, 1) == -EPERM && op.result == -EPERM);
	MUST(pc_patch_merge(at + 900, bytes, 5, PC_NOBODY_INSIDE) == -EPERM);
	MUST(pc_call_init(&call, at + 512) == 0);
	MUST(pc_deactivate_call(&call) == -EPERM);
	MUST(pc_activate_call(&call, NULL) == -EPERM);
	MUST(pc_text_open(at, 1) == -EPERM && pc_text_close(at, 1) == -ENOENT);
	MUST(pc_text_way(at, 1, &way, reason, sizeof(reason)) == -EPERM);
	MUST(way == PC_TEXT_PROTECT && strstr(reason, "shared"));
	MUST(memcmp(at, before, CODE_PAGE) == 0 && code_prot(at) == RX);
}

static void refused(const void *arg)
{
	(void)arg;
	start();
	MUST(mprotect(base, PAGES * CODE_PAGE, RW) == 0);
	must_refuse_all();
	/* Writable already is not asked for either. */
	MUST(mprotect(base, PAGES * CODE_PAGE, RWX) == 0);
	MUST(change(0, CODE_NEW) == -EPERM && run(0) == CODE_OLD);
	MUST(open_pages(0, 1) == -EPERM);
	must_be((const int[]){ RWX, RWX, RWX });
}

/* Shared memory that is no file. */
static void share_memory(void)
{
	start_library();
	pages = PAGES;
	base = mmap(NULL, PAGES * CODE_PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(base != MAP_FAILED);
	memset(base, CODE_NOP, PAGES * CODE_PAGE);
}

static void refused_memory(const void *arg)
{
	(void)arg;
	share_memory();
	must_refuse_all();
}

/* --- Asked for ----------------------------------------------------------------------------- */

static int open_shared(size_t first, size_t count)
{
	return pc_text_open_shared(page_at(first), count * CODE_PAGE);
}

static void opened(const void *arg)
{
	enum pc_text_way way;
	pid_t pid;
	int status;

	(void)arg;
	start();
	MUST(open_shared(1, 1) == 0);
	must_be((const int[]){ RX, RWX, RX });
	MUST(pc_text_way(page_at(1), 1, &way, NULL, 0) == 0 && way == PC_TEXT_OPEN);
	MUST(change(1, CODE_NEW) == 0 && run(1) == CODE_NEW);
	MUST(memcmp(writable, base, PAGES * CODE_PAGE) == 0);
	MUST(change(0, CODE_NEW) == -EPERM);
	/* Another part of the program has not asked. */
	MUST(open_pages(1, 1) == -EPERM && open_pages(0, 2) == -EPERM);
	MUST(open_shared(0, 2) == 0 && close_pages(1, 1) == 0);
	must_be((const int[]){ RWX, RWX, RX });
	/* The child sees it. */
	pid = fork();
	if (pid == 0) {
		MUST(change(0, CODE_NEW) == 0);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0 && run(0) == CODE_NEW);
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RX, RX });
	MUST(change(0, CODE_OLD) == -EPERM && run(0) == CODE_NEW);
	MUST(pc_text_open_shared(base, 0) == -EINVAL);
	MUST(pc_fini() == 0 && open_shared(0, 1) == -ESHUTDOWN);
}

/*
 * Memory that this process runs at two addresses: an INT3 would stand at one that the library knows
 * nothing of. Other parts of the same file are no such thing.
 */
static void run_twice(const void *arg)
{
	uint8_t *other;

	(void)arg;
	start();
	other = mmap(NULL, CODE_PAGE, RX, MAP_SHARED, file, CODE_PAGE);
	MUST(other != MAP_FAILED);
	MUST(open_shared(1, 1) == -EPERM && open_shared(0, 3) == -EPERM);
	MUST(pc_text_open_shared(other, 1) == -EPERM && code_prot(other) == RX);
	must_be((const int[]){ RX, RX, RX });
	MUST(open_shared(0, 1) == 0 && open_shared(2, 1) == 0);
	MUST(close_pages(0, 1) == 0 && close_pages(2, 1) == 0);
	/* That which is written to and not run is the wrong one. */
	MUST(pc_text_open_shared(writable, 1) == -EPERM);
	MUST(munmap(other, CODE_PAGE) == 0 && open_shared(1, 1) == 0);
	MUST(change(1, CODE_NEW) == 0 && run(1) == CODE_NEW && close_pages(1, 1) == 0);
	must_be((const int[]){ RX, RX, RX });
}

/* A change across two pages, of which one is open. */
static void across(const void *arg)
{
	uint8_t *at;

	(void)arg;
	start();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	at = (uint8_t *)page_at(1) - 2;
	MUST(patch(at) == -EPERM);
	MUST(open_shared(0, 1) == 0 && patch(at) == -EPERM);
	MUST(open_shared(1, 1) == 0 && patch(at) == 0);
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RX, RX });
}

/* Where it is refused by the kernel, and where it is no different. */
static void no_better(const void *arg)
{
	static const int prot[] = { RX, RO, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(open_shared(0, 2) == 0);
	must_be((const int[]){ RWX, RW, RX });
	MUST(close_pages(0, 2) == 0);
	map_read_only_file(2);
	MUST(open_shared(0, 3) == -EACCES);
	must_be(prot);
}

/* An alias of the library's own takes it out of the file. */
static void aliased(const void *arg)
{
	(void)arg;
	start();
	MUST(pc_text_alias(base, CODE_PAGE) == 0 && change(0, CODE_NEW) == 0);
	MUST(run(0) == CODE_NEW && code_run(base + CODE_PAGE + 64) == CODE_OLD);
	MUST(writable[65] == (uint8_t)CODE_OLD);
	MUST(pc_text_open(base, CODE_PAGE) == 0);
	MUST(close_pages(0, 1) == 0 && close_pages(0, 1) == 0);
	MUST(change(0, CODE_OLD) == 0 && change(1, CODE_NEW) == -EPERM);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(refused),   child_unit_test(refused_memory),
		child_unit_test(opened),    child_unit_test(across),
		child_unit_test(no_better), child_unit_test(aliased),
		child_unit_test(run_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
