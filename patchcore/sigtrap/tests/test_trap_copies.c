/* SPDX-License-Identifier: MIT */
/*
 * Two copies of the library in one process: this program's own, whose functions others see, and
 * the shared one, as a plugin brings it.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/batch.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define LIBRARY ".libs/libpatchcore.so.0"
#define CHANGES 2000

static struct {
	__typeof__(pc_init) *init;
	__typeof__(pc_fini) *fini;
	__typeof__(pc_patch) *patch;
	__typeof__(pc_set_policy) *set_policy;
} other;

static void load(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	conf_use_none();
	if (!handle)
		child_skip("built without a shared library");
	other.init = (__typeof__(other.init))dlsym(handle, "pc_init");
	other.fini = (__typeof__(other.fini))dlsym(handle, "pc_fini");
	other.patch = (__typeof__(other.patch))dlsym(handle, "pc_patch");
	other.set_policy = (__typeof__(other.set_policy))dlsym(handle, "pc_set_policy");
	MUST(other.init && other.fini && other.patch && other.patch != pc_patch);
}

/* A page that is made writable for each change. */
static void *patch_often(void *page)
{
	const uint8_t nops[] = { CODE_NOP, CODE_NOP };

	for (int i = 0; i < CHANGES; i++)
		MUST(other.patch((uint8_t *)page + 64, nops, sizeof(nops)) == -ESHUTDOWN);
	return NULL;
}

static void refused(const void *arg)
{
	const uint8_t nops[] = { CODE_NOP, CODE_NOP };
	uint8_t *page = code_map(1, RX);
	pthread_t thread;

	(void)arg;
	load();
	MUST(pc_init() == 0 && pc_init() == 0);
	MUST(other.init() == -EEXIST && other.fini() == 0);
	MUST(pthread_create(&thread, NULL, patch_often, page) == 0);
	for (int i = 0; i < CHANGES; i++)
		MUST(pc_patch(page + 128, nops, sizeof(nops)) == 0);
	pthread_join(thread, NULL);
	MUST(code_prot(page) == RX);
	/* One after the other they work, in either order. */
	MUST(pc_fini() == 0 && other.init() == 0 && pc_init() == -EEXIST);
	MUST(pc_patch(page, nops, sizeof(nops)) == -ESHUTDOWN);
	MUST(other.fini() == 0 && pc_init() == 0 && other.init() == -EEXIST);
	MUST(pc_patch(page, nops, sizeof(nops)) == 0 && pc_fini() == 0);
}

/* The program's functions have the same names, and its copy was not initialised. */
static void calls_itself(const void *arg)
{
	uint8_t *page = code_map(1, RX), *site = code_straddler(page), code[CODE_LEN];

	(void)arg;
	code_load(code, CODE_NEW);
	load();
	MUST(dlsym(RTLD_DEFAULT, "pc_patch_how") == (void *)(uintptr_t)pc_patch_how);
	MUST(other.init() == 0);
	MUST(other.patch(page, code, 2) == 0);
	if (other.set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	MUST(other.patch(site, code, CODE_LEN) == 0 && other.fini() == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(refused),
		child_unit_test(calls_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
