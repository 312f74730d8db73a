/* SPDX-License-Identifier: MIT */
/*
 * A site that is toggled: the patcher keeps to its schedule, and every execution is counted
 * once.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cases/throughput.c"
#include "bench/method/method.h"
#include "bench/peers/ways.h"
#include "bench/tests/bench_run.h"
#include "patchcore/machine/wait.h"

#define HZ    1e9 /* of made-up clocks; the real one's rate only sets how long things take */
#define TRIES 20  /* with an executor, or the patcher, that may lose its CPU any time */
#define SLICE 0.002

static hwloc_topology_t topology;
static struct hot *hot;
static struct flow *flow;
static bool alone; /* one CPU: nothing ever runs at the same time */

/* --- The schedule ------------------------------------------------------------------------ */

/* Changes due before the end, without spending the time. */
static uint64_t changes_of(struct bench_pace pace)
{
	while (pace_due(&pace) < pace.end)
		pace.done++;
	return pace.done;
}

static void the_schedule_makes_the_asked_changes(void **state)
{
	static const double rates[] = { 1e3, 1e4, 1e5, 1e6, 3e6 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		double seconds = 0.010;

		assert_int_equal(changes_of(pace_from(1000, rates[i], seconds, 2.6e9)),
				 (uint64_t)(rates[i] * seconds + 0.5));
		/* Of a clock that is about to wrap, and of one that no period divides. */
		assert_int_equal(changes_of(pace_from(0, rates[i], seconds, 2599995123)),
				 (uint64_t)(rates[i] * seconds + 0.5));
	}
	assert_int_equal(changes_of(pace_from(5, 0, 1, HZ)), 0);
}

/* Time in state 0, less that in state 1. */
static int64_t excess(struct bench_pace pace)
{
	uint64_t last = pace.start;
	int64_t sum = 0;

	while (pace_due(&pace) < pace.end) {
		uint64_t due = pace_due(&pace);

		sum += (pace.done % 2 ? -1 : 1) * (int64_t)(due - last);
		last = due;
		pace.done++;
	}
	return sum + (pace.done % 2 ? -1 : 1) * (int64_t)(pace.end - last);
}

static void the_schedule_gives_both_states_half(void **state)
{
	static const double rates[] = { 1e3, 1e4, 1e5, 1e6 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct bench_pace pace = pace_from(77, rates[i], 0.002, HZ);

		assert_true(llabs(excess(pace)) <= (int64_t)changes_of(pace));
	}
}

static void the_schedule_does_not_drift(void **state)
{
	struct bench_pace pace = pace_from(123, 1e6, 3600, 2599995123);

	(void)state;
	pace.done = 3599 * UINT64_C(1000000);
	/* An hour of errors of half a tick would be half a minute. */
	assert_true(fabs((double)(pace_due(&pace) - pace.start) - (3599 + 0.5e-6) * 2599995123.0) <
		    2);
}

static void who_is_late_catches_up(void **state)
{
	uint64_t period = 100000000, begin = ticks_now() - 100 * period;
	struct bench_pace pace = pace_from(begin, 1, 1e6, (double)period);

	(void)state;
	/* A hundred are overdue: none of them waits for a moment yet to come. */
	for (unsigned i = 0; i < 100; i++)
		assert_true(pace_next(&pace));
	assert_int_equal(pace_due(&pace), begin + 100 * period + period / 2);
}

static void an_end_that_has_passed_is_the_end(void **state)
{
	struct bench_pace pace = pace_from(ticks_now() - 1000, INFINITY, 1e-9, 100e9);

	(void)state;
	assert_false(pace_next(&pace));
	assert_int_equal(pace.done, 0);
}

/* --- The patcher ------------------------------------------------------------------------- */

struct fake {
	uint64_t calls;
	uint64_t slow; /* ticks that a change takes */
	int fail_at;
	unsigned last;
	bool alternates;
};

static int fake_set(void *arg, unsigned state)
{
	struct fake *fake = arg;

	fake->alternates &= fake->calls == 0 || state != fake->last;
	fake->last = state;
	fake->calls++;
	if (fake->slow)
		ticks_wait(fake->slow);
	return fake->fail_at && fake->calls == (uint64_t)fake->fail_at ? -EBADF : 0;
}

static struct bench_site *aimed_at(const struct site_spec *line, unsigned executors)
{
	struct bench_site *site = aligned_alloc(128, sizeof(*site));
	char why[BENCH_WHY] = "";

	assert_non_null(site);
	assert_int_equal(bench_site_build(site, line, why), 0);
	if (bench_set_policy(line->policy, why) < 0 || bench_site_begin(site, why) < 0) {
		print_message("%s: %s\n", ways[line->way].name, why);
		bench_site_free(site);
		free(site);
		return NULL;
	}
	flow_point(flow, &site->loop, executors, !line->two_targets);
	hot_aim(hot, &flow->work, executors);
	return site;
}

static void leave(struct bench_site *site)
{
	hot_sleep(flow->hot);
	bench_site_end(site);
	pc_set_policy(PC_POLICY_AUTO);
	bench_site_free(site);
	free(site);
}

/* By the clock that the tests' flow was told of: one tick, one nanosecond. */
static void the_patcher_hits_the_asked_rate(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	uint64_t most = 0;

	(void)state;
	for (unsigned i = 0; i < TRIES && most < 200; i++) {
		struct fake fake = { .alternates = true };
		struct flow_sum sum;

		assert_int_equal(flow_toggle(flow, fake_set, &fake, 1e5, 0.002, &sum), 0);
		assert_true(sum.toggles <= 200 && sum.toggles <= fake.calls);
		assert_true(fake.alternates && sum.seconds >= 0.002);
		most = sum.toggles > most ? sum.toggles : most;
	}
	assert_int_equal(most, 200);
	leave(site);
}

static void a_slow_change_is_told_by_the_rate(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	struct fake fake = { .slow = 100000 };
	struct flow_sum sum;

	(void)state;
	assert_int_equal(flow_toggle(flow, fake_set, &fake, 1e6, SLICE, &sum), 0);
	assert_true(sum.toggles > 0);
	assert_true((double)sum.toggles * 100000 <= sum.seconds * HZ);
	leave(site);
}

/* Else the last round would be counted that ran undisturbed. */
static void toggling_goes_on_until_all_have_seen_the_end(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	bool went_on = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !went_on; i++) {
		struct fake fake = { .alternates = true };
		struct flow_sum sum;

		assert_int_equal(flow_toggle(flow, fake_set, &fake, INFINITY, SLICE, &sum), 0);
		assert_true(fake.alternates);
		went_on = fake.calls > sum.toggles;
	}
	assert_true(went_on);
	leave(site);
}

static void a_change_that_fails_ends_it(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	struct fake fake = { .fail_at = 7 };
	struct flow_sum sum;

	(void)state;
	assert_int_equal(flow_toggle(flow, fake_set, &fake, 1e6, 100, &sum), -EBADF);
	leave(site);
}

/* --- The executors ------------------------------------------------------------------------ */

static uint64_t differs(const struct hot_sum *before, const struct hot_sum *after, int target)
{
	return after->calls[target] - before->calls[target];
}

/* What was counted at the gate is what the executors say that they ran, all told. */
static void check_sum(const struct site_spec *line, const struct flow_sum *sum,
		      const struct hot_sum *before)
{
	struct hot_sum after = hot_count(hot);

	assert_int_equal(flow_check(sum, !line->two_targets), 0);
	assert_int_equal(sum->ran[0] + sum->ran[1], sum->executed);
	assert_int_equal(sum->executed, after.executed - before->executed);
	assert_true(sum->executed > 0);
	for (int t = 0; t < 2; t++)
		assert_int_equal(sum->calls[t], differs(before, &after, t));
}

static bool toggle_counted(const struct site_spec *line, unsigned executors, double rate)
{
	struct hot_sum before = hot_count(hot);
	struct bench_site *site;
	struct flow_sum sum;

	/* By waits a site may tear, also where a config promises that none does. */
	if (line->policy == PC_POLICY_WAIT)
		return true;
	site = aimed_at(line, executors);
	if (!site)
		return true;
	assert_int_equal(flow_toggle(flow, bench_site_set, site, rate, SLICE, &sum), 0);
	hot_sleep(flow->hot);
	check_sum(line, &sum, &before);
	leave(site);
	return alone || (sum.ran[0] && sum.ran[1]);
}

static void count_all(unsigned executors, double rate)
{
	for (unsigned i = 0; i < FLOW_LINES; i++) {
		unsigned tries = 0;

		while (!toggle_counted(&flow_lines[i], executors, rate))
			assert_true(++tries < TRIES);
	}
}

static void every_execution_is_counted_once(void **state)
{
	(void)state;
	count_all(1, 1e4);
	count_all(1, 1e5);
}

static void also_as_fast_as_possible(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FLOW_LINES; i++)
		toggle_counted(&flow_lines[i], 1, INFINITY);
}

static void also_of_many_executors(void **state)
{
	(void)state;
	count_all(3, 1e5);
}

static void nothing_counts_outside_the_gate(void **state)
{
	struct hot_sum before = hot_count(hot), after;
	struct bench_site *site = aimed_at(&flow_lines[0], 1);

	(void)state;
	hot_cool(hot);
	leave(site);
	after = hot_count(hot);
	assert_memory_equal(&before, &after, sizeof(after));
}

/* The executors' time runs from before the first change to after the last. */
static void the_counted_time_is_the_toggled_time(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	struct flow_sum sum;
	double executors;

	(void)state;
	assert_int_equal(flow_toggle(flow, bench_site_set, site, 1e5, SLICE, &sum), 0);
	leave(site);
	if (!sum.ran[0])
		skip();
	executors = (double)sum.ran[0] / sum.per_second[0];
	/* Two CPUs' clocks may be some thousand ticks apart. */
	assert_true(executors >= sum.seconds - 1e-5);
	if (sum.ran[1])
		assert_true(fabs((double)sum.ran[1] / sum.per_second[1] - executors) < 1e-9);
}

/* --- Untouched ---------------------------------------------------------------------------- */

struct log {
	struct bench_site *site;
	unsigned states[4];
	unsigned count;
};

static int set_logged(void *arg, unsigned state)
{
	struct log *log = arg;

	assert_true(log->count < 4);
	log->states[log->count++] = state;
	return bench_site_set(log->site, state);
}

static void untouched_has_both_states_and_no_change(void **state)
{
	struct log log = { .site = aimed_at(&flow_lines[1], 1) };
	struct hot_sum before = hot_count(hot);
	struct flow_sum sum;

	(void)state;
	assert_int_equal(flow_untouched(flow, set_logged, &log, SLICE, &sum), 0);
	hot_sleep(flow->hot);
	check_sum(&flow_lines[1], &sum, &before);
	assert_int_equal(log.count, 2);
	assert_int_equal(log.states[0], 0);
	assert_int_equal(log.states[1], 1);
	assert_int_equal(sum.toggles, 0);
	assert_true(sum.ran[0] > 0 && sum.ran[1] > 0);
	/* Each had half of the time: ran in that time at twice what is told. */
	assert_true((double)sum.ran[0] / (2 * sum.per_second[0]) >= SLICE / 2 - 1e-5);
	assert_true((double)sum.ran[1] / (2 * sum.per_second[1]) >= SLICE / 2 - 1e-5);
	/* In multiples of a whole round: of either half nothing strays into the other. */
	assert_int_equal(sum.ran[0] % HOT_ROUND, 0);
	leave(log.site);
}

/* Says that it did, and did not. */
static int set_nothing(void *site, unsigned state)
{
	(void)site;
	(void)state;
	return 0;
}

static void a_change_that_changes_nothing_is_caught(void **state)
{
	struct bench_site *site = aimed_at(&flow_lines[0], 1);
	struct flow_tally t = { 0 };
	struct bench_row row = { 0 };
	struct flow_sum sum;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(flow_toggle(flow, set_nothing, site, 1e5, SLICE, &sum), 0);
		flow_tally_add(&t, &sum);
	}
	leave(site);
	flow_tally_extras(&t, &row);
	assert_true(isinf(bench_row_extra_of(&row, "balance")));
	assert_true(t.toggles > 1 && !t.ran[1]);
	flow_tally_free(&t);
}

/* --- Around all of it --------------------------------------------------------------------- */

/* Three executors, on one CPU, if need be on the patcher's. */
static int set_up(void **state)
{
	struct seating three;
	int foreign;

	(void)state;
	assert_int_equal(topology_open(&topology, &foreign), 0);
	alone = bench_run_seat(topology, &three) != 0;
	three.executors = 3;
	three.executor[1] = three.executor[2] = three.executor[0];
	assert_int_equal(pin_this_thread(topology, three.patcher), 0);
	assert_int_equal(pc_init(), 0);
	assert_int_equal(hot_start(&hot, topology, &three), 0);
	return flow_open(&flow, hot, HZ);
}

static int tear_down(void **state)
{
	(void)state;
	flow_close(flow);
	hot_stop(hot);
	hwloc_topology_destroy(topology);
	return pc_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_schedule_makes_the_asked_changes),
		cmocka_unit_test(the_schedule_gives_both_states_half),
		cmocka_unit_test(the_schedule_does_not_drift),
		cmocka_unit_test(who_is_late_catches_up),
		cmocka_unit_test(an_end_that_has_passed_is_the_end),
		cmocka_unit_test(the_patcher_hits_the_asked_rate),
		cmocka_unit_test(a_slow_change_is_told_by_the_rate),
		cmocka_unit_test(toggling_goes_on_until_all_have_seen_the_end),
		cmocka_unit_test(a_change_that_fails_ends_it),
		cmocka_unit_test(every_execution_is_counted_once),
		cmocka_unit_test(also_as_fast_as_possible),
		cmocka_unit_test(also_of_many_executors),
		cmocka_unit_test(nothing_counts_outside_the_gate),
		cmocka_unit_test(the_counted_time_is_the_toggled_time),
		cmocka_unit_test(untouched_has_both_states_and_no_change),
		cmocka_unit_test(a_change_that_changes_nothing_is_caught),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
