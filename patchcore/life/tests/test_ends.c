/* SPDX-License-Identifier: MIT */
/*
 * A thread ends in a signal handler, at any moment of any function. All functions work for the
 * threads that are left, and nothing is locked for ever.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/mapping.h"
#include "patchcore/merge.h"
#include "patchcore/signals.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/scale.h"

#define SITES 16u
#define SPAN  (SITES * FLIGHT_LINE)

static uint8_t *pages;
static uint8_t code[2][CODE_LEN];
static atomic_uint turn; /* its lowest bit: which code */

static const uint8_t *next_code(void)
{
	return code[atomic_fetch_add(&turn, 1) & 1];
}

static void patch_all(void)
{
	for (unsigned i = 0; i < SITES; i++)
		pc_patch(flight_site(pages, i), next_code(), CODE_LEN);
}

static void start_and_drain(void)
{
	for (unsigned i = 0; i < SITES; i++)
		pc_start_patch(flight_site(pages, i), next_code(), CODE_LEN);
	pc_drain();
}

static void patch_batch(void)
{
	struct pc_op ops[SITES];
	const uint8_t *bytes = next_code();

	for (unsigned i = 0; i < SITES; i++)
		ops[i] = (struct pc_op){ flight_site(pages, i), bytes, CODE_LEN, 0 };
	pc_patch_batch(ops, SITES);
}

static void patch_over(void)
{
	pc_patch_over(flight_site(pages, 0), next_code(), CODE_LEN, 3, 1, PC_CHECK_THREADS);
}

static void open_and_close(void)
{
	if (pc_text_open(pages, SPAN) == 0)
		pc_text_close(pages, SPAN);
}

static void alias_and_close(void)
{
	if (pc_text_alias(pages + CODE_PAGE, CODE_PAGE) == 0)
		pc_text_close(pages + CODE_PAGE, CODE_PAGE);
}

static void use_call(void)
{
	struct pc_call call;

	if (pc_call_init(&call, pages + 2 * CODE_PAGE) == 0) {
		pc_activate_call(&call, NULL);
		pc_call_fini(&call);
	}
	pc_forget(pages + 2 * CODE_PAGE, 5);
}

static void set_and_ask(void)
{
	struct pc_signals report;
	struct pc_status status;
	enum pc_text_way way;
	char reason[80];

	pc_set_accept_p(1e-6);
	pc_set_policy(PC_POLICY_MEMBARRIER);
	pc_get_status(&status);
	pc_check_signals(&report);
	pc_text_way(pages, 1, &way, reason, sizeof(reason));
}

static void begin_and_end(void)
{
	pc_fini();
	pc_init();
}

static void (*const functions[])(void) = {
	patch_all,	 start_and_drain, patch_batch, patch_over,    open_and_close,
	alias_and_close, use_call,	  set_and_ask, begin_and_end,
};

/* --- One that ends ---------------------------------------------------------------------------- */

static atomic_bool begun;
static void (*by_handler)(void);

static void exit_by_libc(void)
{
	pthread_exit(NULL);
}

static void exit_by_call(void)
{
	syscall(SYS_exit, 0);
}

static void on_signal(int signal)
{
	(void)signal;
	by_handler();
}

static void *run_for_good(void *function)
{
	for (;;) {
		begun = true;
		((void (*)(void))function)();
	}
	return NULL;
}

static void must_all_work(void)
{
	int ret;

	/* What a thread began that is gone, another finishes or takes over. */
	MUST(pc_init() == 0 && pc_drain() == 0);
	for (unsigned i = 0; i < SITES; i++) {
		do
			ret = pc_patch(flight_site(pages, i), code[0], CODE_LEN);
		while (ret == -EAGAIN);
		MUST(ret == 0 && code_run(flight_site(pages, i)) == CODE_OLD);
	}
	MUST(pc_fini() == 0 && code_prot(pages) == RX && code_prot(pages + CODE_PAGE) == RX);
	MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_MEMBARRIER) == 0);
}

static void end_in(void (*function)(void), unsigned delay)
{
	const struct timespec time = { .tv_nsec = delay };
	pthread_t thread;

	begun = false;
	MUST(pthread_create(&thread, NULL, run_for_good, (void *)function) == 0);
	while (!begun)
		sched_yield();
	nanosleep(&time, NULL);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	must_all_work();
}

static void end_everywhere(const void *way)
{
	struct sigaction action = { .sa_handler = on_signal };
	unsigned rounds = (unsigned)(60 * test_scale()) + 5;

	by_handler = way ? exit_by_call : exit_by_libc;
	code_load(code[0], CODE_OLD);
	code_load(code[1], CODE_NEW);
	sigaction(SIGUSR1, &action, NULL);
	flights_use_membarrier();
	pages = flights_map(3, RWX, SITES);
	pages[2 * CODE_PAGE] = 0xe8;
	MUST(mprotect(pages, 3 * CODE_PAGE, RX) == 0);
	for (unsigned i = 0; i < rounds; i++)
		for (size_t f = 0; f < sizeof(functions) / sizeof(*functions); f++)
			end_in(functions[f], i * 7919 % 400 * 1000);
}

static void test_by_libc(void **state)
{
	(void)state;
	child_must_pass(end_everywhere, NULL);
}

static void test_by_system_call(void **state)
{
	(void)state;
	/* The sanitizer keeps an account of threads, which such an end is not in. */
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(end_everywhere, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_libc),
		cmocka_unit_test(test_by_system_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
