/* SPDX-License-Identifier: MIT */
/*
 * Pages that the library knows and at which, unknown to it, something else lies by now: nothing
 * that it does afterwards changes what lies there, its protection or its content.
 *
 * Tried is each state of a page, with each thing that may have happened, and each operation that
 * follows.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
#include "patchcore/site/fork.h"
#include "patchcore/tests/text_library.h"
#include "patchcore/tests/text_pages.h"

#define PAGES 3

static const uint8_t nops[] = { 0x0f, 0x1f, 0x44, 0, 0 };

/* The linker hands these calls to us: see local.mk. */
int __real_mprotect(void *addr, size_t len, int prot);
int __wrap_mprotect(void *addr, size_t len, int prot);
int __real_mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn,
			 void *arg);
int __wrap_mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn,
			 void *arg);

static bool mprotect_fails;

int __wrap_mprotect(void *addr, size_t len, int prot)
{
	if (mprotect_fails && !(prot & PROT_WRITE)) {
		errno = EACCES;
		return -1;
	}
	return __real_mprotect(addr, len, prot);
}

/* --- Broken: the library believes that all is as it left it ----------------------------------- */

static bool is_broken, breaks; /* now; after something has happened */

int __wrap_mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn,
			 void *arg)
{
	int ret = 0;

	if (!is_broken)
		return __real_mappings_each(start, end, kind, fn, arg);
	for (uintptr_t p = (uintptr_t)base; !ret && p < (uintptr_t)base + PAGES * CODE_PAGE;
	     p += CODE_PAGE) {
		const struct page *page = page_find(p);
		struct mapping map = { .start = p, .end = p + CODE_PAGE };

		if (!page || p < start || p >= end)
			continue;
		map.prot = page_shift(page) ? alias_prot(page) : page->prot | PROT_WRITE;
		map.shared = page_shift(page);
		map.origin = page->origin;
		if (map.shared || kind == MAPPING_ANY)
			ret = fn(&map, arg);
	}
	return ret;
}

/* --- States: of the page in the middle -------------------------------------------------------- */

static struct text_span span;

static void never(void)
{
}

static void opened(void)
{
	MUST(open_pages(0, PAGES) == 0);
}

static void borrowed(void)
{
	MUST(text_begin(&span, page_at(1), CODE_LEN) == 0 && span.loan);
	fork_leave(thread_here);
}

static void aliased(void)
{
	MUST(pc_text_alias(base, PAGES * CODE_PAGE) == 0);
}

static void aliased_alone(void)
{
	MUST(pc_text_alias(page_at(0), 1) == 0 && pc_text_alias(page_at(1), 1) == 0);
	MUST(pc_text_alias(page_at(2), 1) == 0);
}

static void owed(void)
{
	MUST(open_pages(1, 1) == 0);
	mprotect_fails = true;
	MUST(close_pages(1, 1) == -EACCES);
	mprotect_fails = false;
	MUST(code_prot(page_at(1)) == RWX);
}

static void owed_alias(void)
{
	static const struct rlimit none;
	struct rlimit before;

	MUST(pc_text_alias(page_at(1), 1) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ none.rlim_cur, before.rlim_max }) == 0);
	MUST(close_pages(1, 1) == -EMFILE && setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void (*const states[])(void) = {
	never, opened, borrowed, aliased, aliased_alone, owed, owed_alias,
};
static const char *const state_names[] = {
	"never seen", "open", "borrowed", "aliased", "aliased alone", "owed", "owed alias",
};

/* --- What happens to it ----------------------------------------------------------------------- */

static void put_there(int prot, int flags, int fd)
{
	MUST(mmap(page_at(1), CODE_PAGE, prot, flags | MAP_FIXED, fd, 0) == page_at(1));
	if (fd >= 0)
		close(fd);
}

static int other_file(void)
{
	uint8_t page[CODE_PAGE];
	int fd = memfd_create("other", MFD_CLOEXEC);

	memset(page, 0x5a, sizeof(page));
	memcpy(page + 64, nops, sizeof(nops));
	MUST(fd >= 0 && write(fd, page, sizeof(page)) == (ssize_t)sizeof(page));
	return fd;
}

static void unmapped(void)
{
	MUST(munmap(page_at(1), CODE_PAGE) == 0);
}

static void file_mapped(void)
{
	put_there(RX, MAP_PRIVATE, other_file());
}

static void data_mapped(void)
{
	put_there(RW, MAP_PRIVATE, other_file());
}

static void shared_mapped(void)
{
	put_there(RW, MAP_SHARED, other_file());
}

static void memory_mapped(void)
{
	put_there(RX, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void writable_memory_mapped(void)
{
	put_there(RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void protected(void)
{
	MUST(mprotect(page_at(1), CODE_PAGE, RO) == 0);
}

/* The library's own may not be: an alias's code is mapped from a file that is open for both. */
static void made_writable(void)
{
	MUST(mprotect(page_at(1), CODE_PAGE, RW) == 0);
}

static void moved(void)
{
	void *to = mmap(NULL, CODE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(mremap(page_at(1), CODE_PAGE, CODE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
}

static void moved_and_mapped(void)
{
	moved();
	file_mapped();
}

static void (*const events[])(void) = {
	unmapped,	  file_mapped,	 data_mapped,
	shared_mapped,	  memory_mapped, writable_memory_mapped,
	protected,	  made_writable, moved,
	moved_and_mapped,
};
static const char *const event_names[] = {
	"munmap",	   "other file", "other data", "shared data", "memory",
	"writable memory", "mprotect",	 "writable",   "mremap",      "mremap, other file",
};

/* --- Operations: each leaves things as they were ---------------------------------------------- */

static void open_it(void)
{
	if (open_pages(1, 1) == 0)
		MUST(close_pages(1, 1) == 0);
}

static void open_all(void)
{
	if (open_pages(0, PAGES) == 0)
		MUST(close_pages(0, PAGES) == 0);
}

static void close_it(void)
{
	close_pages(1, 1);
}

static void close_all(void)
{
	close_pages(0, PAGES);
}

static void alias_it(void)
{
	if (pc_text_alias(page_at(1), 1) == 0)
		MUST(close_pages(1, 1) == 0);
}

/*
 * To what it is already. A change of open pages does not look what lies there: that is for the
 * program to say.
 */
static void patch_it(void)
{
	const struct page *page = page_find((uintptr_t)page_at(1));
	uint8_t bytes[8];
	int prot = code_prot(page_at(1));

	if (prot < 0 || (!(prot & PROT_WRITE) && page_is_open(page) && !page_shift(page)))
		return;
	memcpy(bytes, (uint8_t *)page_at(1) + 64, sizeof(bytes));
	pc_patch((uint8_t *)page_at(1) + 64, bytes, sizeof(bytes));
}

static void ask_it(void)
{
	enum pc_text_way way;

	pc_text_way(page_at(1), 1, &way, NULL, 0);
}

static void finish_loan(void)
{
	if (span.loan)
		text_return_kept(&span);
}

static void forget_it(void)
{
	MUST(pc_forget(page_at(1), CODE_PAGE) == 0);
}

static void finish(void)
{
	pc_fini();
}

static void nothing(void)
{
}

static void (*const operations[])(void) = {
	open_it, open_all,    close_it,	 close_all, alias_it, patch_it,
	ask_it,	 finish_loan, forget_it, finish,    nothing,
};
static const char *const operation_names[] = {
	"open", "open all",	 "close",  "close all", "alias",     "patch",
	"way",	"end of a loan", "forget", "fini",	"fork only",
};

/* --- The table -------------------------------------------------------------------------------- */

struct seen {
	int prot;
	uint8_t bytes[CODE_PAGE];
};

static void see(struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	seen->prot = code_prot(page_at(1));
	if (seen->prot >= 0 && seen->prot & PROT_READ)
		memcpy(seen->bytes, page_at(1), CODE_PAGE);
}

static struct seen before;
static const char *now_state, *now_event, *now_operation;

static void must_be_as_before(const char *when)
{
	struct seen after;

	see(&after);
	if (after.prot == before.prot && memcmp(after.bytes, before.bytes, CODE_PAGE) == 0)
		return;
	if (!is_broken)
		dprintf(2, "%s, %s, %s, %s: protection %d, not %d; bytes %s\n", now_state,
			now_event, now_operation, when, after.prot, before.prot,
			memcmp(after.bytes, before.bytes, CODE_PAGE) ? "differ" : "the same");
	_exit(1);
}

static void try_fork(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		must_be_as_before("in a child");
		if (code_prot(page_at(1)) >= 0 && code_prot(page_at(1)) & PROT_WRITE)
			*(volatile uint8_t *)page_at(1) = *(volatile uint8_t *)page_at(1);
		pc_fini();
		must_be_as_before("in a child, fini");
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	if (status)
		_exit(1);
	must_be_as_before("fork");
}

static void try_cell(size_t state, size_t event, size_t operation)
{
	start_library();
	lay_out((const int[]){ RX, RX, RX }, PAGES);
	now_state = state_names[state];
	now_event = event_names[event];
	now_operation = operation_names[operation];
	states[state]();
	events[event]();
	is_broken = breaks;
	see(&before);
	if (!is_broken || operations[operation] == nothing)
		try_fork();
	operations[operation]();
	must_be_as_before("then");
	try_fork();
	finish_loan();
	pc_fini();
	must_be_as_before("fini");
	MUST(is_broken || (pc_init() == 0 && pc_fini() == 0));
}

static unsigned wrong;

static void try_all(void)
{
	wrong = 0;
	for (size_t s = 0; s < LENGTH(states); s++)
		for (size_t e = 0; e < LENGTH(events); e++)
			for (size_t o = 0; o < LENGTH(operations); o++) {
				int status;
				pid_t pid = fork();

				if (pid == 0) {
					try_cell(s, e, o);
					_exit(0);
				}
				MUST(waitpid(pid, &status, 0) == pid);
				wrong += status != 0;
				if (status && !WIFEXITED(status) && !breaks)
					dprintf(2, "%s, %s, %s: signal %d\n", state_names[s],
						event_names[e], operation_names[o],
						WTERMSIG(status));
			}
}

static void all_states(const void *arg)
{
	(void)arg;
	try_all();
	MUST(wrong == 0);
}

/* As before Linux 6.11. */
static void all_states_by_text(const void *arg)
{
	mappings_by_text = true;
	all_states(arg);
}

static void noticed(const void *arg)
{
	(void)arg;
	breaks = true;
	try_all();
	/* In every state but the first there is something to be told. */
	MUST(wrong > 100);
}

/* --- A library -------------------------------------------------------------------------------- */

static uint8_t *page_in(const struct text_library *library)
{
	return library->fn - ((uintptr_t)library->fn & (CODE_PAGE - 1));
}

/* Unloaded while open or aliased, and another is loaded in its place. */
static void unloaded(const void *arg)
{
	enum pc_text_way way = *(const enum pc_text_way *)arg;
	struct text_library first, second;
	uint8_t page[CODE_PAGE];
	int status;
	pid_t pid;

	start_library();
	library_copy(&first);
	library_copy(&second);
	library_open(&first);
	base = page_in(&first);
	MUST((way == PC_TEXT_OPEN ? pc_text_open : pc_text_alias)(base, 1) == 0);
	MUST(pc_patch(first.fn, nops, sizeof(nops)) == 0);
	library_close(&first);
	library_open(&second);
	unlink(first.path);
	unlink(second.path);
	if (page_in(&second) != base)
		child_skip("the second library lies elsewhere");
	memcpy(page, base, CODE_PAGE);
	pid = fork();
	if (pid == 0) {
		MUST(memcmp(page, base, CODE_PAGE) == 0 && code_prot(base) == RX);
		MUST(pc_fini() == 0);
		MUST(memcmp(page, base, CODE_PAGE) == 0 && code_prot(base) == RX);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(pc_fini() == 0 && code_prot(base) == RX && memcmp(page, base, CODE_PAGE) == 0);
}

static void test_unloaded(void **state)
{
	static const enum pc_text_way ways[] = { PC_TEXT_OPEN, PC_TEXT_ALIAS };

	(void)state;
	for (size_t i = 0; i < LENGTH(ways); i++)
		child_must_pass(unloaded, &ways[i]);
}

/* --- The program changes the protection of its own code --------------------------------------- */

/* What it chose last is what is given back. */
static void chosen_since(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX, RX }, 3);
	MUST(open_pages(0, 2) == 0 && pc_text_alias(page_at(2), 1) == 0);
	MUST(mprotect(page_at(0), CODE_PAGE, RW) == 0);
	MUST(mprotect(page_at(2), CODE_PAGE, RO) == 0);
	MUST(patch(page_at(0)) == 0 && patch(page_at(1)) == 0 && patch(page_at(2)) == 0);
	MUST(close_pages(0, 2) == 0 && close_pages(2, 1) == 0);
	must_be((const int[]){ RW, RX, RO });
	/* What is not writable any more is not open. */
	MUST(open_pages(1, 1) == 0 && mprotect(page_at(1), CODE_PAGE, RX) == 0);
	MUST(open_pages(1, 1) == 0 && patch(page_at(1)) == 0);
	MUST(close_pages(1, 1) == 0 && close_pages(1, 1) == -ENOENT);
	must_be((const int[]){ RW, RX, RO });
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(all_states),   child_unit_test(all_states_by_text),
		child_unit_test(noticed),      cmocka_unit_test(test_unloaded),
		child_unit_test(chosen_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
