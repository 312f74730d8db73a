/* SPDX-License-Identifier: MIT */
/*
 * Code that the library runs while an INT3 stands may not be patched; that includes the code by
 * which the kernel enters it.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

/* The section that NOPATCH code is in (sys.h). */
extern const char __start_patchcore_nopatch[] __attribute__((visibility("hidden")));
extern const char __stop_patchcore_nopatch[] __attribute__((visibility("hidden")));

#define LEN CODE_LEN

/* What lies before and behind it is of the program, too, which a compiler does not know. */
static uint8_t *code_at(const char *symbol)
{
	__asm__("" : "+r"(symbol));
	return (uint8_t *)(uintptr_t)symbol;
}

static uint8_t *first(void)
{
	return code_at(__start_patchcore_nopatch);
}

static uint8_t *end(void)
{
	return code_at(__stop_patchcore_nopatch);
}

static void start(void)
{
	start_by_membarrier();
	MUST(first() < end());
}

/* With its own bytes: were it not refused, no harm would be done. */
static void must_refuse(uint8_t *at, size_t len)
{
	uint8_t bytes[PC_PATCH_MAX];
	struct pc_op op = { .addr = at, .bytes = bytes, .len = len };
	struct pc_call call;

	memcpy(bytes, at, len);
	if (bytes[0] == CODE_INT3)
		bytes[0] = CODE_NOP;
	MUST(pc_patch(at, bytes, len) == -EPERM);
	MUST(pc_patch_starts(at, bytes, len, 1) == -EPERM);
	MUST(pc_start_patch(at, bytes, len) == -EPERM);
	MUST(pc_patch_batch(&op, 1) == -EPERM && op.result == -EPERM);
	if (len >= 2) {
		MUST(pc_patch_merge(at, bytes, len, PC_NOBODY_INSIDE) == -EPERM);
		MUST(pc_patch_merge(at, bytes, len, PC_CHECK_THREADS) == -EPERM);
	}
	MUST(pc_call_init(&call, at) == -EPERM);
	MUST(memcmp(at, bytes, len) == 0 || bytes[0] == CODE_NOP);
	MUST(code_prot(at) == RX);
}

static void refused(const void *arg)
{
	(void)arg;
	start();
	for (uint8_t *at = first(); at < end(); at += 61)
		for (size_t len = 1; len <= PC_PATCH_MAX && at + len <= end(); len += 2)
			must_refuse(at, len);
	must_refuse(end() - 1, 1);
	MUST(pc_drain() == 0);
	MUST(pc_fini() == 0);
}

/* A change that reaches into it, and one that ends where it begins. */
static void edges(const void *arg)
{
	uint8_t bytes[PC_PATCH_MAX], *at = first() - LEN;

	(void)arg;
	start();
	memcpy(bytes, at, sizeof(bytes));
	if (bytes[0] == CODE_INT3 || bytes[0] == 0x90)
		child_skip("padding before the section");
	for (size_t len = LEN + 1; len <= PC_PATCH_MAX; len++)
		MUST(pc_patch(at, bytes, len) == -EPERM);
	MUST(pc_patch(at, bytes, LEN) == 0);
	MUST(pc_fini() == 0);
}

/* Others of the batch are made. */
static void batch(const void *arg)
{
	uint8_t *page = code_map(1, RWX), bytes[LEN];
	struct pc_op ops[3] = {
		{ .addr = code_straddler(page), .bytes = bytes, .len = LEN },
		{ .addr = first(), .bytes = bytes, .len = LEN },
		{ .addr = page, .bytes = bytes, .len = LEN },
	};

	(void)arg;
	start();
	code_put(code_straddler(page), CODE_OLD);
	code_put(page, CODE_OLD);
	code_load(bytes, CODE_NEW);
	MUST(pc_patch_batch(ops, 3) == -EPERM);
	MUST(ops[0].result == 0 && ops[1].result == -EPERM && ops[2].result == 0);
	MUST(code_run(page) == CODE_NEW && code_run(code_straddler(page)) == CODE_NEW);
	MUST(pc_fini() == 0);
}

static bool is_own(const void *at)
{
	return (const char *)at >= __start_patchcore_nopatch &&
	       (const char *)at < __stop_patchcore_nopatch;
}

/* As the kernel has it: handler, and what it returns by. */
static void entered(const void *arg)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} kernel = { 0 };

	(void)arg;
	start();
	MUST(syscall(SYS_rt_sigaction, SIGTRAP, NULL, &kernel, sizeof(kernel.mask)) == 0);
	MUST(is_own(kernel.handler));
	MUST(is_own(kernel.restorer));
	MUST(pc_fini() == 0);
}

#define CASE(name)                                                                                 \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		child_must_pass(name, NULL);                                                       \
	}

CASE(refused)
CASE(edges)
CASE(batch)
CASE(entered)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
