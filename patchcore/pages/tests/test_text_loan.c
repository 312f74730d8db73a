/* SPDX-License-Identifier: MIT */
/*
 * A loan of pages is given back once, and to no other user of them: not where two pages are one to
 * the kernel, nor after all users were taken away.
 *
 * Huge pages are rare, so the kernel is made to take four pages for one.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/site/fork.h"
#include "patchcore/tests/text_pages.h"

#define HUGE_PAGES 4
#define HUGE_SIZE  ((size_t)HUGE_PAGES * CODE_PAGE)

#define ALL_RX	((const int[]){ RX, RX, RX, RX })
#define ALL_RWX ((const int[]){ RWX, RWX, RWX, RWX })

static bool is_broken;
static uintptr_t huge; /* the first of the four, 0: all are as they are */

/* The linker hands these calls to us: see local.mk. */
size_t __real_mapping_page_size(uintptr_t addr);
size_t __wrap_mapping_page_size(uintptr_t addr);
int __real_mprotect(void *addr, size_t len, int prot);
int __wrap_mprotect(void *addr, size_t len, int prot);
void __real_text_end_outside(const struct text_span *span, uintptr_t start, uintptr_t end);
void __wrap_text_end_outside(const struct text_span *span, uintptr_t start, uintptr_t end);
int __real_flight_drain(void);
int __wrap_flight_drain(void);

static bool is_in_huge(uintptr_t addr)
{
	return huge && addr - huge < HUGE_SIZE;
}

size_t __wrap_mapping_page_size(uintptr_t addr)
{
	return is_in_huge(addr) ? HUGE_SIZE : __real_mapping_page_size(addr);
}

int __wrap_mprotect(void *addr, size_t len, int prot)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;

	if ((is_in_huge(start) && start != huge) || (is_in_huge(end) && end != huge)) {
		errno = EINVAL;
		return -1;
	}
	return __real_mprotect(addr, len, prot);
}

static void start_huge(void)
{
	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier SYNC_CORE");
	base = code_map(2 * HUGE_PAGES, RX);
	base += -(uintptr_t)base & (HUGE_SIZE - 1);
	pages = HUGE_PAGES;
	huge = (uintptr_t)base;
}

/* Two bytes of it are on that page, three in front. */
static uint8_t *across(size_t page)
{
	return (uint8_t *)page_at(page) - 3;
}

static void start_patch(uint8_t *at)
{
	MUST(pc_start_patch(at, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
}

/* --- Pages that are one to the kernel -------------------------------------------------------- */

/* Broken: page by page. */
void __wrap_text_end_outside(const struct text_span *span, uintptr_t start, uintptr_t end)
{
	if (!is_broken) {
		__real_text_end_outside(span, start, end);
		return;
	}
	text_return(page_of((uintptr_t)span->addr), page_of((uintptr_t)span->addr) + TEXT_PAGE,
		    span->loan);
	text_return(page_of((uintptr_t)span->addr + span->len - 1),
		    page_of((uintptr_t)span->addr + span->len - 1) + TEXT_PAGE, span->loan);
}

/* A change across two of them is forgotten while another is in flight. */
static void across_two(const void *arg)
{
	is_broken = arg;
	start_huge();
	start_patch(across(1));
	must_be(ALL_RWX);
	start_patch(across(3));
	MUST(pc_forget(across(1), 5) == 0);
	must_be(ALL_RWX);
	MUST(pc_drain() == 0);
	must_be(ALL_RX);
	MUST(pc_fini() == 0);
}

static void test_across_two(void **state)
{
	(void)state;
	child_must_pass(across_two, NULL);
	child_must_fail(across_two, &is_broken);
}

/* What a child takes from threads that are not there it gives back whole, too. */
static void forked_whole(const void *arg)
{
	struct text_span span;
	int status;
	pid_t pid;

	(void)arg;
	start_huge();
	MUST(text_begin(&span, across(2), CODE_LEN) == 0 && span.loan);
	fork_leave(thread_here);
	must_be(ALL_RWX);
	pid = fork();
	if (pid == 0) {
		MUST(pc_text_close(base, 1) == -ENOENT);
		must_be(ALL_RX);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	text_return_kept(&span);
	must_be(ALL_RX);
}

/* A part of one is forgotten: it is not gone, nor are its other parts. */
static void part_forgotten(const void *arg)
{
	(void)arg;
	start_huge();
	MUST(open_pages(0, 1) == 0);
	MUST(pc_forget(page_at(1), 2 * CODE_PAGE) == 0);
	MUST(close_pages(0, 1) == 0);
	must_be(ALL_RX);
	start_patch(across(2));
	MUST(pc_forget(page_at(1), 2 * CODE_PAGE) == 0);
	must_be(ALL_RX);
	start_patch(across(3));
	MUST(pc_forget(base, HUGE_SIZE) == 0);
	must_be(ALL_RWX);
	MUST(mprotect(base, HUGE_SIZE, RX) == 0);
	MUST(close_pages(0, 1) == -ENOENT && pc_fini() == 0);
	must_be(ALL_RX);
}

/* --- Pages that have lost their users -------------------------------------------------------- */

/* Broken: what was lent before still counts. */
static void break_page(void)
{
	if (is_broken)
		atomic_store(&page_find((uintptr_t)base)->forgotten, 0);
}

/* What was lent before comes back while the page is on loan again. */
static void must_not_count(struct text_span *before)
{
	struct text_span now;

	must_be((const int[]){ RX });
	break_page();
	MUST(text_begin(&now, base, CODE_LEN) == 0 && now.loan);
	text_return_kept(before);
	must_be((const int[]){ RWX });
	text_end(&now);
	must_be((const int[]){ RX });
}

static void lend(struct text_span *span)
{
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(text_begin(span, base, CODE_LEN) == 0 && span->loan);
	fork_leave(thread_here);
	must_be((const int[]){ RWX });
}

static void given_back(const void *arg)
{
	struct text_span span;

	is_broken = arg;
	lend(&span);
	MUST(text_give_back() == 0);
	must_not_count(&span);
}

static void test_given_back(void **state)
{
	(void)state;
	child_must_pass(given_back, NULL);
	child_must_fail(given_back, &is_broken);
}

/* A child takes them from those that are not there. */
static void forked(const void *arg)
{
	struct text_span span;
	int status;
	pid_t pid;

	is_broken = arg;
	lend(&span);
	pid = fork();
	if (pid == 0) {
		MUST(pc_text_close(base, 1) == -ENOENT);
		must_not_count(&span);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	text_return_kept(&span);
	must_be((const int[]){ RX });
}

static void test_forked(void **state)
{
	(void)state;
	child_must_pass(forked, NULL);
	child_must_fail(forked, &is_broken);
}

/* --- Pages that could not be closed ---------------------------------------------------------- */

static atomic_bool drains, is_locked;

/* Membarrier has no memory, and another thread takes the lock. */
int __wrap_flight_drain(void)
{
	if (!drains)
		return __real_flight_drain();
	drains = false;
	while (!is_locked)
		usleep(100);
	return -ENOMEM;
}

static void *fail_to_close(void *unused)
{
	MUST(pc_text_close(base, 1) == -ENOMEM);
	return unused;
}

/* They are open again, but not while another thread sees to pages. */
static void kept_open(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(pc_text_open(base, 1) == 0);
	drains = true;
	MUST(pthread_create(&thread, NULL, fail_to_close, NULL) == 0);
	while (drains)
		usleep(100);
	lock_take(&text_lock);
	is_locked = true;
	while (!atomic_load(&text_lock.waiters))
		MUST(!page_is_open(page_find((uintptr_t)base)));
	lock_drop(&text_lock);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(page_is_open(page_find((uintptr_t)base)) && pc_text_close(base, 1) == 0);
	must_be((const int[]){ RX });
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_across_two), child_unit_test(forked_whole),
		child_unit_test(part_forgotten),   cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_forked),	   child_unit_test(kept_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
