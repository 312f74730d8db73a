/* SPDX-License-Identifier: MIT */
/* Several sites of several instructions each share a look, and none fares worse for it. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/batch.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/scale.h"

#define SITES	  64u
#define DISTANCE  0x100u /* from one to the next */
#define EXECUTORS 2
#define CHANGES	  100

static const uint8_t nops[LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

static uint8_t *sites[SITES];
static struct pc_over ops[SITES];

/* mov eax, 0; the three; ret */
static void put_code(uint8_t *at)
{
	code_load(at - CODE_LEN, 0);
	over_put(at);
}

/* Which comes to the same. */
static void put_nops(uint8_t *at)
{
	code_load(at - CODE_LEN, GOT_OLD);
	memcpy(at, nops, LEN);
	at[LEN] = 0xc3;
}

static uint32_t run(const uint8_t *at)
{
	return code_run(at - CODE_LEN);
}

/* Every third of them crosses 8 bytes. */
static void put_sites(void)
{
	uint8_t *code = code_map(SITES * DISTANCE / CODE_PAGE + 1, RWX) + DISTANCE / 2;

	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = code + i * DISTANCE + i % 3 * 3;
		put_code(sites[i]);
	}
}

static void wish(size_t i, const uint8_t *bytes, unsigned old_starts, unsigned new_starts)
{
	ops[i] = (struct pc_over){ { sites[i], bytes, LEN, 1 }, old_starts, new_starts };
}

static int over_all(void)
{
	for (size_t i = 0; i < SITES; i++)
		wish(i, mov, STARTS, 1);
	return pc_patch_over_batch(ops, SITES, PC_CHECK_THREADS);
}

/* --- Each has a result of its own ------------------------------------------------------------- */

static void results(const void *arg)
{
	static const uint8_t calls[] = { 0xff, 0xd0, 0x04, 0x10, 0x04 };
	const enum pc_inside who = PC_CHECK_THREADS;
	static const int expected[SITES] = {
		[1] = -EINVAL, [3] = -EINVAL, [4] = -EINVAL,  [6] = -EAGAIN,
		[8] = -EFAULT, [9] = -EINVAL, [10] = -EILSEQ,
	};

	(void)arg;
	MUST(pc_patch_over_batch(ops, 1, who) == -ESHUTDOWN);
	start_by_membarrier();
	put_sites();
	MUST(pc_patch_over_batch(NULL, 0, who) == 0);
	MUST(pc_patch_over_batch(NULL, 1, who) == -EINVAL);
	MUST(pc_patch_over_batch(ops, 1, (enum pc_inside)3) == -EINVAL);
	for (size_t i = 0; i < SITES; i++)
		wish(i, mov, STARTS, 1);
	ops[1].old_starts = STARTS | 0x20;
	/* These two share bytes. */
	ops[4].op.addr = sites[3] + 2;
	*sites[6] = CODE_INT3;
	ops[8].op.addr = (void *)(uintptr_t)64;
	memcpy(sites[9], calls, LEN);
	ops[10].old_starts = 0;
	put_nops(sites[11]);
	ops[11].old_starts = 0;
	MUST(pc_patch_over_batch(ops, SITES, who) == -EINVAL);
	for (size_t i = 0; i < SITES; i++) {
		MUST(ops[i].op.result == expected[i]);
		if (!expected[i])
			MUST(memcmp(sites[i], mov, LEN) == 0);
	}
	MUST(memcmp(sites[9], calls, LEN) == 0);
	*sites[6] = adds[0];
	for (size_t i = 1; i < 11; i++)
		if (expected[i] && i != 9)
			MUST(run(sites[i]) == GOT_OLD);
	MUST(run(sites[11]) == GOT_NEW && run(sites[5]) == GOT_NEW);
	MUST(!sites_count().held);
	/* The way back needs no look; and what is not said to have lost no start is refused. */
	wish(0, adds, 1, STARTS);
	wish(1, mov, STARTS, 1);
	MUST(pc_patch_over_batch(ops, 2, PC_STARTS_KEPT) == -EINVAL);
	MUST(ops[0].op.result == 0 && ops[1].op.result == -EINVAL && run(sites[0]) == GOT_OLD);
	/* One thread alone, and code that is not inside of anything. */
	wish(0, mov, STARTS, 1);
	wish(1, mov, STARTS, 1);
	MUST(pc_patch_over_batch(ops, 2, PC_NOBODY_INSIDE) == 0);
	MUST(run(sites[0]) == GOT_NEW && run(sites[1]) == GOT_NEW);
}

/* --- Exact counting --------------------------------------------------------------------------- */

static atomic_bool seen[2]; /* old, new */

static void *execute(void *arg)
{
	sem_post(&ready);
	for (unsigned long i = 0; !stop; i++) {
		uint32_t got = run(sites[i % SITES]);

		MUST(got == GOT_OLD || got == GOT_NEW);
		seen[got == GOT_NEW] = true;
	}
	return arg;
}

static void prepare(void)
{
	over_begin();
	put_sites();
}

/* Every fourth is NOPs, which are moved over. */
static void counts(const void *arg)
{
	unsigned long changes = CHANGES;
	pthread_t threads[EXECUTORS];

	(void)arg;
	prepare();
	changes = (unsigned long)((double)changes * test_scale()) + 1;
	for (unsigned i = 0; i < SITES; i += 4)
		put_nops(sites[i]);
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&threads[i], NULL, execute, NULL) == 0);
	for (int i = 0; i < EXECUTORS; i++)
		MUST(sem_wait(&ready) == 0);
	/* Executors that are starved come to it in the end. */
	for (unsigned long i = 0; i < changes || (!(seen[0] && seen[1]) && i < 100 * changes);
	     i++) {
		for (size_t j = 0; j < SITES; j++)
			wish(j, mov, j % 4 ? STARTS : 0, 1);
		MUST(pc_patch_over_batch(ops, SITES, PC_CHECK_THREADS) == 0);
		for (size_t j = 0; j < SITES; j++) {
			MUST(memcmp(sites[j], mov, LEN) == 0);
			wish(j, j % 4 ? adds : nops, 1, j % 4 ? STARTS : 0x1f);
		}
		MUST(pc_patch_over_batch(ops, SITES, PC_STARTS_KEPT) == 0);
	}
	stop = true;
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(!sites_count().held);
}

/* --- A thread that stands inside of one of them ----------------------------------------------- */

#define WITH_ONE 29u

/* pc_patch_batch() leaves it to its caller that no thread stands inside. */
static int by_patch_batch(void)
{
	struct pc_op plain[SITES];

	for (size_t i = 0; i < SITES; i++)
		plain[i] = (struct pc_op){ sites[i], mov, LEN, 0 };
	return pc_patch_batch(plain, SITES);
}

static pid_t stand_in_one(pthread_t *thread, unsigned at, bool interrupt)
{
	uint8_t *one = sites[WITH_ONE];

	return over_stand(thread, run_until_other, one - CODE_LEN, one, at, interrupt);
}

struct turn {
	unsigned at;
	int (*change)(void);
	bool interrupt; /* is it in a signal handler when it is looked at? Longer than all wait */
};

static void stand(const void *arg)
{
	const struct turn *turn = arg;
	bool looks = turn->change == over_all;
	pthread_t thread;
	pid_t tracer;
	int saw;

	prepare();
	signal(SIGUSR1, note_signal);
	tracer = stand_in_one(&thread, turn->at, turn->interrupt);
	MUST(turn->change() == 0);
	MUST(turn->at == 0 || handled == turn->interrupt);
	saw = stand_end(tracer);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(saw == (looks && turn->at ? STAND_SAW_SIGNAL : STAND_SAW_CHANGE));
	MUST(got_last == (looks || turn->at == 0 ? GOT_NEW : GOT_BAD));
	for (size_t i = 0; i < SITES; i++)
		MUST(run(sites[i]) == GOT_NEW);
}

static void test_stand_inside(void **state)
{
	(void)state;
	for (unsigned at = 0; at < LEN; at += 2) {
		struct turn turn = { .at = at, .change = over_all };

		child_must_pass(stand, &turn);
		turn.interrupt = true;
		child_must_pass(stand, &turn);
	}
}

/* Without a look it goes wrong: so the test can fail. */
static void test_without_look(void **state)
{
	(void)state;
	for (unsigned at = 0; at < LEN; at += 2) {
		const struct turn turn = { .at = at, .change = by_patch_batch };

		child_must_pass(stand, &turn);
	}
}

/* One that a thread does not leave is refused, and the others are made. */
static void handler_stays(const void *arg)
{
	pthread_t thread;
	pid_t tracer;

	(void)arg;
	prepare();
	signal(SIGUSR1, stay_in_handler);
	tracer = stand_in_one(&thread, 2, true);
	MUST(over_all() == -ETIMEDOUT);
	MUST(stand_end(tracer) == STAND_SAW_SIGNAL);
	for (size_t i = 0; i < SITES; i++) {
		MUST(ops[i].op.result == (i == WITH_ONE ? -ETIMEDOUT : 0));
		MUST(run(sites[i]) == (i == WITH_ONE ? GOT_OLD : GOT_NEW));
	}
	MUST(!sites_count().held);
	leave = true;
	wish(WITH_ONE, mov, STARTS, 1);
	MUST(pc_patch_over_batch(ops + WITH_ONE, 1, PC_CHECK_THREADS) == 0);
	MUST(pthread_join(thread, NULL) == 0 && got_last == GOT_NEW);
}

/* Answers no look for as long as the NOPs wait for one. */
static void *be_deaf_for_nops(void *nops_at)
{
	const volatile uint8_t *first = nops_at;
	sigset_t all;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	sem_post(&ready);
	while (*first != CODE_INT3)
		;
	while (*first == CODE_INT3)
		;
	sigemptyset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	return nops_at;
}

/* It fails those that share the look, and not the others. */
static void looks_apart(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	for (size_t i = 0; i < SITES; i++) {
		if (i % 2)
			put_nops(sites[i]);
		wish(i, mov, i % 2 ? 0 : STARTS, 1);
	}
	MUST(pthread_create(&thread, NULL, be_deaf_for_nops, sites[1]) == 0);
	MUST(sem_wait(&ready) == 0);
	MUST(pc_patch_over_batch(ops, SITES, PC_CHECK_THREADS) == -ETIMEDOUT);
	MUST(pthread_join(thread, NULL) == 0);
	for (size_t i = 0; i < SITES; i++) {
		MUST(ops[i].op.result == (i % 2 ? -ETIMEDOUT : 0));
		MUST(run(sites[i]) == (i % 2 ? GOT_OLD : GOT_NEW));
	}
	MUST(!sites_count().held);
}

/* --- Two threads that wait for each other ----------------------------------------------------- */

/*
 * Each sends itself a signal by a system call that is the first instruction of its site, so it is
 * inside when the handler runs; which then runs the other's site, once the INT3 is there.
 */
static _Thread_local unsigned my_site;
static uint8_t *calls_harmless[2]; /* code that leads to a site with another call in eax */

static void run_other(int signal)
{
	volatile const uint8_t *other = sites[!my_site];

	(void)signal;
	sem_post(&ready);
	while (*other != CODE_INT3 && !stop)
		;
	code_run(calls_harmless[!my_site]);
	handled++;
}

static void *wait_for_other(void *arg)
{
	static const uint8_t any[] = { 0xb8, 0xe9, 0 };
	const int32_t harmless[] = { SYS_getpid, 0 };
	uintptr_t mine = (uintptr_t)arg;

	my_site = (unsigned)mine;
	calls_harmless[mine] = sites[4 + mine];
	over_put_kill(sites[2 + mine], sites[mine]);
	over_put_call(sites[4 + mine], any, harmless, sites[mine]);
	code_run(sites[2 + mine]);
	return NULL;
}

static void cross(pthread_t *threads)
{
	prepare();
	signal(SIGUSR1, run_other);
	for (uintptr_t i = 0; i < 2; i++) {
		memcpy(sites[i], over_calls, LEN);
		wish(i, mov, STARTS, 1);
	}
	for (uintptr_t i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, wait_for_other, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		MUST(sem_wait(&ready) == 0);
}

static void crossed(const void *arg)
{
	pthread_t threads[2];

	(void)arg;
	cross(threads);
	MUST(pc_patch_over_batch(ops, 2, PC_CHECK_THREADS) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(handled == 2 && run(sites[0]) == GOT_NEW && run(sites[1]) == GOT_NEW);
}

/* The looks that both share do not end well: so the test can fail. */
static void crossed_for_good(const void *arg)
{
	struct merge merges[2] = {
		{ .bytes = mov, .old_starts = STARTS, .new_starts = 1 },
		{ .bytes = mov, .old_starts = STARTS, .new_starts = 1 },
	};
	struct frames_inside inside[2] = { { .merge = &merges[0] }, { .merge = &merges[1] } };
	struct frames_places both = { inside, 2 };
	pthread_t threads[2];

	(void)arg;
	cross(threads);
	for (int i = 0; i < 2; i++) {
		MUST(text_begin(&merges[i].span, sites[i], LEN) == 0);
		MUST(merge_find(&merges[i]) == 0);
	}
	merge_undisturbed(&both);
	for (int i = 0; i < 2; i++) {
		MUST(merges[i].result == MERGE_PENDING);
		text_end(&merges[i].span);
	}
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(handled == 2 && !sites_count().held);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(results),
		child_unit_test(counts),
		cmocka_unit_test(test_stand_inside),
		cmocka_unit_test(test_without_look),
		child_unit_test(handler_stays),
		child_unit_test(looks_apart),
		child_unit_test(crossed),
		child_unit_test(crossed_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
