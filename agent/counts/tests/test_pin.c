/* SPDX-License-Identifier: MIT */
/*
 * An object that is pinned stays while the program closes it, and goes when it is let go. One that
 * was replaced by another of its name, between the look at it and the hold on it, is not pinned.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/counts/base.h"
#include "patchcore/tests/text_library.h"

static struct text_library library;
static bool replaces;

void *__wrap_dlopen(const char *file, int flags);
void *__real_dlopen(const char *file, int flags);

/* It comes back, somewhere else. */
static void replace(void)
{
	uintptr_t at = (uintptr_t)library.fn & ~(uintptr_t)4095;

	library_close(&library);
	MUST(mmap((void *)at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	     MAP_FAILED);
	library_open(&library);
	MUST(((uintptr_t)library.fn & ~(uintptr_t)4095) != at);
}

void *__wrap_dlopen(const char *file, int flags)
{
	if (replaces && flags & RTLD_NOLOAD) {
		replaces = false;
		replace();
	}
	return __real_dlopen(file, flags);
}

static void one_that_stays(const void *arg)
{
	(void)arg;
	library_copy(&library);
	library_open(&library);
	MUST(pin_object(library.fn) == 0 && pin_object(library.fn + 1) == 0);
	MUST(pin_object((const void *)(uintptr_t)pin_object) == 0);
	MUST(dlclose(library.handle) == 0 && code_prot(library.fn) >= 0);
	pins_drop();
	if (code_prot(library.fn) >= 0)
		child_skip("dlclose() does not unload");
	MUST(pin_object(library.fn) == -ENOENT);
	unlink(library.path);
}

static void one_that_is_replaced(const void *arg)
{
	const uint8_t *before;

	(void)arg;
	library_copy(&library);
	library_open(&library);
	before = library.fn;
	replaces = true;
	MUST(pin_object(before) == -ENOENT && !replaces);
	MUST(pin_object(library.fn) == 0);
	pins_drop();
	/* Nothing of it is held. */
	library_close(&library);
	unlink(library.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_test(one_that_stays),
		child_unit_test(one_that_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
