/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "patchcore/signals.h"
#include "patchcore/tests/trap_case.h"

/*
 * mov r11, rsp; mov rsp, rdi; then the site; mov rsp, r11; ret. The stack that
 * it is given is none, so a signal can be taken on the alternate one only.
 */
static void put_stackless(void)
{
	static const uint8_t before[] = { 0x49, 0x89, 0xe3, 0x48, 0x89, 0xfc };
	static const uint8_t after[] = { 0x4c, 0x89, 0xdc, 0xc3 };

	memcpy(site - sizeof(before), before, sizeof(before));
	memcpy(site + CODE_LEN, after, sizeof(after));
}

/* What pc_check_signals() says that a trap takes. A sanitizer makes it more. */
static size_t small_stack(void)
{
	struct pc_signals report;

	MUST(pc_check_signals(&report) == 0 || CHILD_TSAN); /* whose own thread blocks all */
	return report.stack_need + (CHILD_ASAN || CHILD_TSAN ? 65536 : 0);
}

/* At the end of a page, with a page before it that must not be touched. */
static void *execute_stackless(void *unused)
{
	size_t size = small_stack(), pages = 2 + size / CODE_PAGE;
	uint8_t *stack = code_map(pages, PROT_READ | PROT_WRITE);
	stack_t small = { .ss_sp = stack + pages * CODE_PAGE - size, .ss_size = size };
	uint32_t (*fn)(uint64_t) = (uint32_t(*)(uint64_t))(uintptr_t)(site - 6);

	(void)unused;
	if (mprotect(stack, CODE_PAGE, PROT_NONE) < 0 || sigaltstack(&small, NULL) < 0)
		child_skip("no stack as small as that");
	result = fn(8);
	small.ss_flags = SS_DISABLE;
	sigaltstack(&small, NULL);
	return NULL;
}

static void small_alternate_stack(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	put_stackless();
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute_stackless, NULL) == 0);
	wait_for_traps(1);
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

static void test_small_alternate_stack(void **state)
{
	(void)state;
	child_must_pass(small_alternate_stack, NULL);
}

/* --- The smallest stack that a thread can have, and no alternate one ----------------------- */

static void least_thread_stack(const void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	word = put_int3();
	MUST(pthread_attr_init(&attr) == 0);
	if (pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)) != 0)
		child_skip("no thread with a stack as small as that");
	MUST(pthread_create(&thread, &attr, execute, site) == 0);
	wait_for_traps(1);
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

static void test_least_thread_stack(void **state)
{
	(void)state;
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(least_thread_stack, NULL);
}

/* --- An executor that is itself a handler on an alternate stack ------------------------------ */

static void execute_in_handler(int signal)
{
	(void)signal;
	result = code_run(site);
}

/* Room for its own frame, what it calls, and the trap's. */
static void *execute_on_alternate(void *unused)
{
	struct sigaction action = { .sa_handler = execute_in_handler, .sa_flags = SA_ONSTACK };
	size_t size = 2 * small_stack();
	stack_t stack = { .ss_sp = code_map(2 + size / CODE_PAGE, PROT_READ | PROT_WRITE),
			  .ss_size = size };

	(void)unused;
	MUST(sigaction(SIGUSR1, &action, NULL) == 0 && sigaltstack(&stack, NULL) == 0);
	MUST(raise(SIGUSR1) == 0);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return NULL;
}

static void handler_on_alternate(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute_on_alternate, NULL) == 0);
	wait_for_traps(1);
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

static void test_handler_on_alternate(void **state)
{
	(void)state;
	if (CHILD_TSAN) /* It calls handlers when it likes. */
		skip();
	child_must_pass(handler_on_alternate, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_alternate_stack),
		cmocka_unit_test(test_least_thread_stack),
		cmocka_unit_test(test_handler_on_alternate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
