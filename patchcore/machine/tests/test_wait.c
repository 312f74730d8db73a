/* SPDX-License-Identifier: MIT */
/*
 * Waiting by the TSC: never shorter than asked, never endless, and longer where
 * the stores take long.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <x86intrin.h>

#include "patchcore/machine/wait.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/word/word.h"

#define TICKS 20000
#define FAR   (INT64_C(1) << 50) /* ticks: days */

#define LATENCY_MOST 100000 /* the longest latency that may count */

/* A moment so many ticks before now, or after, on the CPU of this thread. */
static struct moment moment_at(int64_t distance)
{
	struct moment moment = moment_now();

	moment.ticks += (uint64_t)distance;
	return moment;
}

/* One CPU, so that its TSC tells how long it was. */
static void stay_here(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		child_skip("cannot stay on one CPU");
}

static void waits(const void *arg)
{
	uint64_t start, end;

	(void)arg;
	stay_here();
	start = __rdtsc();
	ticks_wait(TICKS);
	end = __rdtsc();
	MUST(end - start >= TICKS);
	/* What has passed already counts: this returns at once, or the alarm comes. */
	MUST(ticks_wait_since(moment_at(-FAR), FAR) >= FAR);
	start = __rdtsc();
	MUST(ticks_wait_since(moment_at(0), TICKS) <= __rdtsc() - start);
	MUST(__rdtsc() - start >= TICKS);
}

/* From a start that lies in the future: the step back counts for nothing. */
static void steps_back(const void *arg)
{
	uint64_t start;

	(void)arg;
	stay_here();
	start = __rdtsc();
	MUST(ticks_wait_since(moment_at(FAR), TICKS) == UINT64_MAX);
	MUST(__rdtsc() - start >= TICKS);
}

/* From a start on another CPU, whose time says nothing here. */
static void elsewhere(const void *arg)
{
	struct moment start = moment_at(-FAR);
	uint64_t begin;

	(void)arg;
	stay_here();
	begin = __rdtsc();
	start.cpu ^= 1;
	MUST(ticks_wait_since(start, TICKS) == UINT64_MAX);
	MUST(__rdtsc() - begin >= TICKS);
}

static void test_stretch(void **state)
{
	struct sync sync = { .waits.stretch = 64 };
	struct word word = { .sync = &sync, .latency = 70 };

	(void)state;
	assert_int_equal(word_stretch(&word, 1000), 64 * 70);
	assert_int_equal(word_stretch(&word, 5000), 5000);
	sync.waits.stretch = 0;
	assert_int_equal(word_stretch(&word, 1000), 1000);
}

static void latency(const void *arg)
{
	struct sync sync = { .waits.stretch = 64 };
	struct word word = { .sync = &sync };
	struct moment visible, asked;

	(void)arg;
	stay_here();
	asked = moment_at(-5000);
	visible = word_note_store(&word, WORD_PART_INT3, asked);
	MUST(word.latency >= 5000 && visible.ticks <= __rdtsc() && visible.cpu == asked.cpu);
	word_note_store(&word, WORD_PART_BACK, moment_at(-FAR));
	MUST(word.latency == LATENCY_MOST);
	/* The slowest so far, not the last. */
	word_note_store(&word, WORD_PART_FRONT, moment_at(0));
	MUST(word.latency == LATENCY_MOST);
	/* A line that was asked for on another CPU counts as the longest latency. */
	word.latency = 0;
	asked = moment_at(0);
	asked.cpu ^= 1;
	visible = word_note_store(&word, WORD_PART_FRONT, asked);
	MUST(word.latency == LATENCY_MOST && visible.cpu != asked.cpu);
}

/* A store is visible no later than it is said, and no earlier than it was asked for. */
static void visible(const void *arg)
{
	(void)arg;
	stay_here();
	for (int i = 0; i < 1000; i++) {
		struct moment asked = moment_at(i % 2 ? -FAR : 0), before = moment_now();
		struct moment visible = moment_visible(asked), after = moment_now();

		MUST(visible.cpu == asked.cpu);
		MUST(visible.ticks >= before.ticks && visible.ticks <= after.ticks);
	}
}

/* How long a store took that began on another CPU cannot be told: so as long as may count. */
static void test_latency_elsewhere(void **state)
{
	static const int64_t offsets[] = { 0, 100, -100, FAR, -FAR };
	struct sync sync = { .waits.stretch = 4 };

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct word word = { .sync = &sync, .latency = 70 };
		struct moment asked = { 1000000, 3 };
		struct moment visible = { 1000000 + (uint64_t)offsets[i], 4 };

		word_note_visible(&word, WORD_PART_INT3, asked, visible);
		assert_int_equal(word.latency, LATENCY_MOST);
		assert_int_equal(word_stretch(&word, 1000), 4 * LATENCY_MOST);
	}
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
		.policy = PC_POLICY_WAIT, .waits.stretch = 50, .window = 8, .trace = &trace
	};
	uint8_t *site = code_straddler(code_map(1, RWX)), code[CODE_LEN];
	struct change change = change_in_place(site, code, sizeof(code));
	uint64_t slowest;

	(void)arg;
	stay_here();
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(waits),	    child_unit_test(steps_back),
		child_unit_test(elsewhere), cmocka_unit_test(test_stretch),
		child_unit_test(latency),   cmocka_unit_test(test_latency_elsewhere),
		child_unit_test(stretched), child_unit_test(visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
