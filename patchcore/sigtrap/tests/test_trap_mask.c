/* SPDX-License-Identifier: MIT */
/*
 * An executor that waits at an INT3 has all signals blocked, and so hides which one it has a use
 * for. It tells of its own mask, and a look at all threads takes another.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

#define FIRST (SIGRTMAX - 1) /* the one that is taken where nothing speaks against it */
#define RUN   5u

static bool is_untold; /* broken: the executor does not tell */
static __thread bool is_executor;
static atomic_bool is_trapped, is_over;

/* The linker hands these calls to us: see local.mk. */
void __real_others_keep_off(uint64_t blocked);
void __wrap_others_keep_off(uint64_t blocked);
bool __wrap_flight_help(struct site *site);

void __wrap_others_keep_off(uint64_t blocked)
{
	if (!is_executor || !is_untold)
		__real_others_keep_off(blocked);
}

static uint64_t pending(void)
{
	uint64_t set = 0;

	MUST(syscall(SYS_rt_sigpending, &set, sizeof(set)) == 0);
	return set >> (SIGRTMIN - 1);
}

/* In the trap handler, from which it does not come back before the look has asked it. */
bool __wrap_flight_help(struct site *site)
{
	(void)site;
	is_trapped = true;
	/* It does not sleep: of a thread that does, /proc tells enough. */
	while (!pending() && !is_over)
		;
	MUST(!(pending() & UINT64_C(1) << (FIRST - SIGRTMIN)));
	return false;
}

static void *execute(void *straddler)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, FIRST);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	is_executor = true;
	MUST(code_run(straddler) == CODE_NEW);
	return NULL;
}

static void look(const void *arg)
{
	static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	uint8_t *page, *straddler, code[CODE_LEN];
	pthread_t thread;

	is_untold = arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	start_by_membarrier();
	page = code_map(1, RWX);
	straddler = code_straddler(page);
	code_put(straddler, CODE_OLD);
	memcpy(page, nops, RUN);
	code_load(code, CODE_NEW);
	MUST(pc_start_patch(straddler, code, CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, execute, straddler) == 0);
	while (!is_trapped)
		usleep(100);
	MUST(pc_patch_merge(page, code, RUN, PC_CHECK_THREADS) == 0);
	is_over = true;
	MUST(pc_drain() == 0 && pthread_join(thread, NULL) == 0);
	MUST(pc_fini() == 0);
}

static void test_told(void **state)
{
	(void)state;
	child_must_pass(look, NULL);
	child_must_fail(look, &is_untold);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
