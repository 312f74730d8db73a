/* SPDX-License-Identifier: MIT */
/*
 * Changes in flight when the system begins to refuse: each has a way out, and what is
 * finished is finished once.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/tests/barrier.h"
#include "patchcore/tests/call_site.h"

#define LIMIT 60 /* seconds */

static uint8_t *pages, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

static void map(void)
{
	alarm(LIMIT);
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	pages = flights_map(1, RX, 32);
	site = flight_site(pages, 10);
}

/* With membarrier as it is now: a change may be refused, and the code is whole. */
static void must_be_free(void)
{
	uint32_t number = code_run(site);
	int ret = pc_patch(site, number == CODE_NEW ? old_code : new_code, CODE_LEN);

	MUST(ret == 0 || ret == -EPERM || ret == -ENOTSUP);
	MUST(code_run(site) == (ret == 0 ? CODE_OLD + CODE_NEW - number : number));
	/* The first may still tell of what was taken back. */
	ret = pc_drain();
	MUST((ret == 0 || ret == -ECANCELED) && pc_drain() == 0);
	MUST(code_prot(site) == RX && pc_fini() == 0);
}

/* --- A change that is started, and then membarrier is forbidden for good --------------------- */

static void *run_site(void *number)
{
	*(uint32_t *)number = code_run(site);
	return NULL;
}

static uint32_t run_in_thread(void)
{
	uint32_t number = 0;
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run_site, &number) == 0);
	pthread_join(thread, NULL);
	return number;
}

static int finish(void)
{
	int ret;

	while ((ret = pc_finish_patch(site)) > 0)
		;
	return ret;
}

static int drain(void)
{
	return pc_drain();
}

typedef int way_fn(void);

/* The first thread that asks is told; the executors run what was there. */
static void forbidden(const void *arg)
{
	way_fn *way = *(way_fn *const *)arg;

	flights_use_membarrier();
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	flights_filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	MUST(way() == -ECANCELED && flight_look(site) == FLIGHT_OLD);
	MUST(run_in_thread() == CODE_OLD);
	must_be_free();
}

static void test_forbidden(void **state)
{
	way_fn *ways[] = { finish, drain };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		child_must_pass(forbidden, &ways[i]);
}

static void executor_comes_first(const void *arg)
{
	way_fn *way = *(way_fn *const *)arg;

	flights_use_membarrier();
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	flights_filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	MUST(run_in_thread() == CODE_OLD);
	MUST(way() == -ECANCELED);
	if (way == drain)
		MUST(way() == 0);
	MUST(flight_look(site) == FLIGHT_OLD);
	must_be_free();
}

/* An executor does not hang at an INT3 for which no sync can be had; the caller is told later. */
static void test_executor_comes_first(void **state)
{
	way_fn *ways[] = { finish, drain };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		child_must_pass(executor_comes_first, &ways[i]);
}

static int close_another(void)
{
	uint8_t *another = code_map(1, RX);

	MUST(pc_text_open(another, 1) == 0);
	return pc_text_close(another, 1);
}

static int fork_once(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(pc_drain() == -ECANCELED ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

/* A drain that the library makes for itself leaves the error to the next caller. */
static void taken_back_on_the_way(const void *arg)
{
	way_fn *way = *(way_fn *const *)arg;

	flights_use_membarrier();
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	flights_filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	MUST(way() == 0 && flight_look(site) == FLIGHT_OLD);
	MUST(pc_drain() == -ECANCELED && pc_drain() == 0);
	must_be_free();
}

static void test_taken_back_on_the_way(void **state)
{
	way_fn *ways[] = { close_another, fork_once };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		child_must_pass(taken_back_on_the_way, &ways[i]);
}

static void forbidden_half_way(const void *arg)
{
	bool executor_first = *(const bool *)arg;

	flights_use_membarrier();
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	MUST(pc_finish_patch(site) == PC_SECOND_WAIT && flight_look(site) == FLIGHT_INT3_NEW);
	flights_filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	if (executor_first)
		MUST(run_in_thread() == CODE_NEW);
	MUST(pc_drain() == 0 && flight_look(site) == FLIGHT_NEW);
	must_be_free();
}

/* Once the back part is there, the change can only go forward. */
static void test_forbidden_half_way(void **state)
{
	static const bool first[] = { false, true };

	(void)state;
	child_must_pass(forbidden_half_way, &first[0]);
	child_must_pass(forbidden_half_way, &first[1]);
}

/* --- Membarrier that fails under a patcher
 * ---------------------------------------------------------- */

static int syncs, works; /* how many were asked for, and how many of them work */
static bool run_in_sync; /* the patcher's own handler runs the site */
static uint32_t ran;

static int fail_from_then_on(void)
{
	int nth = syncs++;

	if (run_in_sync && nth == works) {
		run_in_sync = false;
		ran = code_run(site);
	}
	return nth < works ? 0 : -EPERM;
}

static int by_patch(void)
{
	return pc_patch(site, new_code, CODE_LEN);
}

static int by_batch(void)
{
	struct pc_op op = { .addr = site, .bytes = new_code, .len = CODE_LEN };

	return pc_patch_batch(&op, 1);
}

static int by_drain(void)
{
	int ret = pc_start_patch(site, new_code, CODE_LEN);

	return ret < 0 ? ret : pc_drain();
}

static int by_finish(void)
{
	int ret = pc_start_patch(site, new_code, CODE_LEN);

	return ret < 0 ? ret : finish();
}

struct failure {
	way_fn *way;
	int works;
	bool run; /* the site, in a handler of the patcher, at that sync */
	int ret;
};

static void fails(const void *arg)
{
	const struct failure *failure = arg;
	bool made = failure->ret == 0;

	flights_use_membarrier();
	map();
	works = failure->works;
	run_in_sync = failure->run;
	barrier_play(fail_from_then_on);
	MUST(failure->way() == failure->ret);
	MUST(flight_look(site) == (made ? FLIGHT_NEW : FLIGHT_OLD));
	MUST(!failure->run || ran == (made ? CODE_NEW : CODE_OLD));
	must_be_free();
}

/* For good, from the first sync on or from the second. Neither hangs. */
static void test_fails(void **state)
{
	static const struct failure failures[] = {
		{ by_patch, 0, false, -EPERM },	     { by_patch, 0, true, -EPERM },
		{ by_patch, 1, false, 0 },	     { by_patch, 1, true, 0 },
		{ by_batch, 0, false, -EPERM },	     { by_batch, 0, true, -EPERM },
		{ by_batch, 1, false, 0 },	     { by_batch, 1, true, 0 },
		{ by_drain, 0, false, -ECANCELED },  { by_drain, 0, true, -ECANCELED },
		{ by_drain, 1, false, 0 },	     { by_drain, 1, true, 0 },
		{ by_finish, 0, false, -ECANCELED }, { by_finish, 0, true, -ECANCELED },
		{ by_finish, 1, false, 0 },	     { by_finish, 1, true, 0 },
	};
	size_t i = (size_t)*state;

	child_must_pass(fails, &failures[i]);
}

/* --- Once
 * -------------------------------------------------------------------------------------------- */

static struct pc_call call;
static atomic_bool left;

/* The thread ends here, in the middle of a change. */
static int end_thread(void)
{
	if (left)
		return 0;
	left = true;
	atomic_store(&barrier_now, NULL);
	/* Of which the address sanitizer would not know. */
	if (!CHILD_ASAN)
		syscall(SYS_exit, 0);
	pthread_exit(NULL);
	return 0;
}

static void *move_call(void *unused)
{
	pc_activate_call(&call, two);
	return unused;
}

static void *run_call(void *number)
{
	*(uint32_t *)number = call_run(call.addr);
	return NULL;
}

/*
 * A thread that finishes the last change of a call does not turn it on again if it was turned off
 * since.
 */
static void turned_off(const void *arg)
{
	static const struct place front = { CALL_NEAR, 3 };
	uint32_t number = 0;
	pthread_t thread;

	(void)arg;
	alarm(LIMIT);
	flights_use_membarrier();
	call_pages();
	MUST(pc_call_init(&call, put_call(place_at(&front), front.form)) == 0);
	MUST(mprotect(code, CODE_PAGES * CODE_PAGE, RX) == 0);
	barrier_play(end_thread);
	MUST(pthread_create(&thread, NULL, move_call, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(left && *call.addr == CODE_INT3);
	/* An executor finishes what the thread has left; the pages are still to be given back. */
	MUST(pthread_create(&thread, NULL, run_call, &number) == 0);
	pthread_join(thread, NULL);
	MUST(number == TWO);
	MUST(pc_deactivate_call(&call) == 0 && call_run(call.addr) == OFF);
	MUST(pc_drain() == 0);
	MUST(call_run(call.addr) == OFF);
	MUST(pc_fini() == 0 && call_run(call.addr) == OFF && code_prot(code) == RX);
}

#define FAILS(i)                                                                                   \
	{                                                                                          \
		"test_fails " #i, test_fails, NULL, NULL, (void *)(i)                              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forbidden),
		cmocka_unit_test(test_executor_comes_first),
		cmocka_unit_test(test_taken_back_on_the_way),
		cmocka_unit_test(test_forbidden_half_way),
		child_unit_test(turned_off),
		FAILS(0),
		FAILS(1),
		FAILS(2),
		FAILS(3),
		FAILS(4),
		FAILS(5),
		FAILS(6),
		FAILS(7),
		FAILS(8),
		FAILS(9),
		FAILS(10),
		FAILS(11),
		FAILS(12),
		FAILS(13),
		FAILS(14),
		FAILS(15),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
