/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/patchcore.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/word/word.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* How straddlers can be patched. */
struct way {
	enum pc_policy policy;
	unsigned window; /* bytes that one store changes */
	uint64_t wait;	 /* ticks, each of two */
};

static const struct way membarrier = { PC_POLICY_MEMBARRIER, 8, 0 };
static const struct way wait_8 = { PC_POLICY_WAIT, 8, 600 };
static const struct way wait_16 = { PC_POLICY_WAIT, 16, 600 };
static const struct way wait_32 = { PC_POLICY_WAIT, 32, 600 };
static const struct way wait_64 = { PC_POLICY_WAIT, 64, 600 };
static const struct way no_wait = { PC_POLICY_WAIT, 8, 0 };
static const struct way long_wait = { PC_POLICY_WAIT, 8, 20000 };

static void use(const struct way *way)
{
	struct machine_conf conf = conf_here();

	conf.level[0].waits.first = conf.level[0].waits.second = way->wait;
	conf.window = way->window;
	if (way->policy == PC_POLICY_WAIT)
		conf_use(&conf);
	else
		conf_use_none();
	if (way->policy == PC_POLICY_WAIT && !conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	MUST(pc_init() == 0);
	if (pc_set_policy(way->policy) < 0)
		child_skip("this policy is not to be had here");
}

/* --- Every place ---------------------------------------------------------------------- */

#define MARGIN 80 /* bytes on either side of the page boundary */

static uint8_t *pages;
static uint8_t expected[2 * CODE_PAGE];

/* Never INT3 or a 1-byte NOP, and never the same. */
static uint8_t another(uint8_t byte)
{
	byte = (uint8_t)(byte * 5 + 17);
	return byte == CODE_INT3 || byte == 0x90 ? 1 : byte;
}

static void start(const struct way *way, int prot)
{
	use(way);
	pages = code_map(2, prot);
	memcpy(expected, pages, sizeof(expected));
}

static void must_patch(size_t at, size_t len)
{
	uint8_t bytes[PC_PATCH_MAX];

	for (size_t i = 0; i < len; i++)
		bytes[i] = another(pages[at + i]);
	memcpy(expected + at, bytes, len);
	MUST(pc_patch(pages + at, bytes, len) == 0);
	MUST(memcmp(pages, expected, sizeof(expected)) == 0);
}

static void must_patch_everywhere(void)
{
	for (size_t at = CODE_PAGE - MARGIN; at < CODE_PAGE + MARGIN; at++)
		for (size_t len = 1; len <= PC_PATCH_MAX; len++)
			must_patch(at, len);
	must_patch(0, PC_PATCH_MAX);
	must_patch(2 * CODE_PAGE - 1, 1);
	must_patch(2 * CODE_PAGE - PC_PATCH_MAX, PC_PATCH_MAX);
}

static void everywhere_open(const void *way)
{
	start(way, RX);
	MUST(pc_text_open(pages, sizeof(expected)) == 0);
	must_patch_everywhere();
	MUST(pc_text_close(pages, sizeof(expected)) == 0);
	MUST(code_prot(pages) == RX && code_prot(pages + CODE_PAGE) == RX);
}

static void test_everywhere_open(void **state)
{
	child_must_pass(everywhere_open, *state);
}

static void everywhere_closed(const void *way)
{
	start(way, RX);
	must_patch_everywhere();
	MUST(code_prot(pages) == RX && code_prot(pages + CODE_PAGE) == RX);
}

static void test_everywhere_closed(void **state)
{
	child_must_pass(everywhere_closed, *state);
}

/* --- What changes ----------------------------------------------------------------------- */

/* Of the five bytes of a straddler those that have their bit set. */
static void must_patch_some(size_t at, unsigned which)
{
	uint8_t bytes[CODE_LEN];

	memcpy(bytes, pages + at, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (which & 1u << i)
			bytes[i] = another(bytes[i]);
	memcpy(expected + at, bytes, sizeof(bytes));
	MUST(pc_patch(pages + at, bytes, sizeof(bytes)) == 0);
	MUST(memcmp(pages, expected, sizeof(expected)) == 0);
}

static void some_bytes(const void *way)
{
	start(way, RWX);
	MUST(pc_text_open(pages, sizeof(expected)) == 0);
	for (size_t front = 1; front < CODE_LEN; front++)
		for (unsigned which = 0; which < 1u << CODE_LEN; which++)
			must_patch_some(CODE_PAGE - front, which);
}

static void test_some_bytes(void **state)
{
	child_must_pass(some_bytes, *state);
}

/* INT3 means something only as the first byte. */
static void int3_inside(const void *way)
{
	static const uint8_t bytes[] = { CODE_NOP, CODE_INT3, CODE_INT3, CODE_INT3, CODE_NOP };

	start(way, RWX);
	for (size_t front = 0; front <= sizeof(bytes); front++) {
		size_t at = CODE_PAGE - front;

		memcpy(expected + at, bytes, sizeof(bytes));
		MUST(pc_patch(pages + at, bytes, sizeof(bytes)) == 0);
		MUST(memcmp(pages, expected, sizeof(expected)) == 0);
		must_patch(at, sizeof(bytes));
	}
}

static void test_int3_inside(void **state)
{
	child_must_pass(int3_inside, *state);
}

/* --- What is refused ---------------------------------------------------------------------- */

#define INSIDE	 512		 /* no boundary of any window in what follows */
#define STRADDLE (CODE_PAGE - 2) /* one of every window */

static void must_refuse(size_t at, const void *bytes, size_t len, int error)
{
	MUST(pc_patch(pages + at, bytes, len) == error);
	MUST(memcmp(pages, expected, sizeof(expected)) == 0);
}

static void bad_arguments(const void *way)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	static const uint8_t int3[] = { CODE_INT3, 2, 3, 4, 5 };
	static const size_t places[] = { INSIDE, STRADDLE };

	start(way, RWX);
	for (size_t i = 0; i < LENGTH(places); i++) {
		must_refuse(places[i], bytes, 0, -EINVAL);
		must_refuse(places[i], bytes, PC_PATCH_MAX + 1, -EINVAL);
		must_refuse(places[i], bytes, SIZE_MAX, -EINVAL);
		must_refuse(places[i], NULL, 5, -EINVAL);
		must_refuse(places[i], int3, 1, -EINVAL);
		must_refuse(places[i], int3, sizeof(int3), -EINVAL);
		must_patch(places[i], 5);
	}
}

static void test_bad_arguments(void **state)
{
	child_must_pass(bad_arguments, *state);
}

static void not_mapped(const void *way)
{
	static const uintptr_t places[] = {
		0,
		1,
		CODE_PAGE - 2,
		UINT64_C(0x0000800000000000),
		UINT64_C(0xffff800000000000),
		UINTPTR_MAX - CODE_PAGE,
		UINTPTR_MAX - 4,
		UINTPTR_MAX - 3,
		UINTPTR_MAX,
	};
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	uint8_t *hole;

	start(way, RWX);
	for (size_t i = 0; i < LENGTH(places); i++)
		MUST(pc_patch((void *)places[i], bytes, sizeof(bytes)) == -EFAULT);
	hole = code_map(3, RWX);
	munmap(hole + CODE_PAGE, CODE_PAGE);
	MUST(pc_patch(hole + CODE_PAGE + 8, bytes, sizeof(bytes)) == -EFAULT);
	MUST(pc_patch(hole + CODE_PAGE - 2, bytes, sizeof(bytes)) == -EFAULT);
	MUST(pc_patch(hole + 2 * CODE_PAGE - 2, bytes, sizeof(bytes)) == -EFAULT);
	for (size_t i = 0; i < CODE_PAGE; i++)
		MUST(hole[i] == CODE_NOP && hole[2 * CODE_PAGE + i] == CODE_NOP);
	MUST(pc_patch(hole + CODE_PAGE - 5, bytes, sizeof(bytes)) == 0);
}

static void test_not_mapped(void **state)
{
	child_must_pass(not_mapped, *state);
}

static void must_refuse_all(size_t at)
{
	uint8_t bytes[CODE_LEN];

	for (unsigned which = 0; which < 1u << CODE_LEN; which++) {
		memset(bytes, CODE_NOP, sizeof(bytes));
		for (size_t i = 0; i < sizeof(bytes); i++)
			if (which & 1u << i)
				bytes[i] = another(bytes[i]);
		must_refuse(at, bytes, sizeof(bytes), -EAGAIN);
	}
}

/* A debugger's, or that of a patcher that is not of this library. */
static void foreign_int3(const void *way)
{
	static const size_t places[] = { INSIDE, INSIDE + 3, STRADDLE };

	start(way, RWX);
	for (size_t i = 0; i < LENGTH(places); i++) {
		pages[places[i]] = expected[places[i]] = CODE_INT3;
		must_refuse_all(places[i]);
		pages[places[i]] = expected[places[i]] = CODE_NOP;
		must_patch(places[i], CODE_LEN);
	}
}

static void test_foreign_int3(void **state)
{
	child_must_pass(foreign_int3, *state);
}

static void *refused_to_another(void *state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };

	(void)state;
	memcpy(expected, pages, sizeof(expected));
	must_refuse(STRADDLE, bytes, sizeof(bytes), -EAGAIN);
	return NULL;
}

static void must_refuse_another(void)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, refused_to_another, NULL) == 0);
	pthread_join(thread, NULL);
}

/* From the beginning to the end of one patcher's patch no other gets the site. */
static void held(const void *way)
{
	uint8_t bytes[CODE_LEN];
	struct change change;
	struct sync sync = { .window = 8 };
	struct word *word;

	start(way, RWX);
	change = change_in_place(pages + STRADDLE, bytes, sizeof(bytes));
	code_load(bytes, CODE_NEW);
	MUST(word_hold(&word, &change, &sync) == 0);
	must_refuse_another();
	MUST(word_put_int3(word) == 0);
	must_refuse_another();
	word_put_back(word);
	must_refuse_another();
	word_put_front(word);
	must_refuse_another();
	word_release(word);
	must_patch(STRADDLE, CODE_LEN);
}

static void test_held(void **state)
{
	child_must_pass(held, *state);
}

/* --- By several threads ---------------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	size_t at[2]; /* patched by turns */
	size_t places;
	size_t len;
	unsigned rounds;
};

/* What it wrote must stand until it writes again. */
static void work_round(const struct worker *w, size_t at, uint8_t *code)
{
	MUST(memcmp(pages + at, code, w->len) == 0);
	for (size_t i = 0; i < w->len; i++)
		code[i] = another(code[i]);
	MUST(pc_patch(pages + at, code, w->len) == 0);
	MUST(memcmp(pages + at, code, w->len) == 0);
}

static void *work(void *arg)
{
	const struct worker *w = arg;
	uint8_t code[2][PC_PATCH_MAX];

	memset(code, CODE_NOP, sizeof(code));
	for (unsigned i = 0; i < w->rounds; i++)
		work_round(w, w->at[i % w->places], code[i % w->places]);
	return NULL;
}

static void work_all(struct worker *workers, size_t count)
{
	MUST(pc_text_open(pages, sizeof(expected)) == 0);
	for (size_t i = 0; i < count; i++)
		MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	for (size_t i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

static void same_word(const void *way)
{
	struct worker workers[] = {
		{ .at = { INSIDE, INSIDE + 7 }, .places = 2, .len = 1, .rounds = 1000000 },
		{ .at = { INSIDE + 3, INSIDE + 4 }, .places = 2, .len = 1, .rounds = 1000000 },
	};

	start(way, RWX);
	work_all(workers, LENGTH(workers));
}

static void test_same_word(void **state)
{
	child_must_pass(same_word, *state);
}

/* The neighbours of its front and of its back. */
static void straddler_and_neighbours(const void *way)
{
	struct worker workers[] = {
		{ .at = { STRADDLE }, .places = 1, .len = CODE_LEN, .rounds = 50000 },
		{ .at = { STRADDLE - 1, STRADDLE + CODE_LEN }, .places = 2, .len = 1 },
	};

	start(way, RWX);
	workers[1].rounds = 200000;
	if (way == &membarrier)
		workers[0].rounds = 2000;
	work_all(workers, LENGTH(workers));
}

static void test_straddler_and_neighbours(void **state)
{
	child_must_pass(straddler_and_neighbours, *state);
}

#define CONTESTS 2000

struct contestant {
	pthread_t thread;
	uint32_t number;
	int ret;
};

static pthread_barrier_t contest;

static void *compete(void *arg)
{
	struct contestant *c = arg;
	uint8_t code[CODE_LEN];

	code_load(code, c->number);
	for (int i = 0; i < CONTESTS; i++) {
		pthread_barrier_wait(&contest);
		c->ret = pc_patch(pages + STRADDLE, code, sizeof(code));
		pthread_barrier_wait(&contest);
		/* The judge looks at the outcome meanwhile. */
		pthread_barrier_wait(&contest);
	}
	return NULL;
}

static void judge(const struct contestant *a, const struct contestant *b)
{
	uint32_t number = code_run(pages + STRADDLE);

	MUST(a->ret == 0 || a->ret == -EAGAIN);
	MUST(b->ret == 0 || b->ret == -EAGAIN);
	MUST((a->ret == 0 && number == a->number) || (b->ret == 0 && number == b->number));
}

static void contests(const void *way)
{
	struct contestant a = { .number = CODE_OLD }, b = { .number = CODE_NEW };

	start(way, RWX);
	code_put(pages + STRADDLE, 0);
	MUST(pc_text_open(pages, sizeof(expected)) == 0);
	MUST(pthread_barrier_init(&contest, NULL, 3) == 0);
	MUST(pthread_create(&a.thread, NULL, compete, &a) == 0);
	MUST(pthread_create(&b.thread, NULL, compete, &b) == 0);
	for (int i = 0; i < CONTESTS; i++) {
		pthread_barrier_wait(&contest);
		pthread_barrier_wait(&contest);
		judge(&a, &b);
		pthread_barrier_wait(&contest);
	}
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
}

/* The patcher that was told that it won did, and none has half of it. */
static void test_contests(void **state)
{
	child_must_pass(contests, *state);
}

#define TOGGLES 3000

static atomic_bool done;

static void *execute(void *at)
{
	while (!done) {
		uint32_t number = code_run(at);

		MUST(number == CODE_OLD || number == CODE_NEW);
	}
	return NULL;
}

static void toggle(uint8_t *at)
{
	uint8_t code[CODE_LEN];
	pthread_t thread;

	code_put(at, CODE_OLD);
	done = false;
	MUST(pthread_create(&thread, NULL, execute, at) == 0);
	for (int i = 0; i < TOGGLES; i++) {
		code_load(code, i % 2 ? CODE_OLD : CODE_NEW);
		MUST(pc_patch(at, code, sizeof(code)) == 0);
	}
	done = true;
	pthread_join(thread, NULL);
}

/* By membarrier, which the kernel documents: a wait that was not calibrated proves nothing. */
static void executed(const void *way)
{
	start(way, RWX);
	MUST(pc_text_open(pages, sizeof(expected)) == 0);
	toggle(pages + INSIDE + 1);
	toggle(pages + STRADDLE);
}

static void test_executed(void **state)
{
	child_must_pass(executed, *state);
}

/* --- Without pc_init() --------------------------------------------------------------------- */

static void must_be_shut(uint8_t *at, const uint8_t code[CODE_LEN])
{
	struct pc_op op = { .addr = at, .bytes = code, .len = CODE_LEN };
	struct pc_status status;
	enum pc_text_way way;
	uint8_t before[CODE_LEN];

	memcpy(before, at, sizeof(before));
	MUST(pc_patch(at, code, CODE_LEN) == -ESHUTDOWN);
	MUST(pc_patch_starts(at, code, CODE_LEN, 1) == -ESHUTDOWN);
	MUST(pc_start_patch(at, code, CODE_LEN) == -ESHUTDOWN);
	MUST(pc_finish_patch(at) == -ESHUTDOWN);
	MUST(pc_drain() == -ESHUTDOWN);
	MUST(pc_patch_batch(&op, 1) == -ESHUTDOWN);
	MUST(pc_set_policy(PC_POLICY_AUTO) == -ESHUTDOWN);
	MUST(pc_get_status(&status) == -ESHUTDOWN);
	MUST(pc_set_accept_p(1) == -ESHUTDOWN);
	MUST(pc_text_open(at, 1) == -ESHUTDOWN && pc_text_alias(at, 1) == -ESHUTDOWN);
	MUST(pc_text_close(at, 1) == -ESHUTDOWN);
	MUST(pc_text_way(at, 1, &way, NULL, 0) == -ESHUTDOWN);
	MUST(code_prot(at) == RX);
	MUST(!trap_is_ours() && memcmp(at, before, sizeof(before)) == 0);
}

/* Neither before pc_init() nor after pc_fini() is anything patched. */
static void not_started(const void *way)
{
	uint8_t code[CODE_LEN];

	(void)way;
	pages = code_map(1, RX);
	code_load(code, CODE_NEW);
	conf_use_none();
	must_be_shut(pages + INSIDE, code);
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(pc_patch(pages + INSIDE, code, sizeof(code)) == 0);
	MUST(memcmp(pages + INSIDE, code, sizeof(code)) == 0);
	code_load(code, CODE_OLD);
	MUST(pc_fini() == 0 && pc_fini() == 0);
	must_be_shut(pages + INSIDE, code);
}

#define WITH(test, way)                                                                            \
	{                                                                                          \
#test "(" #way ")", test, NULL, NULL, (void *)(uintptr_t) & (way)                  \
	}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH(test_everywhere_open, membarrier),
		WITH(test_everywhere_open, wait_8),
		WITH(test_everywhere_open, wait_16),
		WITH(test_everywhere_open, wait_32),
		WITH(test_everywhere_open, wait_64),
		WITH(test_everywhere_closed, wait_8),
		WITH(test_some_bytes, membarrier),
		WITH(test_some_bytes, wait_8),
		WITH(test_some_bytes, wait_64),
		WITH(test_int3_inside, membarrier),
		WITH(test_int3_inside, wait_8),
		WITH(test_bad_arguments, membarrier),
		WITH(test_bad_arguments, wait_8),
		WITH(test_not_mapped, membarrier),
		WITH(test_not_mapped, wait_8),
		WITH(test_foreign_int3, membarrier),
		WITH(test_foreign_int3, wait_8),
		WITH(test_held, membarrier),
		WITH(test_held, wait_8),
		WITH(test_same_word, membarrier),
		WITH(test_straddler_and_neighbours, membarrier),
		WITH(test_straddler_and_neighbours, no_wait),
		WITH(test_contests, membarrier),
		WITH(test_contests, no_wait),
		WITH(test_contests, long_wait),
		WITH(test_executed, membarrier),
		child_unit_test(not_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
