/* SPDX-License-Identifier: MIT */
/* Several instructions are replaced by others, and no executor runs half of each. */
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
#include "patchcore/merge/merge.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/scale.h"

#define EXECUTORS 2
#define CHANGES	  200

/* Instead of the mov, a call of what adds to al, and comes back. */
#define GOT_CALL 0x53u

static uint8_t call[LEN];

static void put_code(uint8_t *at)
{
	static const uint8_t callee[] = { 0x04, GOT_CALL, 0xc3 };
	int32_t distance = 0x80;

	over_put_site(at);
	memcpy(site + LEN + distance, callee, sizeof(callee));
	call[0] = 0xe8;
	memcpy(call + 1, &distance, sizeof(distance));
}

static void start(unsigned split)
{
	start_by_membarrier();
	put_code(over_place(split));
}

static int over(const uint8_t *bytes)
{
	return over_at(site, bytes);
}

/* Nothing is lost on the way back, so no thread need be looked at. */
static int back(void)
{
	return pc_patch_over(site, adds, LEN, 1, STARTS, PC_STARTS_KEPT);
}

/* --- What is refused ------------------------------------------------------------------------ */

static void test_checks(void **state)
{
	static const uint8_t calls[] = { 0xe8, 0, 0, 0, 0, 0x04, 0x01 };
	static const uint8_t indirect[] = { 0x41, 0xff, 0xd3, 0x04, 0x01 };
	static const uint8_t far[] = { 0x2e, 0xff, 0x1f, 0x04, 0x01 };
	static const uint8_t jumps[] = { 0xff, 0xe0, 0x04, 0x01 };
	static const uint8_t asks[] = { 0x0f, 0x05, 0x04, 0x01 };
	static const uint8_t asks_last[] = { 0x04, 0x01, 0x0f, 0x05 };
	static const uint8_t nops[] = { 0x90, 0x90, 0x04, 0x01 };

	(void)state;
	assert_true(merge_returns_inside(calls, 7, 0x21, 0x01));
	assert_false(merge_returns_inside(calls, 7, 0x21, 0x21));
	assert_false(merge_returns_inside(calls, 5, 0x01, 0x01));
	assert_false(merge_returns_inside(calls + 5, 2, 0x01, 0x01));
	assert_true(merge_returns_inside(indirect, 5, 0x09, 0x01));
	assert_true(merge_returns_inside(far, 5, 0x09, 0x01));
	assert_false(merge_returns_inside(jumps, 4, 0x05, 0x01));
	assert_true(merge_makes_threads(asks, 4, 0x05));
	assert_false(merge_makes_threads(asks_last, 4, 0x05));
	assert_false(merge_makes_threads(asks, 4, 0x01 | 0x02));
	assert_true(merge_denies_nops(nops, 4, 0x05));
	assert_false(merge_denies_nops(nops, 4, 0x07));
	assert_false(merge_denies_nops(nops, 4, 0x03));
	assert_false(merge_denies_nops(nops + 2, 2, 0x01));
}

static void refusals(const void *arg)
{
	static const uint8_t int3[LEN] = { 0x90, 0x90, CODE_INT3, 0x90, 0x90 };
	static const uint8_t calls[] = { 0xff, 0xd0, 0x04, 0x10, 0x04 };
	const enum pc_inside who = PC_CHECK_THREADS;

	(void)arg;
	put_code(over_place(3));
	MUST(over(mov) == -ESHUTDOWN);
	start(3);
	MUST(pc_patch_over(site, mov, 0, 1, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, PC_PATCH_MAX + 1, STARTS, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, NULL, LEN, STARTS, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS & ~1u, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS, 0, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS | 0x20, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS, 0x21, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS | 0x10000, 1, who) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS, 1, (enum pc_inside)3) == -EINVAL);
	MUST(pc_patch_over(site, int3, LEN, STARTS, 5, who) == -EINVAL);
	/* The checked form without a look: nothing may be lost. */
	MUST(pc_patch_over(site, mov, LEN, STARTS, 1, PC_STARTS_KEPT) == -EINVAL);
	MUST(pc_patch_over(site, mov, LEN, STARTS, 5, PC_STARTS_KEPT) == -EINVAL);
	MUST(pc_patch_over((void *)(uintptr_t)64, mov, LEN, STARTS, 1, who) == -EFAULT);
	MUST(site_is(adds) && run_site() == GOT_OLD);
	*site = CODE_INT3;
	MUST(over(mov) == -EAGAIN);
	*site = adds[0];
	/* An INT3 on a start that is kept. */
	site[2] = CODE_INT3;
	MUST(pc_patch_over(site, mov, LEN, STARTS, 5, who) == -EAGAIN);
	site[2] = adds[2];
	memset(site, MERGE_NOP, LEN);
	MUST(over(mov) == -EILSEQ);
	MUST(pc_patch_over(site, mov, LEN, 0x1f, 1, who) == 0 && site_is(mov));
	memcpy(site, calls, LEN);
	MUST(over(mov) == -EINVAL && site_is(calls));
	MUST(pc_patch_over(site, mov, LEN, STARTS, 1, PC_NOBODY_INSIDE) == 0 && site_is(mov));
}

/* A start that is kept has a site of its own, and another patcher may be at it. */
static void held(const void *arg)
{
	static const uint8_t others[LEN] = { 0x04, 0x02, 0x04, 0x20, 0x04 };
	struct merge merge = { .bytes = others, .old_starts = STARTS, .new_starts = 5 };

	(void)arg;
	start(2);
	MUST(text_begin(&merge.span, site, LEN) == 0);
	MUST(merge_find(&merge) == 0 && merge_hold(&merge) == 0);
	MUST(over(mov) == -EAGAIN);
	MUST(pc_patch_over(site + 2, others, 3, 5, 1, PC_CHECK_THREADS) == -EAGAIN);
	merge_release(&merge);
	MUST(!sites_count().held);
	MUST(pc_patch_over(site + 2, others, 3, 5, 1, PC_CHECK_THREADS) == 0);
	text_end(&merge.span);
}

/* --- Every place --------------------------------------------------------------------------- */

static void must_change(const uint8_t *bytes, uint32_t got, enum pc_inside who)
{
	uint8_t before[4 * LEN];

	memcpy(before, site - LEN, sizeof(before));
	MUST(run_site() == GOT_OLD);
	MUST(pc_patch_over(site, bytes, LEN, STARTS, 1, who) == 0);
	MUST(site_is(bytes) && run_site() == got);
	MUST(memcmp(site - LEN, before, LEN) == 0);
	MUST(memcmp(site + LEN, before + 2 * LEN, 2 * LEN) == 0);
	MUST(back() == 0);
	MUST(site_is(adds) && run_site() == GOT_OLD);
}

static void every_place(const void *arg)
{
	const enum pc_inside who = *(const enum pc_inside *)arg;

	for (unsigned split = 0; split <= LEN; split++) {
		start(split);
		must_change(mov, GOT_NEW, who);
		must_change(call, GOT_CALL, who);
		MUST(mprotect(site + split - CODE_PAGE, 2 * CODE_PAGE, RX) == 0);
		must_change(call, GOT_CALL, who);
		MUST(code_prot(site) == RX);
		MUST(pc_text_alias(site, LEN) == 0);
		must_change(mov, GOT_NEW, who);
		MUST(pc_text_close(site, LEN) == 0);
		MUST(!sites_count().held);
	}
}

static const enum pc_inside promised = PC_NOBODY_INSIDE, checked = PC_CHECK_THREADS;

static void test_every_place(void **state)
{
	(void)state;
	child_must_pass(every_place, &promised);
	child_must_pass(every_place, &checked);
}

/* --- Exact counting ------------------------------------------------------------------------ */

struct tally {
	unsigned long runs, old, new, called;
};

static atomic_bool all_seen; /* by some executor */

static void *execute(void *arg)
{
	struct tally *tally = arg;

	sem_post(&ready);
	while (!stop) {
		uint32_t got = run_site();

		tally->runs++;
		tally->old += got == GOT_OLD;
		tally->new += got == GOT_NEW;
		tally->called += got == GOT_CALL;
		if (tally->old && tally->new && tally->called)
			all_seen = true;
	}
	return NULL;
}

static void *run_once(void *arg)
{
	uint32_t got = run_site();

	MUST(got == GOT_OLD || got == GOT_NEW || got == GOT_CALL);
	return arg;
}

static void *make_threads(void *arg)
{
	pthread_t thread;

	sem_post(&ready);
	while (!stop)
		if (pthread_create(&thread, NULL, run_once, NULL) == 0)
			pthread_join(thread, NULL);
	return arg;
}

static void prepare(unsigned split)
{
	over_begin();
	put_code(over_place(split));
}

static unsigned long changes(void)
{
	return (unsigned long)(CHANGES * test_scale()) + 1;
}

static void counts(const void *arg)
{
	struct tally tally[EXECUTORS] = { { 0 } }, all = { 0 };
	pthread_t threads[EXECUTORS + 1];

	prepare(*(const unsigned *)arg);
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&threads[i], NULL, execute, &tally[i]) == 0);
	MUST(pthread_create(&threads[EXECUTORS], NULL, make_threads, NULL) == 0);
	for (int i = 0; i <= EXECUTORS; i++)
		MUST(sem_wait(&ready) == 0);
	/* Executors that are starved come to it in the end. */
	for (unsigned long i = 0; i < changes() || (!all_seen && i < 1000 * changes()); i++) {
		MUST(over(i % 2 ? mov : call) == 0);
		MUST(back() == 0);
	}
	stop = true;
	for (int i = 0; i <= EXECUTORS; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < EXECUTORS; i++) {
		MUST(tally[i].old + tally[i].new + tally[i].called == tally[i].runs);
		all.old += tally[i].old;
		all.new += tally[i].new;
		all.called += tally[i].called;
	}
	MUST(all.old > 0 && all.new > 0 && all.called > 0);
}

static void test_counts(void **state)
{
	static const unsigned inside = 0, split = 2;

	(void)state;
	child_must_pass(counts, &inside);
	child_must_pass(counts, &split);
}

/* --- A start that stays one ------------------------------------------------------------------ */

/* A NOP of four bytes, and the third add, of another number. */
#define KEPT_LEN 6u
#define KEPT	 0x11u

static const uint8_t kept[KEPT_LEN] = { 0x0f, 0x1f, 0x40, 0x00, 0x04, 0x20 };

/* xor eax, eax; jmp to the third */
static const uint8_t *put_entry(void)
{
	uint8_t *at = site + 0x200;
	int32_t distance = (int32_t)(site + 4 - (at + 7));

	at[0] = 0x31;
	at[1] = 0xc0;
	at[2] = 0xe9;
	memcpy(at + 3, &distance, sizeof(distance));
	return at;
}

static void *execute_entry(void *arg)
{
	sem_post(&ready);
	while (!stop) {
		uint32_t got = code_run(arg);

		MUST(got == 0x40 || got == 0x20);
	}
	return NULL;
}

/* Those that were in between may go on with the second of the other. */
static void *execute_kept(void *arg)
{
	sem_post(&ready);
	while (!stop) {
		uint32_t got = run_site();

		MUST(got == GOT_OLD || got == 0x20 || got == 0x31 || got == 0x40);
	}
	return arg;
}

static void starts_kept(const void *arg)
{
	pthread_t threads[2];

	prepare(*(const unsigned *)arg);
	MUST(pthread_create(&threads[0], NULL, execute_entry, (void *)put_entry()) == 0);
	MUST(pthread_create(&threads[1], NULL, execute_kept, NULL) == 0);
	for (int i = 0; i < 2; i++)
		MUST(sem_wait(&ready) == 0);
	for (unsigned long i = 0; i < changes(); i++) {
		MUST(pc_patch_over(site, kept, KEPT_LEN, STARTS, KEPT, PC_CHECK_THREADS) == 0);
		MUST(memcmp(site, kept, KEPT_LEN) == 0 && !sites_count().held);
		MUST(pc_patch_over(site, adds, KEPT_LEN, KEPT, STARTS, PC_STARTS_KEPT) == 0);
		MUST(site_is(adds));
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

static void test_starts_kept(void **state)
{
	static const unsigned inside = 0, split = 2, behind = 5;

	(void)state;
	child_must_pass(starts_kept, &inside);
	child_must_pass(starts_kept, &split);
	child_must_pass(starts_kept, &behind);
}

/* --- Several at once -------------------------------------------------------------------------- */

/* Each patcher has a site of its own, and all threads run both. */
static uint8_t *sites[2];

static void *execute_both(void *arg)
{
	sem_post(&ready);
	while (!stop) {
		for (int i = 0; i < 2; i++) {
			uint32_t got = code_run(sites[i] - 2);

			MUST(got == GOT_OLD || got == GOT_NEW);
		}
	}
	return arg;
}

static void *change_one(void *arg)
{
	for (unsigned long i = 0; i < changes() / 2; i++) {
		MUST(pc_patch_over(arg, mov, LEN, STARTS, 1, PC_CHECK_THREADS) == 0);
		MUST(memcmp(arg, mov, LEN) == 0);
		MUST(pc_patch_over(arg, adds, LEN, 1, STARTS, PC_STARTS_KEPT) == 0);
	}
	return NULL;
}

static void together(const void *arg)
{
	pthread_t executors[EXECUTORS], patchers[2];

	(void)arg;
	prepare(2);
	sites[0] = site;
	put_code(over_place(3));
	sites[1] = site;
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&executors[i], NULL, execute_both, NULL) == 0);
	for (int i = 0; i < EXECUTORS; i++)
		MUST(sem_wait(&ready) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&patchers[i], NULL, change_one, sites[i]) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(patchers[i], NULL) == 0);
	stop = true;
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_join(executors[i], NULL) == 0);
}

/* --- A thread that stands inside, by turns --------------------------------------------------- */

static char alternate_stack[65536];
static const stack_t alternate = { .ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack) };
static void take_signal(int flags)
{
	struct sigaction action = { .sa_handler = note_signal, .sa_flags = flags };

	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void *execute_until_other(void *arg)
{
	stack_t before;

	MUST(sigaltstack(&alternate, &before) == 0);
	run_until_other(site - 2);
	MUST(sigaltstack(&before, NULL) == 0);
	return arg;
}

typedef int change_fn(void);

static int by_over(void)
{
	return over(mov);
}

/* pc_patch() leaves it to its caller that no thread stands inside. */
static int by_patch(void)
{
	return pc_patch(site, mov, LEN);
}

static int without_look(void)
{
	struct merge merge = { .bytes = mov, .old_starts = STARTS, .new_starts = 1 };

	MUST(text_begin(&merge.span, site, LEN) == 0);
	MUST(merge_find(&merge) == 0 && merge_hold(&merge) == 0);
	merge_put_int3(&merge);
	MUST(membarrier_sync() == 0);
	merge_put_rest(&merge);
	MUST(membarrier_sync() == 0);
	merge_put_doors(&merge);
	merge_release(&merge);
	text_end(&merge.span);
	return 0;
}

struct turn {
	unsigned at;
	change_fn *change;
	bool interrupt; /* is it in a signal handler when it is looked at? */
	int flags;	/* of that */
	bool beside;	/* another patcher looks at all threads, too, for a site of its own */
};

static void *change_beside(void *arg)
{
	int ret;

	while (!stop) {
		ret = pc_patch_over(arg, mov, LEN, STARTS, 1, PC_CHECK_THREADS);
		/* The sanitizer's large frames leave old ones of handlers in what they do not use.
		 */
		MUST(ret == 0 || (CHILD_ASAN && ret == -ETIMEDOUT));
		MUST(pc_patch_over(arg, adds, LEN, 1, STARTS, PC_STARTS_KEPT) == 0);
	}
	return NULL;
}

static void stand(const void *arg)
{
	const struct turn *turn = arg;
	bool looks = turn->change == by_over;
	pthread_t thread, other;
	uint8_t *beside;
	pid_t tracer;
	int saw;

	prepare(2);
	beside = site;
	put_code(over_place(2));
	take_signal(turn->flags);
	tracer = over_stand(&thread, execute_until_other, NULL, site, turn->at, turn->interrupt);
	if (turn->beside)
		MUST(pthread_create(&other, NULL, change_beside, beside) == 0);
	MUST(turn->change() == 0);
	/* Nor is the change over before the handler is. */
	MUST(turn->at == 0 || handled == turn->interrupt);
	saw = stand_end(tracer);
	MUST(pthread_join(thread, NULL) == 0);
	stop = true;
	if (turn->beside)
		MUST(pthread_join(other, NULL) == 0);
	/* One that is held at the first instruction need not answer. */
	MUST(saw == (looks && turn->at ? STAND_SAW_SIGNAL : STAND_SAW_CHANGE));
	MUST(got_last == (looks || turn->at == 0 ? GOT_NEW : GOT_BAD));
}

static void test_stand_inside(void **state)
{
	(void)state;
	for (unsigned at = 0; at < LEN; at += 2) {
		struct turn turn = { .at = at, .change = by_over };

		child_must_pass(stand, &turn);
		turn.interrupt = true;
		child_must_pass(stand, &turn);
		turn.flags = SA_ONSTACK;
		child_must_pass(stand, &turn);
		turn.beside = true;
		child_must_pass(stand, &turn);
	}
}

/* Without the look it goes wrong wherever the thread stands: so the test can fail. */
static void test_without_look(void **state)
{
	(void)state;
	for (unsigned at = 0; at < LEN; at += 2) {
		const struct turn turn = { .at = at, .change = without_look };

		child_must_pass(stand, &turn);
	}
}

/* And so does pc_patch(), which is why there is another function. */
static void test_patch_tears(void **state)
{
	(void)state;
	for (unsigned at = 0; at < LEN; at += 2) {
		const struct turn turn = { .at = at, .change = by_patch };

		child_must_pass(stand, &turn);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),
		child_unit_test(refusals),
		child_unit_test(held),
		cmocka_unit_test(test_every_place),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_starts_kept),
		child_unit_test(together),
		cmocka_unit_test(test_stand_inside),
		cmocka_unit_test(test_without_look),
		cmocka_unit_test(test_patch_tears),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
