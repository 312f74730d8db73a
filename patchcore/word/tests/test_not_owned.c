/* SPDX-License-Identifier: MIT */
/*
 * A thread that comes to a change of others owns nothing at first: between any two of its
 * instructions that change may be made, and another begin that has other fields.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/merge/merge.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/step.h"

static uint8_t *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

/* --- The other thread: makes the change that is in flight, and holds the site for a merge ----- */

static atomic_bool asked, held, let;

static void *hold_for_merge(void *unused)
{
	struct merge merge = { .bytes = old_code, .old_starts = 1, .new_starts = 1 };

	while (!asked)
		sched_yield();
	/* Unless the stepped thread owns the site just now. */
	for (int i = 0; i < 3; i++)
		MUST(pc_finish_patch(site) >= 0);
	MUST(text_begin(&merge.span, site, CODE_LEN) == 0);
	merge_read(&merge);
	held = merge_find(&merge) == 0 && merge_hold(&merge) == 0;
	asked = false;
	while (!let)
		sched_yield();
	if (held)
		merge_release(&merge);
	text_end(&merge.span);
	return unused;
}

/* --- The stepped one -------------------------------------------------------------------------- */

static unsigned long come_at; /* this step, from 1 on */
static bool came;

static bool look(void)
{
	if (step_now.count < come_at)
		return true;
	came = true;
	asked = true;
	while (asked)
		sched_yield();
	return false;
}

static void finish(void)
{
	MUST(pc_finish_patch(site) >= 0);
}

/* Returns whether there was such a step. */
static bool meet_merge_at(unsigned long step)
{
	pthread_t other;

	asked = let = held = false;
	came = false;
	come_at = step;
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	MUST(pthread_create(&other, NULL, hold_for_merge, NULL) == 0);
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	step_run(finish, look);
	asked = true;
	let = true;
	pthread_join(other, NULL);
	MUST(pc_drain() == 0 && flight_look(site) == FLIGHT_NEW);
	return came;
}

static void meet_merges(const void *by_wait)
{
	unsigned long step = 1, merges = 0;

	step_install();
	if (by_wait)
		flights_use_wait(1, 1);
	else
		flights_use_membarrier();
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	site = flight_site(flights_map(1, RWX, 4), 1);
	MUST(pc_text_open(site, CODE_LEN) == 0);
	for (; meet_merge_at(step); step++)
		merges += held;
	MUST(merges > 10);
}

static void test_by_membarrier(void **state)
{
	(void)state;
	child_must_pass(meet_merges, NULL);
}

static void test_by_wait(void **state)
{
	(void)state;
	child_must_pass(meet_merges, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_membarrier),
		cmocka_unit_test(test_by_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
