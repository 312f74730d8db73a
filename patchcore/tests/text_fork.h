/* SPDX-License-Identifier: MIT */
/*
 * Functions on three pages, to be patched on both sides of a fork(). For cmocka
 * tests, which include cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_TEXT_FORK_H
#define PATCHCORE_TESTS_TEXT_FORK_H

#include "patchcore/tests/text_pages.h"

#define FORKS (CHILD_ASAN ? 20 : 200)

static uint8_t *fn; /* a function on an aliased page */

static inline void start(void)
{
	start_library();
	lay_out((const int[]){ RW, RW, RW }, 3);
	for (size_t i = 0; i < 3; i++)
		code_put((uint8_t *)page_at(i) + 64, CODE_OLD);
	MUST(mprotect(base, 3 * CODE_PAGE, RX) == 0);
	fn = base + 64;
}

static inline int try_patch(uint8_t *at, uint32_t number)
{
	uint8_t code[CODE_LEN];

	code_load(code, number);
	return pc_patch(at, code, sizeof(code));
}

static inline void must_patch(uint8_t *at, uint32_t number)
{
	MUST(try_patch(at, number) == 0);
	MUST(code_run(at) == number);
}

static inline void must_end_well(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

/* For tests that fork while other threads run. */
static inline void start_with_threads(void)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer does not follow a fork among threads");
	start();
}

#endif
