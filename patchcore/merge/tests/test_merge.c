/* SPDX-License-Identifier: MIT */
/* A run of NOPs becomes one instruction, and no executor ever runs its middle. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/machine/sync.h"
#include "patchcore/merge.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/stand.h"
#include "patchcore/tests/start.h"

#define RUN	  5u
#define EXECUTORS 2
#define MERGES	  200 /* times MERGE_STRESS of the environment */

#define GOT_OLD 0u
#define GOT_NEW 0xebeb40ebu
#define GOT_BAD 0xbadbadu

/*
 * xor eax, eax; the run; ret. The new instruction is mov eax, GOT_NEW. An executor that starts in
 * its middle lands on a pad:
 *   at 1: jmp +0x40; at 2 and 3: (rex) jmp -0x15; at 4, with the ret: jmp -0x3d.
 */
static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static const uint8_t one[RUN] = { 0xb8, 0xeb, 0x40, 0xeb, 0xeb };

static uint8_t *site;

static void put_code(uint8_t *at)
{
	static const uint8_t clear[] = { 0x31, 0xc0 };

	site = at;
	memcpy(site - sizeof(clear), clear, sizeof(clear));
	memcpy(site, nops, RUN);
	site[RUN] = 0xc3;
	code_put(site + 3 + 0x40, GOT_BAD);
	code_put(site + 5 - 0x15, GOT_BAD);
	code_put(site + 6 - 0x3d, GOT_BAD);
}

static uint32_t run(void)
{
	return code_run(site - 2);
}

static bool is(const uint8_t *code)
{
	return memcmp(site, code, RUN) == 0;
}

static void start(void)
{
	start_by_membarrier();
}

/* Bytes of the run before a multiple of every window, 0 to 5; of a page too. */
static uint8_t *place(unsigned split)
{
	return code_map(2, RWX) + CODE_PAGE - split;
}

/* --- What is refused -------------------------------------------------------------------- */

static void test_lost_starts(void **state)
{
	static const uint8_t mixed[] = { 0x90, 0x90, 0x0f, 0x1f, 0x00 };
	static const uint8_t single[] = { 0x90, 0x48, 0x89, 0xe5, 0x90 };
	static const uint8_t later[] = { 0x55, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t keep[] = { 0x90, 0x90, 0x90, 0x66, 0x90 };
	static const uint8_t tail[] = { 0x90, 0x90, 0x90, 0x90, 0xc3 };

	(void)state;
	assert_true(merge_loses_starts(nops, one, RUN, 1));
	assert_true(merge_loses_starts(nops, one, 2, 1));
	assert_false(merge_loses_starts(nops, one, 1, 1));
	assert_false(merge_loses_starts(nops, nops, RUN, 1));
	assert_false(merge_loses_starts(one, nops, RUN, 1));
	assert_true(merge_loses_starts(mixed, one, RUN, 1));
	assert_false(merge_loses_starts(single, one, RUN, 1));
	assert_false(merge_loses_starts(later, one, RUN, 1));
	assert_true(merge_loses_starts(nops, keep, RUN, 1));
	assert_false(merge_loses_starts(nops, tail, RUN, 1));
	assert_false(merge_loses_starts(nops, one, RUN, 0x1f));
	assert_true(merge_loses_starts(nops, one, RUN, 0x0f));
	assert_true(merge_loses_starts(nops, one, RUN, 0x17));
}

static void refusals(const void *arg)
{
	static const uint8_t int3[RUN] = { CODE_INT3 };
	const enum pc_inside who = *(const enum pc_inside *)arg;

	MUST(pc_patch_merge(place(0), one, RUN, who) == -ESHUTDOWN);
	start();
	put_code(place(3));
	MUST(pc_patch_merge(site, one, 1, who) == -EINVAL);
	MUST(pc_patch_merge(site, one, 0, who) == -EINVAL);
	MUST(pc_patch_merge(site, one, PC_PATCH_MAX + 1, who) == -EINVAL);
	MUST(pc_patch_merge(site, NULL, RUN, who) == -EINVAL);
	MUST(pc_patch_merge(site, int3, RUN, who) == -EINVAL);
	MUST(pc_patch_merge(site, one, RUN, (enum pc_inside)2) == -EINVAL);
	MUST(pc_patch_merge(site - 2, one, RUN, who) == -EILSEQ);
	MUST(pc_patch_merge(site + 1, one, RUN, who) == -EILSEQ);
	MUST(is(nops) && run() == GOT_OLD);
	*site = CODE_INT3;
	MUST(pc_patch_merge(site, one, RUN, who) == -EAGAIN);
	*site = MERGE_NOP;
	MUST(pc_patch_merge((void *)(uintptr_t)64, one, RUN, who) == -EFAULT);
	MUST(is(nops));
}

static const enum pc_inside unchecked = PC_NOBODY_INSIDE, check = PC_CHECK_THREADS;

static void test_refusals(void **state)
{
	(void)state;
	child_must_pass(refusals, &unchecked);
	child_must_pass(refusals, &check);
}

/* --- Every place ------------------------------------------------------------------------ */

static void must_merge(enum pc_inside who)
{
	uint8_t before[4 * RUN];

	memcpy(before, site - RUN, sizeof(before));
	MUST(run() == GOT_OLD);
	MUST(pc_patch_merge(site, one, RUN, who) == 0);
	MUST(is(one) && run() == GOT_NEW);
	MUST(memcmp(site - RUN, before, RUN) == 0);
	MUST(memcmp(site + RUN, before + 2 * RUN, 2 * RUN) == 0);
	MUST(pc_patch_merge(site, one, RUN, who) == -EILSEQ);
	/* The way back is a patch like any other. */
	MUST(pc_patch(site, nops, RUN) == 0);
	MUST(is(nops) && run() == GOT_OLD);
}

static void every_place(const void *arg)
{
	start();
	for (unsigned split = 0; split <= RUN; split++) {
		put_code(place(split));
		must_merge(*(const enum pc_inside *)arg);
		must_merge(*(const enum pc_inside *)arg);
		MUST(mprotect(site + split - CODE_PAGE, 2 * CODE_PAGE, RX) == 0);
		must_merge(*(const enum pc_inside *)arg);
		MUST(code_prot(site) == RX);
	}
}

static void test_every_place(void **state)
{
	(void)state;
	child_must_pass(every_place, &unchecked);
	child_must_pass(every_place, &check);
}

/* --- Exact counting ------------------------------------------------------------------------ */

static atomic_bool stop;
static sem_t ready;

struct tally {
	unsigned long runs, old, new;
};

static void *execute(void *arg)
{
	struct tally *tally = arg;

	sem_post(&ready);
	while (!stop) {
		uint32_t got = run();

		tally->runs++;
		tally->old += got == GOT_OLD;
		tally->new += got == GOT_NEW;
	}
	return NULL;
}

static void *run_once(void *arg)
{
	uint32_t got = run();

	MUST(got == GOT_OLD || got == GOT_NEW);
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

static void *fork_on(void *arg)
{
	sem_post(&ready);
	while (!stop) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			run_once(NULL);
			_exit(0);
		}
		MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	}
	return arg;
}

static unsigned long merges(void)
{
	const char *factor = getenv("MERGE_STRESS");

	return MERGES * (factor ? strtoul(factor, NULL, 10) : 1);
}

static void toggle(unsigned long times)
{
	for (unsigned long i = 0; i < times; i++) {
		MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0);
		MUST(pc_patch(site, nops, RUN) == 0);
	}
}

static void counts(const void *arg)
{
	struct tally tally[EXECUTORS] = { { 0 } };
	pthread_t threads[EXECUTORS + 2];
	unsigned long old = 0, new = 0;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	start();
	MUST(sem_init(&ready, 0, 0) == 0);
	put_code(place(*(const unsigned *)arg));
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&threads[i], NULL, execute, &tally[i]) == 0);
	MUST(pthread_create(&threads[EXECUTORS], NULL, storm, NULL) == 0);
	MUST(pthread_create(&threads[EXECUTORS + 1], NULL, fork_on, NULL) == 0);
	for (int i = 0; i < EXECUTORS + 2; i++)
		MUST(sem_wait(&ready) == 0);
	toggle(merges());
	stop = true;
	for (int i = 0; i < EXECUTORS + 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < EXECUTORS; i++) {
		MUST(tally[i].old + tally[i].new == tally[i].runs);
		old += tally[i].old;
		new += tally[i].new;
	}
	MUST(old > 0 && new > 0);
}

static void test_counts(void **state)
{
	static const unsigned inside = 0, split = 2;

	(void)state;
	child_must_pass(counts, &inside);
	child_must_pass(counts, &split);
}

/* --- A thread that stands inside, by turns ---------------------------------------------------- */

static char alternate_stack[65536];
static const stack_t alternate = { .ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack) };
static _Atomic(unsigned) handled;

static void on_signal(int signal)
{
	(void)signal;
	handled++;
}

static void take_signal(bool on_alternate)
{
	struct sigaction action = { .sa_handler = on_signal };

	if (on_alternate)
		action.sa_flags = SA_ONSTACK;
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void *execute_until_other(void *arg)
{
	uint32_t *got = arg;
	stack_t before;

	MUST(sigaltstack(&alternate, &before) == 0);
	stander = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	do
		*got = run();
	while (*got == GOT_OLD && !stop);
	/* The address sanitizer has one of its own, which it wants back. */
	MUST(sigaltstack(&before, NULL) == 0);
	return NULL;
}

struct turn {
	unsigned at;	/* NOP at which the thread stands */
	bool look;	/* or the protocol without it */
	bool interrupt; /* is it in a signal handler when it is looked at? */
	bool alternate; /* on a stack of its own? */
};

static struct merge hold(void)
{
	struct merge merge = { .bytes = one, .old_starts = 0x1f, .new_starts = 1, .move = true };

	MUST(text_begin(&merge.span, site, RUN) == 0);
	MUST(merge_find(&merge) == 0 && merge_hold(&merge) == 0);
	return merge;
}

static void let_go(struct merge *merge)
{
	merge_release(merge);
	text_end(&merge->span);
}

static void merge_without_look(void)
{
	struct merge merge = hold();

	merge_put_int3(&merge);
	MUST(membarrier_sync() == 0);
	merge_put_rest(&merge);
	MUST(membarrier_sync() == 0);
	merge_put_doors(&merge);
	let_go(&merge);
}

static void stand_inside(const void *arg)
{
	const struct turn *turn = arg;
	struct stand stand = { .bytes = one, .len = RUN };
	uint32_t got = GOT_OLD;
	pthread_t thread;
	pid_t tracer;
	int saw;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	start();
	take_signal(turn->alternate);
	MUST(sem_init(&ready, 0, 0) == 0);
	put_code(place(2));
	MUST(pthread_create(&thread, NULL, execute_until_other, &got) == 0);
	MUST(sem_wait(&ready) == 0);
	stand.changed = site;
	stand.at = site + turn->at;
	stand.interrupt = turn->interrupt;
	tracer = stand_start(&stand);
	if (turn->look)
		MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0);
	else
		merge_without_look();
	saw = stand_end(tracer);
	MUST(pthread_join(thread, NULL) == 0);
	/* One that is held at the first NOP, or in front of it, need not answer. */
	MUST(saw == (turn->look && turn->at ? STAND_SAW_SIGNAL : STAND_SAW_CHANGE));
	MUST(handled == turn->interrupt);
	/* A thread at the first NOP is not inside. */
	MUST(got == (turn->look || turn->at == 0 ? GOT_NEW : GOT_BAD));
}

static void test_stand_inside(void **state)
{
	(void)state;
	for (unsigned at = 0; at < RUN; at++) {
		struct turn turn = { .at = at, .look = true };

		child_must_pass(stand_inside, &turn);
		turn.interrupt = true;
		child_must_pass(stand_inside, &turn);
		turn.alternate = true;
		child_must_pass(stand_inside, &turn);
	}
}

/* The same without the look goes wrong wherever the thread stands: so the test can fail. */
static void test_without_look(void **state)
{
	(void)state;
	for (unsigned at = 0; at < RUN; at++) {
		const struct turn turn = { .at = at };

		child_must_pass(stand_inside, &turn);
	}
}

/* --- Errors ------------------------------------------------------------------------------- */

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

static void must_be_undone(int ret, int expected)
{
	MUST(ret == expected);
	MUST(is(nops) && run() == GOT_OLD);
	MUST(!sites_count().held);
}

static void undone(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start();
	MUST(sem_init(&ready, 0, 0) == 0);
	put_code(place(2));
	MUST(pthread_create(&thread, NULL, spin_blocked, NULL) == 0 && sem_wait(&ready) == 0);
	must_be_undone(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS), -ETIMEDOUT);
	stop = true;
	MUST(pthread_join(thread, NULL) == 0);
	MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0 && run() == GOT_NEW);
}

/* membarrier: MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, registering is another. */
static void sync_fails(const void *arg)
{
	(void)arg;
	start();
	put_code(place(2));
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_ERRNO | ENOMEM);
	must_be_undone(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS), -ENOMEM);
}

static void held(const void *arg)
{
	struct merge merge;

	(void)arg;
	start();
	put_code(place(2));
	merge = hold();
	MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == -EAGAIN);
	MUST(is(nops));
	let_go(&merge);
	MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0);
}

/* The first that would be taken is one that the caller itself has blocked, to wait for it. */
static void keeps_off(const void *arg)
{
	struct sigaction now;
	sigset_t set;

	(void)arg;
	start();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX - 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	put_code(place(3));
	must_merge(PC_CHECK_THREADS);
	MUST(sigaction(SIGRTMAX - 1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_starts),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_every_place),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_stand_inside),
		cmocka_unit_test(test_without_look),
		child_unit_test(undone),
		child_unit_test(sync_fails),
		child_unit_test(held),
		child_unit_test(keeps_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
