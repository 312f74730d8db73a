/* SPDX-License-Identifier: MIT */
/*
 * A library that is loaded where another was unloaded: what is changed there is not taken
 * for the other's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/flights.h"

#define LIBRARY	 "patchcore/tests/day/.libs/day_library.so"
#define SITE	 "day_library_1"
#define LONG_ONE UINT64_C(50000000) /* ticks: longer than all that comes between */

struct copy {
	char path[64];
	void *handle;
	uint8_t *site;
};

static void copy_load(struct copy *copy)
{
	int from = open(LIBRARY, O_RDONLY), to;
	char buffer[4096];
	ssize_t n;

	if (from < 0)
		child_skip("built without shared libraries");
	strcpy(copy->path, "/tmp/test_reload.XXXXXX");
	to = mkstemp(copy->path);
	MUST(to >= 0);
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		MUST(write(to, buffer, (size_t)n) == n);
	close(from);
	close(to);
	copy->handle = dlopen(copy->path, RTLD_NOW | RTLD_LOCAL);
	unlink(copy->path);
	MUST(copy->handle);
	copy->site = dlsym(copy->handle, SITE);
	MUST(copy->site);
}

/* Its site becomes known, and the library sees that it is loaded. */
static void change_and_unload(struct copy *copy, bool forget)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_NEW);
	MUST(pc_patch(copy->site, bytes, CODE_LEN) == 0);
	MUST(code_run(copy->site) == CODE_NEW);
	if (forget)
		MUST(pc_forget(copy->site, CODE_LEN) == 0);
	MUST(dlclose(copy->handle) == 0);
	if (code_prot(copy->site) >= 0)
		child_skip("dlclose() does not unload");
}

static void reload(const void *forget)
{
	static const uint8_t bytes[CODE_LEN] = { 0xb8, 0x24, 0x23, 0x22, 0x21 };
	uint8_t *pages = flights_map(1, RX, 1);
	struct copy first, second;

	flights_use_wait(LONG_ONE, LONG_ONE);
	copy_load(&first);
	change_and_unload(&first, *(const bool *)forget);
	copy_load(&second);
	if (second.site != first.site)
		child_skip("it is loaded elsewhere");
	MUST(code_run(second.site) == CODE_OLD);
	MUST(pc_start_patch(second.site, bytes, CODE_LEN) == 0);
	MUST(second.site[0] == CODE_INT3);
	/* A site that is new makes the library look for objects that are gone. */
	MUST(pc_start_patch(flight_site(pages, 0), bytes, CODE_LEN) == 0);
	MUST(code_run(second.site) == CODE_NEW);
	MUST(code_run(flight_site(pages, 0)) == CODE_NEW);
	MUST(pc_drain() == 0);
	MUST(code_prot(second.site) == RX);
	MUST(pc_forget(second.site, CODE_LEN) == 0);
	MUST(pc_fini() == 0);
}

static void test_forgotten(void **state)
{
	static const bool forget = true;

	(void)state;
	child_must_pass(reload, &forget);
}

static void test_not_forgotten(void **state)
{
	static const bool forget = false;

	(void)state;
	child_must_pass(reload, &forget);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
