/* SPDX-License-Identifier: MIT */
/*
 * The baselines change code as pc_patch() does: old or new, nothing else, and
 * nothing old after the return.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <cmocka.h>

#include "bench/peers/ways.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/scale.h"

#define EXECUTORS 3
#define PATCHES	  240 /* at scale 1 */

struct stopper {
	int (*open)(void);
	int (*patch)(void *addr, const void *bytes, size_t len);
	void (*close)(void);
};

static int open_nothing(void)
{
	return 0;
}

static void close_nothing(void)
{
}

static const struct stopper stop_way = { open_nothing, baseline_stop_patch, close_nothing };
static const struct stopper ptrace_way = { baseline_ptrace_open, baseline_ptrace_patch,
					   baseline_ptrace_close };

static void open_way(const struct stopper *way)
{
	int ret;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	ret = way->open();
	if (ret == -EPERM)
		child_skip("no process may trace another here");
	MUST(ret == 0);
}

#define BOTH(name)                                                                                 \
	static void test_##name##_stop(void **state)                                               \
	{                                                                                          \
		(void)state;                                                                       \
		child_must_pass(name, &stop_way);                                                  \
	}                                                                                          \
	static void test_##name##_ptrace(void **state)                                             \
	{                                                                                          \
		(void)state;                                                                       \
		child_must_pass(name, &ptrace_way);                                                \
	}

/* --- Exact counting ------------------------------------------------------------------- */

static uint8_t *site;
static atomic_bool stop;
static sem_t ready;

/* The code that the last patch has left in memory; 0 while one is under way. */
static _Atomic(uint32_t) current;

struct tally {
	unsigned long runs, old, new;
};

static void *execute(void *arg)
{
	struct tally *tally = arg;

	sem_post(&ready);
	while (!stop) {
		uint32_t before = current, got = code_run(site), after = current;

		tally->runs++;
		tally->old += got == CODE_OLD;
		tally->new += got == CODE_NEW;
		MUST(!before || before != after || got == before);
	}
	return NULL;
}

static void *run_once(void *arg)
{
	uint32_t got = code_run(site);

	MUST(got == CODE_OLD || got == CODE_NEW);
	return arg;
}

static void *storm(void *arg)
{
	pthread_t thread;

	sem_post(&ready);
	while (!stop)
		if (pthread_create(&thread, NULL, run_once, NULL) == 0)
			pthread_join(thread, NULL);
	return arg;
}

static void toggle_often(const struct stopper *way, unsigned long times)
{
	uint8_t code[2][CODE_LEN];

	code_load(code[0], CODE_OLD);
	code_load(code[1], CODE_NEW);
	for (unsigned long i = 1; i <= times;) {
		int ret = way->patch(site, code[i % 2], CODE_LEN);

		MUST(ret == 0 || ret == -EBUSY);
		if (ret < 0)
			continue;
		current = i % 2 ? CODE_NEW : CODE_OLD;
		for (int pause = 0; pause < 1000; pause++)
			__asm__ volatile("pause");
		current = 0;
		i++;
	}
}

static void counts(const void *arg)
{
	struct tally tally[EXECUTORS] = { { 0 } };
	pthread_t threads[EXECUTORS], stormer;
	unsigned long old = 0, new = 0;

	open_way(arg);
	MUST(sem_init(&ready, 0, 0) == 0);
	site = code_straddler(code_map(1, RWX));
	code_put(site, CODE_OLD);
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&threads[i], NULL, execute, &tally[i]) == 0);
	MUST(pthread_create(&stormer, NULL, storm, NULL) == 0);
	for (int i = 0; i <= EXECUTORS; i++)
		MUST(sem_wait(&ready) == 0);
	toggle_often(arg, (unsigned long)(PATCHES * test_scale()));
	stop = true;
	MUST(pthread_join(stormer, NULL) == 0);
	for (int i = 0; i < EXECUTORS; i++) {
		MUST(pthread_join(threads[i], NULL) == 0);
		MUST(tally[i].old + tally[i].new == tally[i].runs);
		old += tally[i].old;
		new += tally[i].new;
	}
	MUST(old > 0 && new > 0);
	((const struct stopper *)arg)->close();
}

BOTH(counts)

/* --- Refusals -------------------------------------------------------------------------- */

static void *run_site(void *arg)
{
	return (void *)(uintptr_t)code_run(arg);
}

/* NOP, and a jump that leads to itself: a thread stands at the second byte. */
static void thread_inside(const void *arg)
{
	static const struct timespec ms = { .tv_nsec = 1000000 };
	static const uint8_t old[] = { 0x90, 0xeb, 0xfe };
	static const uint8_t new[] = { 0x66, 0x66, 0x90 }, leave[] = { 0x66, 0x90 };
	const struct stopper *way = arg;
	pthread_t thread;
	void *got;

	open_way(way);
	site = code_map(1, RWX);
	code_put(site + sizeof(old), CODE_NEW);
	memcpy(site, old, sizeof(old));
	MUST(pthread_create(&thread, NULL, run_site, site) == 0);
	/* The code as it is: allowed until the thread has got there. */
	while (way->patch(site, old, sizeof(old)) != -EBUSY)
		nanosleep(&ms, NULL);
	MUST(way->patch(site, new, sizeof(new)) == -EBUSY);
	MUST(memcmp(site, old, sizeof(old)) == 0);
	/* It stands at the start of this one. */
	MUST(way->patch(site + 1, leave, sizeof(leave)) == 0);
	MUST(pthread_join(thread, &got) == 0 && (uintptr_t)got == CODE_NEW);
}

BOTH(thread_inside)

static void protection(const void *arg)
{
	const struct stopper *way = arg;
	uint8_t new[CODE_LEN];

	open_way(way);
	site = code_straddler(code_map(1, RWX));
	code_put(site, CODE_OLD);
	MUST(mprotect(site - (uintptr_t)site % CODE_PAGE, CODE_PAGE, RX) == 0);
	code_load(new, CODE_NEW);
	MUST(way->patch(site, new, CODE_LEN) == 0);
	MUST(code_run(site) == CODE_NEW && code_prot(site) == RX);
}

BOTH(protection)

/* --- A thread that cannot be stopped ---------------------------------------------------- */

static void *spin_blocked(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	sem_post(&ready);
	while (!stop)
		;
	return arg;
}

static int spin_in_child(void *arg)
{
	(void)arg;
	/* It is not to outlive a test that has failed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sem_post(&ready);
	while (!stop)
		;
	return 0;
}

/* As in vfork(): the parent waits, and nothing but the child can end that. */
static void *wait_in_vfork(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));

	MUST(clone(spin_in_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL) > 0);
	return arg;
}

static void must_time_out(const struct stopper *way, void *(*run)(void *))
{
	uint8_t new[CODE_LEN];
	pthread_t thread;

	open_way(way);
	MUST(sem_init(&ready, 0, 0) == 0);
	site = code_straddler(code_map(1, RWX));
	code_put(site, CODE_OLD);
	code_load(new, CODE_NEW);
	MUST(pthread_create(&thread, NULL, run, NULL) == 0 && sem_wait(&ready) == 0);
	MUST(way->patch(site, new, CODE_LEN) == -ETIMEDOUT);
	MUST(code_run(site) == CODE_OLD);
	stop = true;
	MUST(pthread_join(thread, NULL) == 0);
	MUST(way->open() == 0);
	MUST(way->patch(site, new, CODE_LEN) == 0);
	MUST(code_run(site) == CODE_NEW);
}

static void blocks_signals(const void *arg)
{
	must_time_out(arg, spin_blocked);
}

static void test_blocks_signals_stop(void **state)
{
	(void)state;
	child_must_pass(blocks_signals, &stop_way);
}

static void in_vfork(const void *arg)
{
	must_time_out(arg, wait_in_vfork);
}

BOTH(in_vfork)

/* --- The patcher process ------------------------------------------------------------------ */

/* Closed, or not opened at all, it changes nothing. */
static void closed_process_changes_nothing(const void *arg)
{
	uint8_t new[CODE_LEN];

	(void)arg;
	baseline_ptrace_close();
	open_way(&ptrace_way);
	baseline_ptrace_close();
	site = code_straddler(code_map(1, RWX));
	code_put(site, CODE_OLD);
	code_load(new, CODE_NEW);
	MUST(baseline_ptrace_patch(site, new, CODE_LEN) == -ESHUTDOWN);
	MUST(code_run(site) == CODE_OLD);
}

static _Atomic(unsigned long) taken;

static void on_signal(int signal)
{
	(void)signal;
	taken++;
}

static void *send_signals(void *arg)
{
	sem_post(&ready);
	for (int i = 0; i < 2000; i++) {
		unsigned long before = taken;

		MUST(pthread_kill(*(pthread_t *)arg, SIGUSR1) == 0);
		while (taken == before)
			;
	}
	stop = true;
	return NULL;
}

/* Signals that were under way when a thread was stopped still arrive, each once. */
static void signals_arrive(const void *arg)
{
	const struct stopper *way = arg;
	struct tally tally = { 0 };
	pthread_t executor, sender;

	open_way(way);
	MUST(sem_init(&ready, 0, 0) == 0);
	signal(SIGUSR1, on_signal);
	site = code_straddler(code_map(1, RWX));
	code_put(site, CODE_OLD);
	MUST(pthread_create(&executor, NULL, execute, &tally) == 0);
	MUST(pthread_create(&sender, NULL, send_signals, &executor) == 0);
	while (!stop)
		toggle_often(way, 2);
	MUST(pthread_join(executor, NULL) == 0 && pthread_join(sender, NULL) == 0);
	MUST(taken == 2000 && tally.old + tally.new == tally.runs);
}

BOTH(signals_arrive)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_stop),
		cmocka_unit_test(test_counts_ptrace),
		cmocka_unit_test(test_thread_inside_stop),
		cmocka_unit_test(test_thread_inside_ptrace),
		cmocka_unit_test(test_protection_stop),
		cmocka_unit_test(test_protection_ptrace),
		cmocka_unit_test(test_blocks_signals_stop),
		cmocka_unit_test(test_in_vfork_stop),
		cmocka_unit_test(test_in_vfork_ptrace),
		child_unit_test(closed_process_changes_nothing),
		cmocka_unit_test(test_signals_arrive_stop),
		cmocka_unit_test(test_signals_arrive_ptrace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
