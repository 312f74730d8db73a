/* SPDX-License-Identifier: MIT */
/*
 * Code that others see, too: shared mappings, which are changed only when asked for, and
 * a caller's own second mapping of its code.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
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

static int use_alias(size_t first, size_t count)
{
	return pc_text_use_alias(page_at(first), count * CODE_PAGE, writable + first * CODE_PAGE);
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

/* --- A mapping of the caller's ---------------------------------------------------------------- */

static void used(const void *arg)
{
	enum pc_text_way way;
	char reason[128], number[32];

	(void)arg;
	start();
	child_filter(SYS_mprotect, 2, 0, SECCOMP_RET_KILL);
	MUST(use_alias(0, PAGES) == 0);
	MUST(pc_text_way(base, 1, &way, reason, sizeof(reason)) == 0 && way == PC_TEXT_ALIAS);
	snprintf(number, sizeof(number), "%p", (void *)writable);
	MUST(strstr(reason, number));
	/* From here on nothing is mapped or asked either. */
	child_filter(SYS_mmap, 2, 0, SECCOMP_RET_KILL);
	child_filter(SYS_openat, 0, 0, SECCOMP_RET_KILL);
	for (size_t i = 0; i < PAGES; i++)
		MUST(change(i, CODE_NEW) == 0 && run(i) == CODE_NEW);
	MUST(memcmp(writable, base, PAGES * CODE_PAGE) == 0);
	MUST(close_pages(0, PAGES) == 0);
	MUST(close_pages(0, PAGES) == -ENOENT);
}

/* Both mappings are there afterwards as they were, also when others are done away with. */
static void left_alone(const void *arg)
{
	(void)arg;
	start();
	MUST(use_alias(0, 2) == 0);
	MUST(close_pages(0, 2) == 0);
	MUST(change(0, CODE_NEW) == -EPERM);
	MUST(use_alias(0, 1) == 0 && pc_forget(base, CODE_PAGE) == 0);
	MUST(close_pages(0, 1) == -ENOENT && change(0, CODE_NEW) == -EPERM);
	MUST(use_alias(0, PAGES) == 0);
	MUST(pc_fini() == 0 && pc_init() == 0);
	MUST(change(0, CODE_NEW) == -EPERM);
	must_be((const int[]){ RX, RX, RX });
	for (size_t i = 0; i < PAGES; i++)
		MUST(code_prot(writable + i * CODE_PAGE) == RW);
	writable[100] = 1;
	MUST(base[100] == 1 && run(0) == CODE_OLD);
}

static void nested(const void *arg)
{
	uint8_t *other;

	(void)arg;
	start();
	other = mmap(NULL, PAGES * CODE_PAGE, RW, MAP_SHARED, file, 0);
	MUST(use_alias(0, 2) == 0 && use_alias(1, 2) == 0);
	MUST(pc_text_use_alias(page_at(1), CODE_PAGE, other + CODE_PAGE) == -EBUSY);
	MUST(pc_text_open(page_at(0), 2 * CODE_PAGE) == 0);
	must_be((const int[]){ RX, RX, RX });
	MUST(close_pages(0, 2) == 0 && close_pages(1, 2) == 0);
	MUST(change(0, CODE_NEW) == 0 && change(1, CODE_NEW) == 0 && change(2, CODE_NEW) == -EPERM);
	MUST(close_pages(0, 2) == 0 && close_pages(0, 2) == -ENOENT);
	MUST(pc_text_use_alias(page_at(1), CODE_PAGE, other + CODE_PAGE) == 0);
	MUST(munmap(writable, PAGES * CODE_PAGE) == 0);
	MUST(change(1, CODE_OLD) == 0 && close_pages(1, 1) == 0);
	/* Open already in another way. */
	MUST(open_shared(2, 1) == 0);
	MUST(pc_text_use_alias(base, PAGES * CODE_PAGE, other) == -EBUSY);
	MUST(change(0, CODE_OLD) == -EPERM && close_pages(2, 1) == 0);
	MUST(pc_text_alias(page_at(2), CODE_PAGE) == 0);
	MUST(pc_text_use_alias(page_at(2), CODE_PAGE, other + 2 * CODE_PAGE) == -EINVAL);
	MUST(close_pages(2, 1) == 0);
}

/* Not by whole pages alone, and with shared memory that is no file. */
static void parts(const void *arg)
{
	(void)arg;
	share_memory();
	code_put((uint8_t *)page_at(0) + 64, CODE_OLD);
	/* Length 0: a second mapping of the same. */
	writable = mremap(base, 0, PAGES * CODE_PAGE, MREMAP_MAYMOVE);
	MUST(writable != MAP_FAILED && writable != base);
	MUST(mprotect(base, PAGES * CODE_PAGE, RX) == 0);
	MUST(pc_text_use_alias(base + 64, 5, writable + 64) == 0);
	MUST(change(0, CODE_NEW) == 0 && run(0) == CODE_NEW);
	MUST(pc_text_close(base + 64, 5) == 0);
}

static void no_alias(const void *arg)
{
	size_t len = PAGES * CODE_PAGE;
	uint8_t *at;
	int other;

	(void)arg;
	start();
	MUST(pc_text_use_alias(base, 0, writable) == -EINVAL);
	MUST(pc_text_use_alias(base, len, NULL) == -EINVAL);
	MUST(pc_text_use_alias(base, len, base) == -EINVAL);
	MUST(pc_text_use_alias(base, len, writable + 64) == -EINVAL);
	MUST(pc_text_use_alias(base, len, writable - CODE_PAGE) == -EINVAL);
	MUST(pc_text_use_alias(base, CODE_PAGE, writable + CODE_PAGE) == -EINVAL);
	MUST(pc_text_use_alias(NULL, CODE_PAGE, writable) == -EFAULT);
	MUST(pc_text_use_alias(base, SIZE_MAX, writable) == -EINVAL);
	/* Not mapped in part, then not writable in part, then private in part. */
	at = writable + 2 * CODE_PAGE;
	MUST(munmap(at, CODE_PAGE) == 0 && use_alias(0, PAGES) == -EINVAL);
	MUST(mmap(at, CODE_PAGE, RO, MAP_SHARED | MAP_FIXED, file, 2 * CODE_PAGE) == at);
	MUST(use_alias(0, PAGES) == -EINVAL);
	MUST(mmap(at, CODE_PAGE, RW, MAP_PRIVATE | MAP_FIXED, file, 2 * CODE_PAGE) == at);
	MUST(use_alias(0, PAGES) == -EINVAL);
	/* Another place of the file, another file, and code that is private. */
	MUST(mmap(at, CODE_PAGE, RW, MAP_SHARED | MAP_FIXED, file, CODE_PAGE) == at);
	MUST(use_alias(0, PAGES) == -EINVAL);
	other = memfd_create("test_text", MFD_CLOEXEC);
	MUST(other >= 0 && ftruncate(other, PAGES * CODE_PAGE) == 0);
	MUST(mmap(at, CODE_PAGE, RW, MAP_SHARED | MAP_FIXED, other, 2 * CODE_PAGE) == at);
	MUST(use_alias(0, PAGES) == -EINVAL);
	MUST(mmap(at, CODE_PAGE, RW, MAP_SHARED | MAP_FIXED, file, 2 * CODE_PAGE) == at);
	MUST(mmap(page_at(2), CODE_PAGE, RX, MAP_PRIVATE | MAP_FIXED, file, 2 * CODE_PAGE) ==
	     page_at(2));
	MUST(use_alias(0, PAGES) == -EINVAL);
	/* None of it is open now. */
	MUST(close_pages(0, 1) == -ENOENT && change(0, CODE_NEW) == -EPERM);
	MUST(use_alias(0, 2) == 0 && change(1, CODE_NEW) == 0 && close_pages(0, 2) == 0);
	MUST(pc_fini() == 0 && use_alias(0, 2) == -ESHUTDOWN);
}

/* --- Over fork() ---------------------------------------------------------------------------- */

static void must_not_change(void)
{
	enum pc_text_way way = PC_TEXT_OPEN;
	char reason[128];

	MUST(change(0, CODE_NEW) == -EACCES && run(0) == CODE_OLD);
	MUST(pc_text_way(base, 1, &way, reason, sizeof(reason)) == -EACCES);
	MUST(way == PC_TEXT_ALIAS && strstr(reason, "parent"));
}

/* A child that maps its own copy may patch that. */
static void must_have_own(void)
{
	uint8_t copy[PAGES * CODE_PAGE];

	memcpy(copy, base, sizeof(copy));
	MUST(use_alias(0, PAGES) == -EBUSY);
	MUST(close_pages(0, PAGES) == 0);
	MUST(munmap(base, PAGES * CODE_PAGE) == 0 && munmap(writable, PAGES * CODE_PAGE) == 0);
	map_twice(RX);
	memcpy(writable, copy, sizeof(copy));
	MUST(use_alias(0, PAGES) == 0);
	MUST(change(0, CODE_NEW) == 0 && run(0) == CODE_NEW);
}

static void must_end_well(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void forked(const void *arg)
{
	const bool *with_handlers = arg;
	pid_t pid, second;

	start();
	MUST(use_alias(0, PAGES) == 0);
	pid = *with_handlers ? fork() : (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		must_not_change();
		second = *with_handlers ? fork() : 0;
		if (second == 0) {
			must_not_change();
			must_have_own();
			_exit(0);
		}
		must_end_well(second);
		must_not_change();
		_exit(0);
	}
	must_end_well(pid);
	MUST(run(0) == CODE_OLD);
	MUST(change(0, CODE_NEW) == 0 && run(0) == CODE_NEW);
}

static void test_forked(void **state)
{
	static const bool with_handlers[] = { true, false };

	(void)state;
	child_must_pass(forked, &with_handlers[0]);
	child_must_pass(forked, &with_handlers[1]);
}

/* Side by side with an alias of the library's, which is copied. */
static void both_kinds(const void *arg)
{
	static const uint8_t bytes[] = { 0x31, 0x32, 0x33, 0x34, 0x35 };
	uint8_t *at;
	pid_t pid;

	(void)arg;
	start();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	MUST(pc_text_alias(page_at(1), CODE_PAGE) == 0);
	MUST(use_alias(0, 1) == 0 && use_alias(2, 1) == 0);
	at = (uint8_t *)page_at(1) - 2;
	MUST(pc_patch(at, bytes, 5) == 0 && memcmp(at, bytes, 5) == 0);
	pid = fork();
	if (pid == 0) {
		MUST(memcmp(at, bytes, 5) == 0);
		MUST(change(1, CODE_NEW) == 0 && run(1) == CODE_NEW);
		MUST(change(0, CODE_NEW) == -EACCES && change(2, CODE_NEW) == -EACCES);
		MUST(patch(at) == -EACCES && memcmp(at, bytes, 5) == 0);
		MUST(close_pages(0, PAGES) == 0);
		must_be((const int[]){ RX, RX, RX });
		_exit(0);
	}
	must_end_well(pid);
	MUST(run(1) == CODE_OLD && change(1, CODE_NEW) == 0);
	MUST(close_pages(0, PAGES) == 0);
}

static bool store_while_forking;

/* Runs after the library's own, since it was registered before: all is copied by now. */
static void prepare(void)
{
	if (!store_while_forking)
		return;
	store_while_forking = false;
	MUST(patch((uint8_t *)page_at(1) - 2) == 0);
}

__attribute__((constructor(101))) static void be_first(void)
{
	pthread_atfork(prepare, NULL, NULL);
}

/* A store to both while the process forks: to the copy of the one, and to the other itself. */
static void store_in_fork(const void *arg)
{
	pid_t pid;

	(void)arg;
	start();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	MUST(pc_text_alias(page_at(0), CODE_PAGE) == 0 && use_alias(1, 1) == 0);
	MUST(change(1, CODE_NEW) == 0);
	/* Not for the first time then, which takes a lock. */
	MUST(pc_patch((uint8_t *)page_at(1) - 2, "\x31\x32\x33\x34\x35", 5) == 0);
	store_while_forking = true;
	pid = fork();
	MUST(!store_while_forking);
	MUST(memcmp((uint8_t *)page_at(1) - 2, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
	MUST(run(0) == CODE_OLD && run(1) == CODE_NEW);
	if (pid == 0)
		_exit(0);
	must_end_well(pid);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(refused),    child_unit_test(refused_memory),
		child_unit_test(opened),     child_unit_test(across),
		child_unit_test(no_better),  child_unit_test(aliased),
		child_unit_test(used),	     child_unit_test(left_alone),
		child_unit_test(nested),     child_unit_test(parts),
		child_unit_test(no_alias),   cmocka_unit_test(test_forked),
		child_unit_test(both_kinds), child_unit_test(store_in_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
