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

#include "patchcore/merge.h"
#include "patchcore/merge/frames.h"
#include "patchcore/merge/others.h"
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

/* Of exactly that size, with a page below it that must not be touched. */
static stack_t make_small(void)
{
	size_t size = small_stack();
	uint8_t *stack = code_map(2 + size / CODE_PAGE, PROT_READ | PROT_WRITE);

	MUST(mprotect(stack, CODE_PAGE, PROT_NONE) == 0);
	return (stack_t){ .ss_sp = stack + CODE_PAGE, .ss_size = size };
}

static void *execute_stackless(void *unused)
{
	stack_t small = make_small();
	uint32_t (*fn)(uint64_t) = (uint32_t(*)(uint64_t))(uintptr_t)(site - 6);

	(void)unused;
	if (sigaltstack(&small, NULL) < 0)
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

/* --- The other handler: every thread is looked at ------------------------------------------ */

static atomic_bool stop, ready;

static uint8_t nops[CODE_LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

/* In a handler itself, on the thread's stack, so that the search has a frame to find. */
static void spin_in_handler(int signal)
{
	(void)signal;
	ready = true;
	while (!stop)
		;
}

static void *spin_with_stack(void *arg)
{
	const stack_t *small = arg;

	if (sigaltstack(small, NULL) < 0)
		child_skip("no stack as small as that");
	signal(SIGUSR1, spin_in_handler);
	MUST(raise(SIGUSR1) == 0);
	return arg;
}

/* Merge while a thread has that alternate stack. */
static void look_on(stack_t *stack)
{
	pthread_t thread;

	memcpy(site, nops, sizeof(nops));
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	MUST(pthread_create(&thread, NULL, spin_with_stack, stack) == 0);
	while (!ready)
		sched_yield();
	for (int i = 0; i < 100; i++) {
		MUST(pc_patch_merge(site, new_code, CODE_LEN, PC_CHECK_THREADS) == 0);
		MUST(pc_patch(site, nops, sizeof(nops)) == 0);
	}
	stop = true;
	pthread_join(thread, NULL);
}

static void looked_at(const void *arg)
{
	stack_t small;

	(void)arg;
	start_without_conf();
	small = make_small();
	look_on(&small);
}

static void test_looked_at(void **state)
{
	(void)state;
	if (CHILD_TSAN) /* It delivers signals when it likes. */
		skip();
	child_must_pass(looked_at, NULL);
}

/* --- What each of the two takes -------------------------------------------------------------- */

#define MEASURED_STACK 65536u
#define UNTOUCHED      UINT64_C(0xa5a5a5a5a5a5a5a5)

static uint64_t *paint(stack_t *stack)
{
	uint64_t *words =
		(uint64_t *)(void *)code_map(MEASURED_STACK / CODE_PAGE, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < MEASURED_STACK / sizeof(*words); i++)
		words[i] = UNTOUCHED;
	*stack = (stack_t){ .ss_sp = words, .ss_size = MEASURED_STACK };
	return words;
}

static bool is_restorer(uint64_t word)
{
	struct frames frames = { .nests = false };
	int known = frames_learn(&frames);

	for (int i = 0; i < known; i++)
		if (frames.restorers[i] == word)
			return true;
	return false;
}

/* Bytes below the kernel's frame, which begins with the restorer's address. */
static void must_take_less(const uint64_t *words, size_t said, const char *what)
{
	size_t first = 0, frame;

	while (words[first] == UNTOUCHED)
		first++;
	for (frame = first; !is_restorer(words[frame]); frame++)
		MUST(frame < MEASURED_STACK / sizeof(*words));
	dprintf(2, "%s: %zu bytes of %zu\n", what, (frame - first) * sizeof(*words), said);
	MUST((frame - first) * sizeof(*words) <= said);
}

static void *execute_on(void *stack)
{
	uint32_t (*fn)(uint64_t) = (uint32_t(*)(uint64_t))(uintptr_t)(site - 6);

	MUST(sigaltstack(stack, NULL) == 0);
	result = fn(8);
	return NULL;
}

static void measured_trap(const void *arg)
{
	pthread_t thread;
	struct word *word;
	uint64_t *words;
	stack_t stack;

	(void)arg;
	start_without_conf();
	put_stackless();
	words = paint(&stack);
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute_on, &stack) == 0);
	/* It has backed off by then. */
	wait_for_traps(3);
	put_rest(word);
	pthread_join(thread, NULL);
	must_take_less(words, TRAP_STACK, "a trap");
}

static void measured_look(const void *arg)
{
	uint64_t *words;
	stack_t stack;

	(void)arg;
	start_without_conf();
	words = paint(&stack);
	look_on(&stack);
	must_take_less(words, OTHERS_STACK, "a look");
}

static void test_measured(void **state)
{
	(void)state;
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(measured_trap, NULL);
	child_must_pass(measured_look, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looked_at),
		cmocka_unit_test(test_measured),
		child_unit_test(small_alternate_stack),
		cmocka_unit_test(test_least_thread_stack),
		cmocka_unit_test(test_handler_on_alternate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
