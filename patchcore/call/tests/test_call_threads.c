/* SPDX-License-Identifier: MIT */
/*
 * Calls turned on and off, and elsewhere, while other threads run them, and
 * while other threads do the same. What the executors got is counted: each
 * execution went to one of the targets or to none, and no fourth way. TMAX_STRESS_SCALE lengthens
 * it.
 */
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

#include "patchcore/patchcore.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/start.h"

#define EXECUTORS 2
#define PATCHERS  3
#define KINDS	  5 /* off, one, two, far, and anything else */

static struct pc_call call;
static atomic_bool stop;
static _Atomic(uint64_t) executions;
static _Atomic(uint64_t) seen[KINDS];

/* Toggles per place and storm. */
static unsigned long rounds(void)
{
	return (unsigned long)(3000 * test_scale());
}

static void start(void)
{
	start_by_membarrier();
	call_pages();
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
}

/* --- Executors ----------------------------------------------------------------------- */

static void *execute(void *at)
{
	uint64_t mine[KINDS] = { 0 }, count = 0;

	do {
		for (int i = 0; i < 100; i++) {
			uint32_t number = call_run(at);

			mine[number <= FAR ? number : KINDS - 1]++;
		}
		count += 100;
		atomic_fetch_add(&executions, 100);
	} while (!atomic_load(&stop));
	for (int i = 0; i < KINDS; i++)
		atomic_fetch_add(&seen[i], mine[i]);
	atomic_fetch_sub(&executions, count);
	return (void *)(uintptr_t)count;
}

static pthread_t executors[EXECUTORS];

static void start_executors(uint8_t *at)
{
	for (int i = 0; i < EXECUTORS; i++)
		MUST(pthread_create(&executors[i], NULL, execute, at) == 0);
}

/* All that was executed is accounted for. */
static void stop_executors(void)
{
	uint64_t sum = 0, all = 0;
	void *count;

	atomic_store(&stop, true);
	for (int i = 0; i < EXECUTORS; i++) {
		MUST(pthread_join(executors[i], &count) == 0);
		all += (uintptr_t)count;
	}
	for (int i = 0; i < KINDS - 1; i++)
		sum += atomic_load(&seen[i]);
	MUST(sum == all && atomic_load(&seen[KINDS - 1]) == 0);
}

/* Until the executors have run the call as it is now, many times. */
static void let_run(void)
{
	uint64_t before = atomic_load(&executions);

	while (atomic_load(&executions) - before < 1000)
		sched_yield();
}

/* --- One patcher ------------------------------------------------------------------------ */

static void on_and_off(const void *arg)
{
	const struct place *place = arg;
	unsigned long n = rounds();

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	start_executors(call.addr);
	let_run();
	for (unsigned long i = 0; i < n; i++) {
		MUST(pc_deactivate_call(&call) == 0);
		if (i % 256 == 0)
			let_run();
		MUST(pc_activate_call(&call, NULL) == 0);
		if (i % 256 == 0)
			let_run();
	}
	stop_executors();
	MUST(seen[OFF] > 0 && seen[ONE] > 0 && seen[TWO] == 0 && seen[FAR] == 0);
}

static void retarget_storm(const void *arg)
{
	const struct place *place = arg;
	unsigned long n = rounds();

	start();
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	start_executors(call.addr);
	let_run();
	for (unsigned long i = 0; i < n; i++) {
		static uint8_t **const targets[] = { &one, &two, &far_away };

		MUST(pc_activate_call(&call, *targets[i % 3]) == 0);
		if (i % 257 < 3)
			let_run();
		if (i % 5 == 0)
			MUST(pc_deactivate_call(&call) == 0);
		if (i % 500 == 0)
			let_run();
	}
	stop_executors();
	MUST(seen[OFF] > 0 && seen[ONE] > 0 && seen[TWO] > 0 && seen[FAR] > 0);
}

/* --- Its first target of its own, again and again ------------------------------------------ */

static void *flip(void *unused)
{
	while (!atomic_load(&stop)) {
		int ret = pc_deactivate_call(&call);

		MUST(ret == 0 || ret == -EAGAIN);
		ret = pc_activate_call(&call, NULL);
		MUST(ret == 0 || ret == -EAGAIN);
	}
	return unused;
}

/* Executors run it, and another thread turns it on and off, while it is moved. */
static void moved_in_flight(const void *arg)
{
	const struct place *place = arg;
	unsigned long n = 1 + rounds() / 30;
	pthread_t flipper;
	int ret;

	start();
	for (unsigned long i = 0; i < n; i++) {
		MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
		atomic_store(&stop, false);
		memset(seen, 0, sizeof(seen));
		start_executors(call.addr);
		MUST(pthread_create(&flipper, NULL, flip, NULL) == 0);
		do
			ret = pc_activate_call(&call, two);
		while (ret == -EAGAIN);
		MUST(ret == 0);
		stop_executors();
		MUST(pthread_join(flipper, NULL) == 0);
		MUST(pc_deactivate_call(&call) == 0 && call_run(call.addr) == OFF);
		MUST(pc_activate_call(&call, two) == 0 && call_run(call.addr) == TWO);
		MUST(pc_call_fini(&call) == 0);
	}
}

/* --- Several patchers, one call ------------------------------------------------------------- */

static void *patch_same(void *to)
{
	unsigned long n = rounds();

	for (unsigned long i = 0; i < n; i++) {
		int ret = pc_activate_call(&call, to);

		MUST(ret == 0 || ret == -EAGAIN);
		if (i % 3 == 0) {
			ret = pc_deactivate_call(&call);
			MUST(ret == 0 || ret == -EAGAIN);
		}
		if (i % 256 == 0)
			let_run();
	}
	return NULL;
}

static void same_call(const void *arg)
{
	const struct place *place = arg;
	uint8_t *targets[PATCHERS];
	pthread_t patchers[PATCHERS];

	start();
	targets[0] = one;
	targets[1] = two;
	targets[2] = far_away;
	MUST(pc_call_init(&call, put_call(place_at(place), place->form)) == 0);
	start_executors(call.addr);
	for (int i = 0; i < PATCHERS; i++)
		MUST(pthread_create(&patchers[i], NULL, patch_same, targets[i]) == 0);
	for (int i = 0; i < PATCHERS; i++)
		MUST(pthread_join(patchers[i], NULL) == 0);
	stop_executors();
	/* The last wins. */
	MUST(pc_activate_call(&call, two) == 0 && call_run(call.addr) == TWO);
	MUST(pc_deactivate_call(&call) == 0 && call_run(call.addr) == OFF);
	MUST(pc_activate_call(&call, NULL) == 0 && call_run(call.addr) == ONE);
}

/* --- Neighbours ------------------------------------------------------------------------------- */

/*
 * Tail calls and calls side by side, so that some 8-byte words are shared by
 * three, each with a patcher of its own. All are run one after the other.
 */
#define NEIGHBOURS 24

static struct pc_call neighbours[NEIGHBOURS];
static unsigned last[NEIGHBOURS]; /* as its patcher left it */

static uint8_t *put_neighbours(void)
{
	static const enum call_form forms[] = { CALL_NEAR, CALL_SLOT, CALL_NEAR, CALL_ADDR32 };
	uint8_t *at = code + CODE_PAGE - 61;

	for (int i = 0; i < NEIGHBOURS; i++) {
		size_t len = call_encode(at, forms[i % 4], to_target(at, forms[i % 4], one));

		MUST(pc_call_init(&neighbours[i], at) == 0);
		at += len;
	}
	*at = 0xc3;
	return neighbours[0].addr;
}

static void *patch_neighbours(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg;
	unsigned long n = rounds();

	for (unsigned long i = 0; i < n; i++)
		for (unsigned j = first; j < NEIGHBOURS; j += PATCHERS) {
			struct pc_call *one_of = &neighbours[j];

			last[j] = (unsigned)((i + j) % 4);
			if (last[j] == OFF)
				MUST(pc_deactivate_call(one_of) == 0);
			else
				MUST(pc_activate_call(one_of, last[j] == ONE   ? NULL
							      : last[j] == TWO ? two
									       : far_away) == 0);
		}
	return NULL;
}

static void must_be_as_left(void)
{
	static uint8_t **const targets[] = { NULL, &one, &two, &far_away };
	struct pc_call_info info;

	for (int i = 0; i < NEIGHBOURS; i++) {
		MUST(pc_call_get(&neighbours[i], &info) == 0);
		MUST(info.active == (last[i] != OFF));
		MUST(info.target == (last[i] == OFF ? NULL : *targets[last[i]]));
	}
}

static void adjacent(const void *arg)
{
	pthread_t patchers[PATCHERS];
	uint8_t *at;

	(void)arg;
	start();
	at = put_neighbours();
	start_executors(at);
	for (uintptr_t i = 0; i < PATCHERS; i++)
		MUST(pthread_create(&patchers[i], NULL, patch_neighbours, (void *)i) == 0);
	for (int i = 0; i < PATCHERS; i++)
		MUST(pthread_join(patchers[i], NULL) == 0);
	stop_executors();
	must_be_as_left();
}

static const struct CMUnitTest tests[] = {
	AT_ALL_PLACES(on_and_off), AT_ALL_PLACES(retarget_storm), AT_ALL_PLACES(moved_in_flight),
	AT_ALL_PLACES(same_call),  child_unit_test(adjacent),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
