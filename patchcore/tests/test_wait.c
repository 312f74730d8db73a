/* SPDX-License-Identifier: MIT */
/*
 * Waiting by the TSC: never shorter than asked, never endless, and longer where
 * the stores take long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/wait.h"
#include "patchcore/word.h"

#define TICKS 20000
#define FAR   (UINT64_C(1) << 50) /* ticks: days */

#define LATENCY_MOST 100000 /* what a patcher that lost its CPU may hold against the line */

static void waits(const void *arg)
{
	uint64_t start = __rdtsc(), end;

	(void)arg;
	ticks_wait(TICKS);
	end = __rdtsc();
	MUST(end - start >= TICKS);
	/* What has passed already counts: this returns at once, or the alarm comes. */
	ticks_wait_since(end - FAR, FAR);
	MUST(ticks_wait_watched(end - FAR, FAR) >= FAR);
	start = __rdtsc();
	MUST(ticks_wait_watched(start, TICKS) <= __rdtsc() - start);
	MUST(__rdtsc() - start >= TICKS);
}

static void test_waits(void **state)
{
	(void)state;
	child_must_pass(waits, NULL);
}

static void steps_back(const void *arg)
{
	uint64_t start = __rdtsc();

	(void)arg;
	ticks_wait_since(start + FAR, TICKS);
	MUST(__rdtsc() - start >= TICKS);
	start = __rdtsc();
	MUST(ticks_wait_watched(start + FAR, TICKS) == UINT64_MAX);
	MUST(__rdtsc() - start >= TICKS);
}

/* From a start that lies in the future: the step back counts for nothing. */
static void test_steps_back(void **state)
{
	(void)state;
	child_must_pass(steps_back, NULL);
}

static void test_passed(void **state)
{
	uint64_t start = __rdtsc(), last = start + FAR;

	(void)state;
	assert_int_equal(ticks_passed(&last), 0);
	assert_true(last >= start && last < start + FAR);
	start = last;
	assert_true(ticks_passed(&last) <= last - start);
	assert_true(last >= start);
}

static void test_stretch(void **state)
{
	struct sync sync = { .stretch = 64 };
	struct word word = { .sync = &sync, .latency = 70 };

	(void)state;
	assert_int_equal(word_stretch(&word, 1000), 64 * 70);
	assert_int_equal(word_stretch(&word, 5000), 5000);
	sync.stretch = 0;
	assert_int_equal(word_stretch(&word, 1000), 1000);
}

static void test_latency(void **state)
{
	struct sync sync = { .stretch = 64 };
	struct word word = { .sync = &sync };
	uint64_t visible = word_note_store(&word, WORD_PART_INT3, __rdtsc() - 5000);

	(void)state;
	assert_true(word.latency >= 5000 && visible <= __rdtsc());
	word_note_store(&word, WORD_PART_BACK, __rdtsc() - FAR);
	assert_int_equal(word.latency, LATENCY_MOST);
	/* The slowest so far, not the last. */
	word_note_store(&word, WORD_PART_FRONT, __rdtsc());
	assert_int_equal(word.latency, LATENCY_MOST);
}

static uint64_t bounded(uint64_t latency)
{
	return latency < LATENCY_MOST ? latency : LATENCY_MOST;
}

/*
 * With no wait of their own, both syncs still last as long as the slowest store
 * before them calls for.
 */
static void stretched(const void *arg)
{
	struct word_trace trace = { 0 };
	struct sync sync = {
		.policy = PC_POLICY_WAIT, .stretch = 50, .window = 8, .trace = &trace
	};
	uint8_t *site = code_straddler(code_map(1, RWX)), code[CODE_LEN];
	struct change change = change_in_place(site, code, sizeof(code));
	uint64_t slowest;

	(void)arg;
	code_load(code, CODE_NEW);
	MUST(word_patch(&change, &sync) == 0);
	MUST(trace.latency[0] > 0 && trace.latency[1] > 0 && trace.latency[2] > 0);
	slowest = bounded(trace.latency[0]);
	MUST(trace.waited[0] >= 50 * slowest);
	if (bounded(trace.latency[1]) > slowest)
		slowest = bounded(trace.latency[1]);
	MUST(trace.waited[1] >= 50 * slowest);
	MUST(trace.visible[1] - trace.visible[0] >= trace.waited[0]);
	MUST(trace.visible[2] - trace.visible[1] >= trace.waited[1]);
	MUST(trace.step[0] > 0 && trace.step[0] <= trace.waited[0]);
}

static void test_stretched(void **state)
{
	(void)state;
	child_must_pass(stretched, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),	cmocka_unit_test(test_steps_back),
		cmocka_unit_test(test_passed),	cmocka_unit_test(test_stretch),
		cmocka_unit_test(test_latency), cmocka_unit_test(test_stretched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
