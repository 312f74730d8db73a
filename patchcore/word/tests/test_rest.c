/* SPDX-License-Identifier: MIT */
/*
 * A level that was measured at rest is used only where lines have rested: by the oracle below,
 * which also sees the variants that do not wait, or do not note what changed a line.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/batch.h"
#include "patchcore/machine/rest.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/word/word.h"

#define REST  UINT64_C(2000000) /* ticks: longer than a change takes, also on a busy machine */
#define PAIRS 20

/* --- The oracle ------------------------------------------------------------------------------- */

/* What changes a line of the site just before the site is changed. */
typedef void before_fn(uint8_t *site, const struct sync *sync, bool again);

static uint64_t patch(uint8_t *site, const struct sync *sync, bool again, uint64_t *end)
{
	struct word_trace trace = { 0 };
	struct sync traced = *sync;
	uint8_t code[CODE_LEN] = { 0 };
	struct change change = change_in_place(site, code, sizeof(code));

	code_load(code, again ? CODE_NEW : CODE_OLD);
	traced.trace = &trace;
	MUST(word_patch(&change, &traced) == 0);
	*end = trace.visible[2];
	return trace.visible[0];
}

static void before_itself(uint8_t *site, const struct sync *sync, bool again)
{
	uint64_t end;

	patch(site, sync, again, &end);
}

/* At the next boundary: it shares a line. */
static void before_neighbour(uint8_t *site, const struct sync *sync, bool again)
{
	before_itself(site + 64, sync, again);
}

/* In the same line, by one store. */
static void before_one_store(uint8_t *site, const struct sync *sync, bool again)
{
	uint8_t code[CODE_LEN];

	(void)sync;
	code_load(code, again ? CODE_NEW : CODE_OLD);
	MUST(word_put(site + 16, code, sizeof(code)));
}

/* By the level's fallback. */
static void before_hot(uint8_t *site, const struct sync *sync, bool again)
{
	struct sync hot = *sync;

	hot.rest = 0;
	before_itself(site, &hot, again);
}

/* Has the site rested before each of its changes, after a change of its lines by that function? */
static bool has_rested(const struct sync *sync, before_fn *before)
{
	uint8_t *site = code_straddler(code_map(1, RWX));
	uint64_t start, end, least = UINT64_MAX;

	for (int i = 0; i < PAIRS; i++) {
		before(site, sync, i % 2);
		start = rest_stamp() >> 12;
		end = patch(site, sync, i % 2, &(uint64_t){ 0 });
		if (end - start < least)
			least = end - start;
	}
	/* The stamp was taken some ticks after the store that it stands for. */
	return least + REST / 10 >= REST;
}

/* --- Tests ------------------------------------------------------------------------------------ */

static before_fn *const befores[] = { before_itself, before_neighbour, before_one_store,
				      before_hot };

#define BEFORES (sizeof(befores) / sizeof(befores[0]))

static const struct sync rested = { .policy = PC_POLICY_WAIT,
				    .waits = { .first = 100, .second = 100, .stretch = 4 },
				    .rest = REST,
				    .window = 8 };

static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)sched_getcpu(), &set);
	MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static void a_change_waits_for_rest(const void *arg)
{
	(void)arg;
	stay_here();
	rest_begin();
	for (size_t i = 0; i < BEFORES; i++)
		MUST(has_rested(&rested, befores[i]));
}

/* Broken: it does not wait; or what changed the lines was not noted. */
static void the_oracle_sees_missing_rest(const void *arg)
{
	struct sync broken = rested;
	uint64_t begun;

	(void)arg;
	stay_here();
	rest_begin();
	broken.rest = 0;
	for (size_t i = 0; i < BEFORES; i++)
		MUST(!has_rested(&broken, befores[i]));
	begun = rest_begun - (REST << 13);
	for (size_t i = 0; i < BEFORES; i++) {
		bool seen = false;

		for (int k = 0; k < PAIRS && !seen; k++) {
			uint8_t *site = code_straddler(code_map(1, RWX));
			uint64_t start;

			rest_begun = 0;
			befores[i](site, &broken, true);
			start = rest_stamp() >> 12;
			rest_begun = begun;
			seen = patch(site, &rested, false, &(uint64_t){ 0 }) - start < REST;
		}
		MUST(seen);
	}
}

/* The wait that is missing is less than the whole, once some of it has passed. */
static void only_what_is_missing_is_waited(const void *arg)
{
	static uint8_t line[64] __attribute__((aligned(64)));
	uint64_t stamp, other;

	(void)arg;
	stay_here();
	rest_begin();
	rest_note(line, sizeof(line));
	stamp = rest_stamp();
	MUST(rest_missing(line, 1, REST, stamp, false) > 0);
	MUST(rest_missing(line, 1, REST, stamp + (REST << 12), false) == 0);
	stamp += (REST - 1000) << 12;
	MUST(rest_missing(line, 1, REST, stamp, false) <= 1000);
	/* On another CPU only much time tells; where the TSC stepped back, none. */
	other = stamp ^ 1;
	MUST(rest_missing(line, 1, REST, other, false) == REST);
	MUST(rest_missing(line, 1, REST, other + (UINT64_C(1) << 37), false) == 0);
	MUST(rest_missing(line, 1, REST, stamp - (REST << 13), false) == REST);
	/* A line that is taken has not rested for another patcher; for the same one it has. */
	stamp += REST << 13;
	MUST(rest_missing(line, 1, REST, stamp, true) == 0);
	MUST(rest_missing(line, 1, REST, stamp, true) == 0);
	MUST(rest_missing(line, 1, REST, stamp + (1u << 12), true) == REST - 1);
	/* What was never changed rests since changes are noted. */
	MUST(rest_missing(line + sizeof(line), 1, REST, rest_begun + (1u << 12), false) ==
	     REST - 1);
}

/* Which sync changes a site that has not rested, where a membarrier costs so much? */
static void expect_picked(uint64_t cost, bool membarrier)
{
	struct sync level = rested, other = { .policy = PC_POLICY_MEMBARRIER, .window = 8 };
	uint8_t *site = code_straddler(code_map(1, RWX)), code[CODE_LEN];
	struct change change = change_in_place(site, code, sizeof(code));

	if (membarrier_register() < 0)
		child_skip("no membarrier");
	stay_here();
	rest_begin();
	level.level = 1;
	level.other = &other;
	other.other = &level;
	sync_expect(SYNC_MEMBARRIER, cost);
	for (int i = 0; i < PAIRS; i++) {
		sync_expect(1, 1000);
		rest_note(site, CODE_LEN);
		code_load(code, i % 2 ? CODE_NEW : CODE_OLD);
		MUST(word_patch(&change, &level) == 0);
		MUST(site_find((uintptr_t)site)->word.sync == (membarrier ? &other : &level));
		MUST(memcmp(site, code, sizeof(code)) == 0);
	}
}

static void a_cheaper_membarrier_is_taken(const void *arg)
{
	(void)arg;
	expect_picked(5000, true);
}

static void a_dear_membarrier_is_not(const void *arg)
{
	(void)arg;
	expect_picked(1000 * REST, false);
}

/* A batch waits once for all of its sites, also where they share lines. */
static void a_batch_rests_once(const void *arg)
{
	uint8_t *page = code_map(1, RWX);
	struct site *sites[8];
	uint64_t start;

	(void)arg;
	stay_here();
	rest_begin();
	for (unsigned i = 0; i < 8; i++) {
		uint8_t *at = page + 64 * (i + 2) - 2, code[CODE_LEN];
		struct change change = change_in_place(at, code, sizeof(code));
		struct word *word;

		code_load(code, CODE_NEW);
		rest_note(at, CODE_LEN);
		MUST(word_hold(&word, &change, &rested) == 0);
		sites[i] = word->site;
	}
	start = rest_stamp();
	word_await_rest(sites, 8);
	MUST((rest_stamp() - start) >> 12 >= REST / 2);
	for (unsigned i = 0; i < 8; i++) {
		MUST(rest_missing(page + 64 * (i + 2) - 2, CODE_LEN, REST, rest_stamp(), false) >
		     0);
		word_release(&sites[i]->word);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(a_change_waits_for_rest),
		child_unit_test(the_oracle_sees_missing_rest),
		child_unit_test(only_what_is_missing_is_waited),
		child_unit_test(a_cheaper_membarrier_is_taken),
		child_unit_test(a_dear_membarrier_is_not),
		child_unit_test(a_batch_rests_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
