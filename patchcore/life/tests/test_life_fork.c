/* SPDX-License-Identifier: MIT */
/*
 * A process forks while another thread patches, at a moment that the test chooses: what
 * the child finds is whole, its own, and can go on.
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
#include "patchcore/merge.h"
#include "patchcore/tests/barrier.h"

#define FORKS	     (CHILD_ASAN ? 5 : 40)
#define MERGE_FORKS  (CHILD_ASAN ? 20 : 200)
#define LIMIT	     100  /* seconds */
#define CHILD_LIMIT  60	  /* seconds */
#define WITH_PATCHER 0.05 /* seconds that the patcher stands and waits for the fork */

static uint8_t *pages, *site, *inside;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

static void map(void)
{
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	pages = flights_map(2, RX, 40);
	site = flight_site(pages, 10);
	inside = pages + FLIGHT_LINE * 80;
	MUST(mprotect(pages, 2 * CODE_PAGE, RWX) == 0);
	code_put(inside, CODE_OLD);
	MUST(mprotect(pages, 2 * CODE_PAGE, RX) == 0);
	MUST(pc_patch(site, new_code, CODE_LEN) == 0 && pc_patch(site, old_code, CODE_LEN) == 0);
}

static void must_end_well(pid_t pid)
{
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		dprintf(2, "a child died of signal %d\n", WTERMSIG(status));
	MUST(status == 0);
}

static bool is_whole(uint32_t number)
{
	return number == CODE_OLD || number == CODE_NEW;
}

/* All that a child may want of the library. */
static void must_work(void)
{
	MUST(is_whole(code_run(site)) && pc_drain() == 0);
	for (int i = 0; i < 2; i++) {
		MUST(pc_patch(site, i ? old_code : new_code, CODE_LEN) == 0);
		MUST(code_run(site) == (i ? CODE_OLD : CODE_NEW));
	}
}

static void must_be_usable(void)
{
	must_work();
	MUST(code_prot(site) == RX && pc_fini() == 0 && code_prot(site) == RX);
}

/* --- Handlers of pthread_atfork() that were there first -------------------------------------- */

/* Set by a test: what to do in handlers that were registered before the library's. */
static void (*early_prepare)(void), (*early_child)(void);

static void on_prepare(void)
{
	if (early_prepare)
		early_prepare();
}

static void on_child(void)
{
	if (early_child)
		early_child();
}

__attribute__((constructor(101))) static void be_first(void)
{
	pthread_atfork(on_prepare, NULL, on_child);
}

/* --- A patcher that stands at its first sync until the process is about to fork
 * ------------------- */

static atomic_bool patcher_stands, forked, may_end;
static pthread_t forker;

static int stand(void)
{
	if (pthread_equal(pthread_self(), forker))
		return 0;
	patcher_stands = true;
	barrier_await(&forked, WITH_PATCHER);
	return 0;
}

/* It stays, for a child to ask after. */
static void *patch_site(void *unused)
{
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	while (!may_end)
		usleep(1000);
	return unused;
}

static pthread_t start_patcher(void)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, patch_site, NULL) == 0);
	while (!patcher_stands)
		sched_yield();
	return thread;
}

static void end_patcher(pthread_t thread)
{
	forked = may_end = true;
	pthread_join(thread, NULL);
	MUST(code_run(site) == CODE_NEW);
	must_be_usable();
}

static void limit_child(void)
{
	alarm(CHILD_LIMIT);
}

static void run_early(void)
{
	limit_child();
	MUST(is_whole(code_run(site)));
}

static void play(void)
{
	flights_use_membarrier();
	forker = pthread_self();
	barrier_play(stand);
	map();
}

/* While a patcher stands in the middle of its change. */
static void fork_beside_patcher(void (*in_child)(void))
{
	pthread_t thread = start_patcher();
	pid_t pid = fork();

	if (pid == 0) {
		in_child();
		_exit(0);
	}
	must_end_well(pid);
	end_patcher(thread);
}

/* Where the library's own handler is still to come. */
static void in_early_child(const void *arg)
{
	(void)arg;
	play();
	early_child = run_early;
	fork_beside_patcher(must_be_usable);
}

/* The library's handler of this kind has been called, so its gate is closed. */
static void run_behind_gate(void)
{
	early_prepare = NULL;
	forked = true;
	/* The patcher goes on, to its next store. */
	usleep(20000);
	limit_child();
	MUST(is_whole(code_run(site)));
}

/* The forking thread does not wait for a patcher that waits for the fork. */
static void behind_gate(const void *arg)
{
	(void)arg;
	play();
	MUST(pc_text_alias(pages, 2 * CODE_PAGE) == 0);
	early_prepare = run_behind_gate;
	fork_beside_patcher(must_be_usable);
}

static void end_library(void)
{
	limit_child();
	MUST(pc_fini() == 0 && is_whole(code_run(site)) && code_prot(site) == RX);
}

/* Nothing of another thread is in the way. */
static void fini_at_once(const void *arg)
{
	(void)arg;
	play();
	fork_beside_patcher(end_library);
}

/* --- Patchers that never pause
 * --------------------------------------------------------------------- */

static atomic_bool stop;
static atomic_uint done; /* times */

static void *patch_inside(void *unused)
{
	for (unsigned i = 0; !stop; i++, done++)
		MUST(pc_patch(inside, i % 2 ? old_code : new_code, CODE_LEN) == 0);
	return unused;
}

static void *patch_across(void *unused)
{
	for (unsigned i = 0; !stop; i++, done++)
		MUST(pc_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
	return unused;
}

static void *start_and_drain(void *unused)
{
	for (unsigned i = 0; !stop; i++, done++) {
		MUST(pc_start_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
		MUST(pc_drain() == 0);
	}
	return unused;
}

static void *patch_many(void *unused)
{
	struct pc_op ops[2] = { { .addr = site, .len = CODE_LEN },
				{ .addr = inside, .len = CODE_LEN } };

	for (unsigned i = 0; !stop; i++, done++) {
		ops[0].bytes = ops[1].bytes = i % 2 ? old_code : new_code;
		MUST(pc_patch_batch(ops, 2) == 0);
	}
	return unused;
}

static void *open_and_close(void *unused)
{
	for (unsigned i = 0; !stop; i++, done++) {
		if (i % 2)
			MUST(pc_text_open(pages, 1) == 0 && pc_text_close(pages, 1) == 0);
		else
			MUST(pc_text_alias(pages, 1) == 0 && pc_text_close(pages, 1) == 0);
	}
	return unused;
}

#define RUN 5u

static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static uint8_t *runs;
static size_t run_count;

/* Each at an address that the library has not seen. */
static void *merge_new(void *unused)
{
	uint8_t load[RUN];

	code_load(load, CODE_NEW);
	for (size_t i = 0; !stop && i < run_count; i++, done++)
		MUST(pc_patch_merge(runs + i * 16, load, RUN, PC_CHECK_THREADS) == 0);
	return unused;
}

static void map_runs(void)
{
	run_count = 64 * CODE_PAGE / 16;
	runs = code_map(64, RWX);
	for (size_t i = 0; i < run_count; i++)
		memcpy(runs + i * 16, nops, RUN);
	MUST(pc_text_open(runs, 64 * CODE_PAGE) == 0);
}

struct busy {
	void *(*with)(void *);
	bool alias;
	int forks;
};

/* The page is borrowed, locks are held, changes stand wherever they are. */
static void busy(const void *arg)
{
	const struct busy *patcher = arg;
	pthread_t thread;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer does not follow a fork among threads");
	alarm(LIMIT);
	flights_use_membarrier();
	map();
	map_runs();
	if (patcher->alias)
		MUST(pc_text_alias(pages, 2 * CODE_PAGE) == 0);
	MUST(pthread_create(&thread, NULL, patcher->with, NULL) == 0);
	while (done < 10)
		sched_yield();
	for (int i = 0; i < patcher->forks; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			limit_child();
			MUST(is_whole(code_run(inside)) && is_whole(code_run(site)));
			MUST(pc_drain() == 0);
			/* What was opened stays open, and what was borrowed is given back. */
			must_work();
			MUST((code_prot(inside) == RX && code_prot(site) == RX) ||
			     patcher->with == open_and_close);
			MUST(pc_fini() == 0 && code_prot(site) == RX);
			_exit(0);
		}
		must_end_well(pid);
	}
	stop = true;
	pthread_join(thread, NULL);
	MUST(is_whole(code_run(inside)));
	must_be_usable();
}

static void test_busy(void **state)
{
	(void)state;
	child_must_pass(busy, *state);
}

/* --- A child without a copy
 * -------------------------------------------------------------------------- */

static pid_t fork_without_descriptors(void)
{
	struct rlimit limit, none;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	pid = fork();
	setrlimit(RLIMIT_NOFILE, &limit);
	return pid;
}

static pid_t fork_without_handlers(void)
{
	return (pid_t)syscall(SYS_fork);
}

typedef pid_t fork_fn(void);

struct parting {
	fork_fn *fork;
	int (*finish)(void);
};

static int finish_site(void)
{
	for (int i = 0; i < 4; i++)
		pc_finish_patch(site);
	return 0;
}

/* Any other answer will do: what counts is the code of the parent. */
static void without_copy(const void *arg)
{
	const struct parting *parting = arg;
	enum flight_bytes before;
	pid_t pid;
	int go[2];

	flights_use_membarrier();
	map();
	MUST(pipe(go) == 0 && pc_text_alias(pages, 2 * CODE_PAGE) == 0);
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	pid = parting->fork();
	if (pid == 0) {
		char byte;

		limit_child();
		MUST(read(go[0], &byte, 1) == 1);
		parting->finish();
		_exit(0);
	}
	before = flight_look(site);
	MUST(write(go[1], "", 1) == 1);
	must_end_well(pid);
	MUST(flight_look(site) == before);
	MUST(pc_drain() == 0 && code_run(site) == CODE_NEW);
	must_be_usable();
}

/* The child shares the code of its parent, and every function refuses to write to it. */
static void test_without_copy(void **state)
{
	static const struct parting partings[] = {
		{ fork_without_descriptors, pc_drain }, { fork_without_descriptors, finish_site },
		{ fork_without_descriptors, pc_fini },	{ fork_without_handlers, pc_drain },
		{ fork_without_handlers, finish_site },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(partings) / sizeof(*partings); i++)
		child_must_pass(without_copy, &partings[i]);
}

#define BUSY(name, way, with_alias, times)                                                         \
	{                                                                                          \
		name, test_busy, NULL, NULL, &(struct busy)                                        \
		{                                                                                  \
			.with = (way), .alias = (with_alias), .forks = (times)                     \
		}                                                                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_test(in_early_child),
		child_unit_test(behind_gate),
		child_unit_test(fini_at_once),
		cmocka_unit_test(test_without_copy),
		BUSY("test_busy_inside", patch_inside, false, FORKS),
		BUSY("test_busy_across", patch_across, false, FORKS),
		BUSY("test_busy_alias", patch_across, true, FORKS),
		BUSY("test_busy_drain", start_and_drain, false, FORKS),
		BUSY("test_busy_batch", patch_many, false, FORKS),
		BUSY("test_busy_open", open_and_close, false, FORKS),
		BUSY("test_busy_merge", merge_new, false, MERGE_FORKS),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
