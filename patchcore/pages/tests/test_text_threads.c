/* SPDX-License-Identifier: MIT */
/* Several threads, one page: none takes it away from another. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static uint8_t *page;

/* One page, and in it as many straddlers as are asked for. */
static void start(void)
{
	start_by_membarrier();
	page = code_map(1, RX);
}

static uint8_t *straddler(size_t i)
{
	return page + 64 * (i + 1) - 2;
}

static void must_patch(uint8_t *at, uint32_t number)
{
	uint8_t code[CODE_LEN];

	code_load(code, number);
	MUST(pc_patch(at, code, sizeof(code)) == 0);
	MUST(memcmp(at, code, sizeof(code)) == 0);
}

/* --- In an order that is given --------------------------------------------------------------- */

static pthread_t second;
static _Thread_local bool is_second;
static atomic_bool second_is_under_way, first_is_over;

static void *patch_second(void *at)
{
	is_second = true;
	must_patch(at, CODE_NEW);
	return NULL;
}

static void wait_for(atomic_bool *event)
{
	while (!*event)
		sched_yield();
}

/* Each is held up in its first sync: INT3 stands, and the page is still needed. */
static void on_membarrier(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (is_second) {
		second_is_under_way = true;
		wait_for(&first_is_over);
	} else if (!second_is_under_way) {
		MUST(pthread_create(&second, NULL, patch_second, straddler(1)) == 0);
		wait_for(&second_is_under_way);
	}
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

typedef void handler_fn(int signal, siginfo_t *info, void *context);

static void hold_up_membarrier(handler_fn *handler)
{
	/* A thread that the handler starts must be able to take it, too. */
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER };

	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_TRAP);
}

/*
 * The second comes while the first has the page writable, and stores when the
 * first has given it back.
 */
static void one_ends_before(const void *arg)
{
	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer has signals of its own");
	start();
	hold_up_membarrier(on_membarrier);
	must_patch(straddler(0), CODE_NEW);
	first_is_over = true;
	pthread_join(second, NULL);
	MUST(code_prot(page) == RX);
}

/* --- A patcher that takes long, while its page is closed ------------------------------------ */

#define LONG_MS 1500 /* longer than a closer waits for a patcher that sleeps */

static bool sleeps;

static void on_long_membarrier(int signal, siginfo_t *info, void *context)
{
	struct timespec start, now;

	(void)signal;
	(void)info;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		second_is_under_way |= is_second;
		if (is_second && sleeps)
			usleep(100);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (is_second && (sleeps ? !first_is_over
				      : (now.tv_sec - start.tv_sec) * 1000 +
							(now.tv_nsec - start.tv_nsec) / 1000000 <
						LONG_MS));
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

/* The pages stay open where it sleeps without end; where it only lacks the CPU, it is awaited. */
static void closed_meanwhile(const void *arg)
{
	sleeps = arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer has signals of its own");
	start();
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	hold_up_membarrier(on_long_membarrier);
	MUST(pthread_create(&second, NULL, patch_second, straddler(1)) == 0);
	wait_for(&second_is_under_way);
	MUST(pc_text_close(page, CODE_PAGE) == (sleeps ? -ETIMEDOUT : 0));
	MUST(code_prot(page) == (sleeps ? RWX : RX));
	first_is_over = true;
	pthread_join(second, NULL);
	MUST(pc_text_close(page, CODE_PAGE) == (sleeps ? 0 : -ENOENT));
	MUST(code_prot(page) == RX);
}

static void test_closed_meanwhile(void **state)
{
	(void)state;
	child_must_pass(closed_meanwhile, NULL);
	child_must_pass(closed_meanwhile, &sleeps);
}

/* --- As it comes ----------------------------------------------------------------------------- */

#define ROUNDS 3000

static void *patch_often(void *at)
{
	for (int i = 0; i < ROUNDS; i++)
		must_patch(at, i % 2 ? CODE_OLD : CODE_NEW);
	return NULL;
}

static void *open_often(void *at)
{
	for (int i = 0; i < ROUNDS; i++) {
		MUST(pc_text_open(at, 1) == 0);
		MUST(pc_text_close(at, 1) == 0);
	}
	return NULL;
}

static void run_threads(void *(*const fns[])(void *), size_t count)
{
	pthread_t threads[4];

	for (size_t i = 0; i < count; i++)
		MUST(pthread_create(&threads[i], NULL, fns[i], straddler(i)) == 0);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Each makes the page writable for itself. */
static void patched(const void *arg)
{
	static void *(*const fns[])(void *) = { patch_often, patch_often, patch_often };

	(void)arg;
	start();
	run_threads(fns, LENGTH(fns));
	MUST(code_prot(page) == RX);
}

/* In a range that is open, while others come and go on the same page. */
static void open_all_along(const void *arg)
{
	static void *(*const fns[])(void *) = { patch_often, open_often, patch_often, open_often };

	(void)arg;
	start();
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	run_threads(fns, LENGTH(fns));
	MUST(code_prot(page) == RWX);
	MUST(pc_text_close(page, CODE_PAGE) == 0);
	MUST(code_prot(page) == RX);
}

/* Then /proc has nothing of the process by its number. */
static bool main_has_ended(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool ended = !maps || fgetc(maps) == EOF;

	if (maps)
		fclose(maps);
	return ended;
}

static void *patch_behind(void *site)
{
	while (!main_has_ended())
		usleep(1000);
	patch_often(site);
	_exit(0);
}

static void main_ended(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start();
	MUST(pthread_create(&thread, NULL, patch_behind, straddler(0)) == 0);
	pthread_exit(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(one_ends_before), cmocka_unit_test(test_closed_meanwhile),
		child_unit_test(patched),	  child_unit_test(open_all_along),
		child_unit_test(main_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
