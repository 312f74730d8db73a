/* SPDX-License-Identifier: MIT */
/*
 * Code that is unmapped: what was known of its pages goes with it, and does not
 * pass to what is mapped there next.
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

#include "patchcore/async.h"
#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/tests/text_library.h"
#include "patchcore/tests/text_pages.h"

static uint8_t *page_in(const struct text_library *library)
{
	return library->fn - ((uintptr_t)library->fn & (CODE_PAGE - 1));
}

static unsigned aliases(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned found = 0;
	char line[512];

	MUST(file);
	while (fgets(line, sizeof(line), file))
		found += strstr(line, " rw-s") && strstr(line, "memfd:patchcore");
	fclose(file);
	return found;
}

static int patch_nop(uint8_t *at)
{
	static const uint8_t nops[] = { 0x0f, 0x1f, 0x44, 0, 0 };

	return pc_patch(at, nops, sizeof(nops));
}

/* --- Told by the owner ----------------------------------------------------------------------- */

/* Neither the mapping that is there now, nor what is asked of it, suffers. */
static void told(const void *arg)
{
	static const int prot[] = { RX, RX, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(open_pages(0, 2) == 0 && pc_text_alias(page_at(2), 1) == 0);
	MUST(aliases() == 1);
	MUST(mmap(base, 3 * CODE_PAGE, RX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base);
	text_forget((uintptr_t)base, (uintptr_t)base + 3 * CODE_PAGE);
	MUST(aliases() == 0);
	must_be(prot);
	MUST(close_pages(0, 1) == -ENOENT && close_pages(2, 1) == -ENOENT);
	for (size_t i = 0; i < LENGTH(prot); i++)
		MUST(patch_nop(page_at(i)) == 0);
	must_be(prot);
	MUST(pc_text_alias(base, 3 * CODE_PAGE) == 0 && patch_nop(base) == 0);
}

/*
 * Told of a page that is still there: it is one without an alias from then on, which children
 * will share.
 */
static void told_of_one(const void *arg)
{
	(void)arg;
	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	lay_out((const int[]){ RX, RX, RX }, 3);
	MUST(pc_text_alias(base, 3 * CODE_PAGE) == 0);
	text_forget((uintptr_t)page_at(1), (uintptr_t)page_at(2));
	MUST(open_pages(0, 3) == -EPERM);
	MUST(pc_text_open_shared(base, 3 * CODE_PAGE) == 0);
	must_be((const int[]){ RX, RWX, RX });
	MUST(patch_nop((uint8_t *)page_at(1) - 2) == 0);
	MUST(patch_nop((uint8_t *)page_at(2) - 2) == 0);
	MUST(close_pages(0, 3) == 0);
}

/* Only what was named: one of two functions on a page, and the other goes on as it was. */
static void told_of_a_part(const void *arg)
{
	enum pc_text_way way;

	(void)arg;
	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	lay_out((const int[]){ RX, RX, RX }, 3);
	MUST(open_pages(0, 1) == 0 && pc_text_alias(page_at(1), 1) == 0);
	MUST(patch_nop(base + 62) == 0);
	MUST(pc_forget(base, 100) == 0 && pc_forget(base + 100, CODE_PAGE) == 0);
	MUST(pc_forget(page_at(1), CODE_PAGE - 1) == 0 && pc_forget(base + 1, CODE_PAGE - 1) == 0);
	must_be((const int[]){ RWX, RX, RX });
	MUST(aliases() == 1);
	MUST(pc_text_way(base, 1, &way, NULL, 0) == 0 && way == PC_TEXT_OPEN);
	MUST(pc_text_way(page_at(1), 1, &way, NULL, 0) == 0 && way == PC_TEXT_ALIAS);
	MUST(patch_nop(base + 126) == 0 && patch_nop(page_at(1)) == 0);
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RX, RX });
	/* The page in the middle is named as a whole. */
	MUST(open_pages(0, 3) == 0 && pc_forget(base + 1, 3 * CODE_PAGE - 2) == 0);
	MUST(pc_text_way(page_at(1), 1, &way, NULL, 0) == 0 && way == PC_TEXT_PROTECT);
	MUST(close_pages(0, 1) == 0 && close_pages(1, 1) == -ENOENT && close_pages(2, 1) == 0);
	must_be((const int[]){ RX, RWX, RX });
	/* All that there is: not page by page. */
	MUST(open_pages(0, 3) == 0 && pc_forget(NULL, SIZE_MAX) == 0);
	MUST(close_pages(0, 3) == -ENOENT);
}

/* What was made writable for a change in flight is given back on the page that stays. */
static void told_in_flight(const void *arg)
{
	(void)arg;
	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	lay_out((const int[]){ RX, RX }, 2);
	/* Two bytes of it are on the second page. */
	MUST(pc_start_patch((uint8_t *)page_at(1) - 3, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
	must_be((const int[]){ RWX, RWX });
	MUST(pc_forget((uint8_t *)page_at(1) - 3, CODE_PAGE + 3) == 0);
	must_be((const int[]){ RX, RWX });
	MUST(pc_drain() == 0 && pc_finish_patch((uint8_t *)page_at(1) - 3) == PC_FINISHED);
	/* Named again, in two parts that are no page. */
	MUST(mprotect(page_at(1), CODE_PAGE, RX) == 0);
	MUST(pc_start_patch(base + 62, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
	MUST(pc_forget(base, 64) == 0);
	must_be((const int[]){ RX, RX });
}

/* A patch that was under way when the code went ends without harm. */
static void told_too_early(const void *arg)
{
	struct text_span span;

	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(text_begin(&span, base, 5) == 0 && span.loan);
	MUST(mmap(base, CODE_PAGE, RO, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base);
	text_forget((uintptr_t)base, (uintptr_t)base + CODE_PAGE);
	text_end(&span);
	must_be((const int[]){ RO });
	MUST(open_pages(0, 1) == 0 && close_pages(0, 1) == 0);
	must_be((const int[]){ RO });
}

/* Nor does it harm a change of what is mapped there since. */
static void told_late(const void *arg)
{
	struct text_span first, second;

	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(text_begin(&first, base, 5) == 0 && first.loan);
	text_forget((uintptr_t)base, (uintptr_t)base + CODE_PAGE);
	MUST(mmap(base, CODE_PAGE, RX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base);
	MUST(text_begin(&second, base, 5) == 0 && second.loan);
	text_end(&first);
	must_be((const int[]){ RWX });
	text_end(&second);
	must_be((const int[]){ RX });
}

/* --- Noticed --------------------------------------------------------------------------------- */

/* Left open or aliased, and unloaded: pages that are mapped there next have no user. */
static void unloaded(const void *arg)
{
	enum pc_text_way way = *(const enum pc_text_way *)arg, now;
	struct text_library first, second;
	uint8_t *page;

	start_library();
	library_copy(&first);
	library_copy(&second);
	library_open(&first);
	page = page_in(&first);
	MUST((way == PC_TEXT_OPEN ? pc_text_open : pc_text_alias)(page, 1) == 0);
	MUST(patch_nop(first.fn) == 0);
	library_close(&first);
	library_open(&second);
	unlink(first.path);
	unlink(second.path);
	if (page_in(&second) != page)
		child_skip("the second library lies elsewhere");
	MUST(pc_text_way(page, 1, &now, NULL, 0) == 0 && now == PC_TEXT_PROTECT);
	MUST(aliases() == 0);
	MUST(code_prot(page) == RX);
	MUST(patch_nop(second.fn) == 0);
	MUST(code_prot(page) == RX);
	MUST(pc_text_close(page, 1) == -ENOENT);
}

static void test_unloaded(void **state)
{
	static const enum pc_text_way ways[] = { PC_TEXT_OPEN, PC_TEXT_ALIAS };

	(void)state;
	for (size_t i = 0; i < LENGTH(ways); i++)
		child_must_pass(unloaded, &ways[i]);
}

/* Nor does the same file, loaded again at the same place, inherit anything. */
static void loaded_again(const void *arg)
{
	struct text_library library;
	uint8_t *page;

	(void)arg;
	start_library();
	library_copy(&library);
	library_open(&library);
	page = page_in(&library);
	MUST(pc_text_open(page, 1) == 0);
	library_close(&library);
	library_open(&library);
	unlink(library.path);
	if (page_in(&library) != page)
		child_skip("it lies elsewhere now");
	MUST(pc_text_open(page, 1) == 0 && patch_nop(library.fn) == 0);
	MUST(pc_text_close(page, 1) == 0);
	MUST(code_prot(page) == RX);
	MUST(pc_text_close(page, 1) == -ENOENT);
}

/* Pages that have nothing to do with what was unloaded stay as they are. */
static void others(const void *arg)
{
	struct text_library staying, leaving;

	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX, RX }, 3);
	library_copy(&staying);
	library_copy(&leaving);
	library_open(&staying);
	library_open(&leaving);
	unlink(staying.path);
	unlink(leaving.path);
	MUST(open_pages(0, 1) == 0 && pc_text_alias(page_at(1), CODE_PAGE) == 0);
	MUST(pc_text_open(staying.fn, 1) == 0);
	library_close(&leaving);
	lock_take(&text_lock);
	text_compare((uintptr_t)base, (uintptr_t)base + 3 * CODE_PAGE);
	lock_drop(&text_lock);
	MUST(aliases() == 1);
	must_be((const int[]){ RWX, RX, RX });
	MUST(patch_nop(page_at(0)) == 0 && patch_nop(page_at(1)) == 0);
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RX, RX });
	MUST(code_prot(staying.fn) == RWX && pc_text_close(staying.fn, 1) == 0);
	MUST(code_prot(staying.fn) == RX);
}

/* --- The objects ----------------------------------------------------------------------------- */

static unsigned gone;
static uintptr_t gone_start, gone_end;

static void note_gone(uintptr_t start, uintptr_t end)
{
	gone++;
	gone_start = start;
	gone_end = end;
}

static void must_be_gone(const struct text_library *library)
{
	MUST(objects_each_gone(note_gone) == 0 && gone == 1);
	MUST(gone_start <= (uintptr_t)library->fn && gone_end > (uintptr_t)library->fn);
	MUST(objects_each_gone(note_gone) == 0 && gone == 1);
	gone = 0;
}

static void objects(const void *arg)
{
	struct text_library first, second;

	(void)arg;
	library_copy(&first);
	library_copy(&second);
	library_open(&first);
	MUST(objects_each_gone(note_gone) == 0 && gone == 0);
	library_open(&second);
	MUST(objects_each_gone(note_gone) == 0 && gone == 0);
	library_close(&second);
	must_be_gone(&second);
	/* In its place comes another. */
	library_close(&first);
	library_open(&second);
	must_be_gone(&first);
	library_close(&second);
	must_be_gone(&second);
	unlink(first.path);
	unlink(second.path);
}

/* --- Given back ------------------------------------------------------------------------------ */

static void given_back(const void *arg)
{
	static const int prot[] = { RX, RO, RX, RWX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(open_pages(0, 4) == 0 && open_pages(1, 1) == 0);
	MUST(close_pages(2, 2) == 0 && pc_text_alias(page_at(2), 2 * CODE_PAGE) == 0);
	MUST(text_give_back() == 0);
	must_be(prot);
	MUST(aliases() == 0);
	for (size_t i = 0; i < LENGTH(prot); i++)
		MUST(close_pages(i, 1) == -ENOENT);
}

/* --- The page that a thread met last --------------------------------------------------------- */

/* It is open, and so is not the one beside it; nor is what comes to its place. */
static void met_last(const void *arg)
{
	static const int prot[] = { RX, RX, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(open_pages(0, 1) == 0 && patch_nop(base) == 0);
	MUST(patch_nop(page_at(1)) == 0 && patch_nop(base) == 0);
	MUST(mmap(base, CODE_PAGE, RX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base);
	text_forget((uintptr_t)base, (uintptr_t)base + CODE_PAGE);
	MUST(patch_nop(base) == 0);
	must_be(prot);
	/* Its memory becomes another page's. */
	MUST(open_pages(2, 1) == 0 && patch_nop(page_at(2)) == 0 && patch_nop(base) == 0);
	MUST(patch_nop(page_at(1)) == 0 && close_pages(2, 1) == 0 && patch_nop(page_at(2)) == 0);
	must_be(prot);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(told),		 child_unit_test(told_of_one),
		child_unit_test(told_of_a_part), child_unit_test(told_in_flight),
		child_unit_test(told_too_early), child_unit_test(told_late),
		cmocka_unit_test(test_unloaded), child_unit_test(loaded_again),
		child_unit_test(others),	 child_unit_test(objects),
		child_unit_test(given_back),	 child_unit_test(met_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
