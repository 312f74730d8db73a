/* SPDX-License-Identifier: MIT */
/*
 * The shared library loaded, used, shut down and closed by a program that knows
 * it by name only: what it took is given back, and it can be had again.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define LIBRARY ".libs/libpatchcore.so.0"

static struct {
	void *handle;
	int (*init)(void);
	int (*fini)(void);
	int (*patch)(void *, const void *, size_t);
	int (*start)(void *, const void *, size_t);
	int (*open)(void *, size_t);
	int (*alias)(void *, size_t);
} lib;

static void *symbol(const char *name)
{
	void *at = dlsym(lib.handle, name);

	MUST(at);
	return at;
}

static void load(void)
{
	lib.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib.handle)
		child_skip("built without a shared library");
	lib.init = (int (*)(void))symbol("pc_init");
	lib.fini = (int (*)(void))symbol("pc_fini");
	lib.patch = (int (*)(void *, const void *, size_t))symbol("pc_patch");
	lib.start = (int (*)(void *, const void *, size_t))symbol("pc_start_patch");
	lib.open = (int (*)(void *, size_t))symbol("pc_text_open");
	lib.alias = (int (*)(void *, size_t))symbol("pc_text_alias");
}

static void own_handler(int signal)
{
	(void)signal;
}

static bool is_own(void)
{
	struct sigaction now;

	MUST(sigaction(SIGTRAP, NULL, &now) == 0);
	return now.sa_handler == own_handler;
}

/* Everything is left as one can leave it: pages open and aliased, a change in flight. */
static void use(uint8_t *pages, uint32_t number)
{
	uint8_t *straddler = code_straddler(pages), *other = code_straddler(pages + CODE_PAGE);
	uint8_t bytes[CODE_LEN];
	int ret;

	code_load(bytes, number);
	load();
	MUST(lib.init() == 0 && !is_own());
	MUST(lib.open(pages, CODE_PAGE) == 0);
	MUST(lib.alias(pages + CODE_PAGE, CODE_PAGE) == 0);
	ret = lib.patch(other, bytes, CODE_LEN);
	if (ret == -ENOTSUP)
		child_skip("no policy is to be had here");
	MUST(ret == 0);
	MUST(lib.start(straddler, bytes, CODE_LEN) == 0);
	MUST(lib.fini() == 0);
	MUST(dlclose(lib.handle) == 0);
	MUST(is_own());
	MUST(code_prot(pages) == RX && code_prot(pages + CODE_PAGE) == RX);
	MUST(code_run(straddler) == number && code_run(other) == number);
}

static void unload(const void *arg)
{
	struct sigaction own = { .sa_handler = own_handler };
	uint8_t *pages = code_map(2, RWX);

	(void)arg;
	conf_use_none();
	MUST(sigaction(SIGTRAP, &own, NULL) == 0);
	code_put(code_straddler(pages), CODE_OLD);
	code_put(code_straddler(pages + CODE_PAGE), CODE_OLD);
	MUST(mprotect(pages, 2 * CODE_PAGE, RX) == 0);
	for (int i = 0; i < 20; i++)
		use(pages, i % 2 ? CODE_OLD : CODE_NEW);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { child_unit_test(unload) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
