/* SPDX-License-Identifier: MIT */
/*
 * Code that a trap handler may not read by the rights that the kernel gives it. Skipped without
 * protection keys; patchcore/pages/tests/pkeys-in-qemu runs it on a processor that has them.
 */
#define _GNU_SOURCE /* pkey_alloc() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/merge.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/trap_case.h"

/* --- The rights ---------------------------------------------------------------------------- */

/* What the kernel says of it: it gives keys only if the processor has them. */
static bool kernel_has_keys(void)
{
	int key = pkey_alloc(0, 0);

	if (key < 0)
		return false;
	pkey_free(key);
	return true;
}

static void test_known(void **state)
{
	(void)state;
	assert_int_equal(pkeys_on, kernel_has_keys());
}

static void rights(const void *arg)
{
	uint32_t before, opened;

	(void)arg;
	before = pkeys_open();
	opened = pkeys_open();
	pkeys_close(before);
	MUST(opened == 0 && pkeys_open() == before);
	pkeys_close(before);
	MUST(!pkeys_on || before != 0);
}

/* --- Traps that find the code protected ------------------------------------------------------ */

#define ROUNDS 20

typedef void protect_fn(void);

/* To run and nothing else: the kernel has a key for that. */
static void protect_by_kernel(void)
{
	MUST(mprotect(page, CODE_PAGE, PROT_EXEC) == 0);
}

static void protect_by_key(void)
{
	static int key;

	if (!key)
		key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	MUST(key > 0 && pkey_mprotect(page, CODE_PAGE, RX, key) == 0);
}

static void unprotect(void)
{
	MUST(pkey_mprotect(page, CODE_PAGE, RWX, 0) == 0);
}

/* The code is whole and protected before the executor, in the handler, sees the site free. */
static void trap_late(protect_fn *protect)
{
	uint64_t before = trap_count();
	struct word *word = put_int3();
	pthread_t thread;

	result = 0;
	MUST(pthread_create(&thread, NULL, execute, site) == 0);
	wait_for_traps(before + 1);
	word_put_back(word);
	word_put_front(word);
	protect();
	usleep(1000);
	word_release(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
	unprotect();
	code_put(site, CODE_OLD);
}

static void need_keys(void)
{
	if (!pkeys_on)
		child_skip("no protection keys here");
	start_without_conf();
}

static void late(const void *arg)
{
	protect_fn *const *protect = arg;

	need_keys();
	for (int i = 0; i < ROUNDS; i++)
		trap_late(*protect);
}

static void test_late(void **state)
{
	static protect_fn *const ways[] = { protect_by_kernel, protect_by_key };

	(void)state;
	child_must_pass(late, &ways[0]);
	child_must_pass(late, &ways[1]);
}

static atomic_bool stop;

static void *run_on(void *unused)
{
	while (!stop) {
		uint32_t got = code_run(site);

		MUST(got == CODE_OLD || got == CODE_NEW);
	}
	return unused;
}

/* With the public functions alone, of code that only runs. */
static int by_patch(const uint8_t *bytes)
{
	return pc_patch(site, bytes, CODE_LEN);
}

/* The byte behind the opcode is declared a start: so all threads are looked at. */
static int by_over(const uint8_t *bytes)
{
	return pc_patch_over(site, bytes, CODE_LEN, 3, 1, PC_CHECK_THREADS);
}

typedef int change_fn(const uint8_t *bytes);

static void patched(const void *arg)
{
	change_fn *const *change = arg;
	pthread_t thread;

	need_keys();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	protect_by_kernel();
	MUST(pthread_create(&thread, NULL, run_on, NULL) == 0);
	for (int i = 0; i < 20 * ROUNDS; i++) {
		MUST((*change)(i % 2 ? old_code : new_code) == 0);
		MUST(code_prot(site) == PROT_EXEC);
	}
	stop = true;
	pthread_join(thread, NULL);
}

static void test_patched(void **state)
{
	static change_fn *const ways[] = { by_patch, by_over };

	(void)state;
	child_must_pass(patched, &ways[0]);
	child_must_pass(patched, &ways[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		child_unit_test(rights),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_patched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
