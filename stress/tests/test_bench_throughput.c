/* SPDX-License-Identifier: MIT */
/*
 * What goes through a site that is toggled: the patcher keeps to its schedule, every
 * execution is counted once, and the figures are computed right. TMAX_STRESS_SCALE
 * lengthens it.
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

#include "patchcore/wait.h"
#include "stress/bench/flow.h"
#include "stress/bench/flow_site.h"
#include "stress/bench/flow_tally.h"
#include "stress/bench/pace.h"
#include "stress/bench/throughput.h"
#include "stress/peers/peer.h"

#define HZ    1e9 /* of made-up clocks; the real one's rate only sets how long things take */
#define TRIES 20  /* with an executor, or the patcher, that may lose its CPU any time */

static struct bench_run run_here;
static struct hot *hot;
static struct flow *flow;
static bool alone; /* one CPU: nothing ever runs at the same time */
static double slice = 0.002;

/* --- The schedule ------------------------------------------------------------------------ */

/* Changes due before the end, without spending the time. */
static uint64_t changes_of(struct pace pace)
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
static int64_t excess(struct pace pace)
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
		struct pace pace = pace_from(77, rates[i], 0.002, HZ);

		assert_true(llabs(excess(pace)) <= (int64_t)changes_of(pace));
	}
}

static void the_schedule_does_not_drift(void **state)
{
	struct pace pace = pace_from(123, 1e6, 3600, 2599995123);

	(void)state;
	pace.done = 3599 * UINT64_C(1000000);
	/* An hour of errors of half a tick would be half a minute. */
	assert_true(fabs((double)(pace_due(&pace) - pace.start) - (3599 + 0.5e-6) * 2599995123.0) <
		    2);
}

static void who_is_late_catches_up(void **state)
{
	uint64_t period = 100000000, begin = ticks_now() - 100 * period;
	struct pace pace = pace_from(begin, 1, 1e6, (double)period);

	(void)state;
	/* A hundred are overdue: none of them waits for a moment yet to come. */
	for (unsigned i = 0; i < 100; i++)
		assert_true(pace_next(&pace));
	assert_int_equal(pace_due(&pace), begin + 100 * period + period / 2);
}

static void an_end_that_has_passed_is_the_end(void **state)
{
	struct pace pace = pace_from(ticks_now() - 1000, INFINITY, 1e-9, 100e9);

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

static const struct flow_way ways[] = {
	{ "call", FLOW_CALL, 0, false, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 0, true, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 3, false, PC_POLICY_AUTO },
	{ "call", FLOW_CALL, 3, true, PC_POLICY_AUTO },
	{ "aligned", FLOW_PATCH, 0, false, PC_POLICY_AUTO },
	{ "aligned", FLOW_PATCH, 0, true, PC_POLICY_AUTO },
	{ "straddler", FLOW_PATCH, 3, false, PC_POLICY_MEMBARRIER },
	{ "straddler", FLOW_PATCH, 3, true, PC_POLICY_MEMBARRIER },
	{ "pointer", FLOW_POINTER, 0, false, PC_POLICY_AUTO },
	{ "flag", FLOW_FLAG, 0, true, PC_POLICY_AUTO },
};
#define WAYS (sizeof(ways) / sizeof(*ways))

static struct flow_site *aimed_at(const struct flow_way *way, unsigned executors)
{
	char why[BENCH_WHY] = "";
	struct flow_site *site;

	assert_int_equal(flow_site_build(&site, way), 0);
	if (flow_site_begin(site, why) < 0) {
		print_message("%s: %s\n", way->name, why);
		flow_site_free(site);
		return NULL;
	}
	flow_aim(flow, &site->loop, executors, way->on_off);
	return site;
}

static void leave(struct flow_site *site)
{
	flow_sleep(flow);
	flow_site_end();
	flow_site_free(site);
}

/* By the clock that the tests' flow was told of: one tick, one nanosecond. */
static void the_patcher_hits_the_asked_rate(void **state)
{
	struct flow_site *site = aimed_at(&ways[0], 1);
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
	struct flow_site *site = aimed_at(&ways[0], 1);
	struct fake fake = { .slow = 100000 };
	struct flow_sum sum;

	(void)state;
	assert_int_equal(flow_toggle(flow, fake_set, &fake, 1e6, slice, &sum), 0);
	assert_true(sum.toggles > 0);
	assert_true((double)sum.toggles * 100000 <= sum.seconds * HZ);
	leave(site);
}

/* Else the last round would be counted that ran undisturbed. */
static void toggling_goes_on_until_all_have_seen_the_end(void **state)
{
	struct flow_site *site = aimed_at(&ways[0], 1);
	bool went_on = false;

	(void)state;
	for (unsigned i = 0; i < TRIES && !went_on; i++) {
		struct fake fake = { .alternates = true };
		struct flow_sum sum;

		assert_int_equal(flow_toggle(flow, fake_set, &fake, INFINITY, slice, &sum), 0);
		assert_true(fake.alternates);
		went_on = fake.calls > sum.toggles;
	}
	assert_true(went_on);
	leave(site);
}

static void a_change_that_fails_ends_it(void **state)
{
	struct flow_site *site = aimed_at(&ways[0], 1);
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
static void check_sum(const struct flow_way *way, const struct flow_sum *sum,
		      const struct hot_sum *before)
{
	struct hot_sum after = hot_count(hot);

	assert_int_equal(flow_check(sum, way->on_off), 0);
	assert_int_equal(sum->ran[0] + sum->ran[1], sum->executed);
	assert_int_equal(sum->executed, after.executed - before->executed);
	assert_true(sum->executed > 0);
	for (int t = 0; t < 2; t++)
		assert_int_equal(sum->calls[t], differs(before, &after, t));
}

static bool toggle_counted(const struct flow_way *way, unsigned executors, double rate)
{
	struct hot_sum before = hot_count(hot);
	struct flow_site *site = aimed_at(way, executors);
	struct flow_sum sum;

	if (!site)
		return true;
	assert_int_equal(flow_toggle(flow, flow_site_set, site, rate, slice, &sum), 0);
	flow_sleep(flow);
	check_sum(way, &sum, &before);
	leave(site);
	return alone || (sum.ran[0] && sum.ran[1]);
}

static void count_all(unsigned executors, double rate)
{
	for (unsigned i = 0; i < WAYS; i++) {
		unsigned tries = 0;

		while (!toggle_counted(&ways[i], executors, rate))
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
	for (unsigned i = 0; i < WAYS; i++)
		toggle_counted(&ways[i], 1, INFINITY);
}

static void also_of_many_executors(void **state)
{
	(void)state;
	count_all(3, 1e5);
}

static void nothing_counts_outside_the_gate(void **state)
{
	struct hot_sum before = hot_count(hot), after;
	struct flow_site *site = aimed_at(&ways[0], 1);

	(void)state;
	hot_cool(hot);
	leave(site);
	after = hot_count(hot);
	assert_memory_equal(&before, &after, sizeof(after));
}

/* Those who count take their time from before the first change to after the last. */
static void the_counted_time_is_the_toggled_time(void **state)
{
	struct flow_site *site = aimed_at(&ways[0], 1);
	struct flow_sum sum;
	double executors;

	(void)state;
	assert_int_equal(flow_toggle(flow, flow_site_set, site, 1e5, slice, &sum), 0);
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
	struct flow_site *site;
	unsigned states[4];
	unsigned count;
};

static int set_logged(void *arg, unsigned state)
{
	struct log *log = arg;

	assert_true(log->count < 4);
	log->states[log->count++] = state;
	return flow_site_set(log->site, state);
}

static void untouched_has_both_states_and_no_change(void **state)
{
	struct log log = { .site = aimed_at(&ways[1], 1) };
	struct hot_sum before = hot_count(hot);
	struct flow_sum sum;

	(void)state;
	assert_int_equal(flow_untouched(flow, set_logged, &log, slice, &sum), 0);
	flow_sleep(flow);
	check_sum(&ways[1], &sum, &before);
	assert_int_equal(log.count, 2);
	assert_int_equal(log.states[0], 0);
	assert_int_equal(log.states[1], 1);
	assert_int_equal(sum.toggles, 0);
	assert_true(sum.ran[0] > 0 && sum.ran[1] > 0);
	/* Each had half of the time: ran in that time at twice what is told. */
	assert_true((double)sum.ran[0] / (2 * sum.per_second[0]) >= slice / 2 - 1e-5);
	assert_true((double)sum.ran[1] / (2 * sum.per_second[1]) >= slice / 2 - 1e-5);
	/* In multiples of a whole round: of either half nothing strays into the other. */
	assert_int_equal(sum.ran[0] % HOT_ROUND, 0);
	leave(log.site);
}

/* --- Figures ------------------------------------------------------------------------------ */

static void the_balance_is_more_to_less(void **state)
{
	(void)state;
	assert_true(flow_balance(10, 5) == 2);
	assert_true(flow_balance(5, 10) == 2);
	assert_true(flow_balance(7, 7) == 1);
	assert_true(isinf(flow_balance(1, 0)) && isinf(flow_balance(0, 1)));
	assert_true(isnan(flow_balance(0, 0)));
}

static void what_is_missing_is_seen(void **state)
{
	struct flow_sum sum = { .executed = 300, .calls = { 200, 100 } };

	(void)state;
	assert_int_equal(flow_check(&sum, false), 0);
	assert_int_equal(flow_check(&sum, true), -EILSEQ);
	sum.calls[1] = 99;
	assert_int_equal(flow_check(&sum, false), -EILSEQ);
	sum.calls[1] = 101;
	assert_int_equal(flow_check(&sum, false), -EILSEQ);
	sum.calls[1] = 0;
	assert_int_equal(flow_check(&sum, true), 0);
	sum.calls[0] = 301;
	assert_int_equal(flow_check(&sum, true), -EILSEQ);
}

static struct flow_sum made_up(uint64_t toggles, uint64_t first, uint64_t second)
{
	return (struct flow_sum){
		.seconds = 0.5,
		.toggles = toggles,
		.executed = first + second,
		.ran = { first, second },
		.per_second = { 2.0 * (double)first, 2.0 * (double)second },
	};
}

static void tally(struct flow_tally *t, uint64_t toggles, uint64_t first, uint64_t second)
{
	struct flow_sum sum = made_up(toggles, first, second);

	assert_int_equal(flow_tally_add(t, &sum), 0);
}

static void figures_are_medians_without_the_warm_up(void **state)
{
	struct flow_tally t = { 0 }, none = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	tally(&t, 9999, 1, 1000);
	tally(&t, 100, 300, 100);
	tally(&t, 200, 100, 200);
	tally(&t, 300, 100, 500);
	flow_tally_extras(&t, NULL, &row);
	assert_true(bench_row_extra_of(&row, "toggles_per_s") == 400);
	assert_true(fabs(bench_row_extra_of(&row, "balance") - 3) < 1e-12);
	assert_true(fabs(bench_row_extra_of(&row, "balance_worst") - 5) < 1e-12);
	assert_int_equal(row.extras, 3);
	assert_false(flow_tally_stuck(&t));
	/* One block in which only one was seen changes the worst, and not the median much. */
	tally(&t, 200, 0, 500);
	row.extras = 0;
	flow_tally_extras(&t, NULL, &row);
	assert_true(bench_row_extra_of(&row, "balance") > 3);
	assert_true(bench_row_extra_of(&row, "balance") <= 5);
	assert_true(isinf(bench_row_extra_of(&row, "balance_worst")));
	flow_tally_free(&t);
	row.extras = 0;
	flow_tally_extras(&none, NULL, &row);
	assert_true(isnan(bench_row_extra_of(&row, "toggles_per_s")));
}

/* A NOP is four times as fast as the call here, and an eighth of the time is lost. */
static void unequal_states_are_weighed_by_their_time(void **state)
{
	struct flow_tally t = { 0 }, untouched = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	tally(&untouched, 0, 0, 0);
	tally(&untouched, 0, 1000, 4000);
	for (unsigned i = 0; i < 3; i++)
		tally(&t, 100, 1000, 3000);
	flow_tally_extras(&t, &untouched, &row);
	assert_true(fabs(bench_row_extra_of(&row, "balance") - 3) < 1e-12);
	assert_true(fabs(bench_row_extra_of(&row, "balance_time") - 4.0 / 3) < 1e-12);
	assert_true(fabs(bench_row_extra_of(&row, "kept") - 0.875) < 1e-12);
	flow_tally_free(&t);
	flow_tally_free(&untouched);
}

static void a_site_that_is_left_alone_has_no_balance(void **state)
{
	struct flow_tally t = { 0 };
	struct bench_row row = { 0 };

	(void)state;
	tally(&t, 0, 10, 10);
	tally(&t, 0, 10, 20);
	flow_tally_extras(&t, NULL, &row);
	assert_int_equal(row.extras, 1);
	assert_true(bench_row_extra_of(&row, "toggles_per_s") == 0);
	flow_tally_free(&t);
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
	struct flow_site *site = aimed_at(&ways[0], 1);
	struct flow_tally t = { 0 };
	struct bench_row row = { 0 };
	struct flow_sum sum;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(flow_toggle(flow, set_nothing, site, 1e5, slice, &sum), 0);
		assert_int_equal(flow_tally_add(&t, &sum), 0);
	}
	leave(site);
	flow_tally_extras(&t, NULL, &row);
	assert_true(isinf(bench_row_extra_of(&row, "balance")));
	assert_true(flow_tally_stuck(&t));
	flow_tally_free(&t);
}

/* --- The benchmark ------------------------------------------------------------------------ */

/* One that loses a tenth whatever the rate, one that only knows on and off, one that is not here.
 */
static int tenth_flow(struct peer *peer, double rate, double seconds, bool on_off,
		      struct peer_flow *told, char *why)
{
	double calls = (rate > 0 ? 0.9 : 1.0) * 1e6 * seconds;

	(void)peer;
	(void)why;
	*told = (struct peer_flow){ .seconds = seconds };
	if (rate > 0) {
		told->toggles = (uint64_t)(isinf(rate) ? 77 : rate * seconds + 0.5);
		told->calls[0] = told->calls[1] = (uint64_t)(calls / 2);
	} else {
		told->calls[0] = (uint64_t)calls;
	}
	if (on_off)
		told->calls[1] *= 3;
	return 0;
}

static int on_off_flow(struct peer *peer, double rate, double seconds, bool on_off,
		       struct peer_flow *told, char *why)
{
	if (!on_off) {
		snprintf(why, BENCH_WHY, "has no second target");
		return -ENOTSUP;
	}
	return tenth_flow(peer, rate, seconds, on_off, told, why);
}

struct peer peers[] = {
	{ .name = "tenth", .flow = tenth_flow },
	{ .name = "on-off", .flow = on_off_flow },
	{ .name = "missing", .flow = tenth_flow, .ret = -ENOENT, .why = "not installed" },
	{ .name = "other", .ret = -ENOENT, .why = "has no flow" },
	{ .name = NULL },
};

static const double rates[] = { 0, 1e3, 1e4, 1e5, 1e6, 1e7 };
#define RATES (sizeof(rates) / sizeof(*rates))

static bool is_text(const struct bench_row *row, const char *key, const char *text)
{
	const char *is = bench_row_text(row, key);

	return text ? is && strcmp(is, text) == 0 : !is;
}

static const struct bench_row *find(const struct bench_result *r, const char *name,
				    const char *split, const char *policy, const char *mode,
				    double rate)
{
	for (unsigned i = 0; i < r->rows; i++) {
		const struct bench_row *row = &r->row[i];

		if (strcmp(row->name, name) == 0 && is_text(row, "split", split) &&
		    is_text(row, "policy", policy) && is_text(row, "mode", mode) &&
		    (isnan(rate) || bench_row_number(row, "rate") == rate))
			return row;
	}
	return NULL;
}

static void check_row(const struct bench_row *row, double rate, bool on_off)
{
	assert_non_null(row);
	assert_string_equal(row->measure, "calls");
	assert_string_equal(row->unit, "calls/s");
	assert_true(bench_row_number(row, "executors") == 1);
	if (!row->samples) {
		assert_true(row->why[0] != '\0');
		/* At this rate no executor sleeps so long that it sees only one state. */
		assert_true(alone || rate != 1e5 || is_text(row, "split", "3|2"));
		return;
	}
	assert_string_equal(row->against, "untouched");
	assert_true(row->samples == 2 * run_here.rounds && row->pairs == run_here.rounds);
	assert_true(isnan(bench_row_extra_of(row, "balance")) == (rate == 0));
	assert_true(isnan(bench_row_extra_of(row, "kept")) == (row->peer || rate == 0 || !on_off) ||
		    strcmp(row->name, "flag") == 0);
	assert_true(bench_row_extra_of(row, "toggles_per_s") <= (rate == 1e7 ? 1e9 : rate + 1e-6));
}

static void check_ways(const struct bench_result *r)
{
	static const struct {
		const char *name, *split, *policy, *mode;
	} all[] = {
		{ "call", "0", NULL, "call-call" },
		{ "call", "0", NULL, "call-nop" },
		{ "call", "3|2", NULL, "call-call" },
		{ "call", "3|2", NULL, "call-nop" },
		{ "aligned", "0", NULL, "call-call" },
		{ "aligned", "0", NULL, "call-nop" },
		{ "straddler", "3|2", "wait", "call-call" },
		{ "straddler", "3|2", "wait", "call-nop" },
		{ "straddler", "3|2", "membarrier", "call-call" },
		{ "straddler", "3|2", "membarrier", "call-nop" },
		{ "pointer", NULL, NULL, "call-call" },
		{ "flag", NULL, NULL, "call-nop" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (size_t k = 0; k < RATES; k++)
			check_row(find(r, all[i].name, all[i].split, all[i].policy, all[i].mode,
				       rates[k]),
				  rates[k], strcmp(all[i].mode, "call-nop") == 0);
}

static void check_told(const struct bench_row *row, double value, double ratio)
{
	assert_non_null(row);
	assert_true(row->peer);
	assert_true(fabs(row->value.median / value - 1) < 1e-3);
	assert_true(fabs(row->ratio.median / ratio - 1) < 1e-3);
}

static void check_peers(const struct bench_result *r)
{
	const struct bench_row *row;

	for (size_t k = 1; k < RATES; k++) {
		check_told(find(r, "tenth", NULL, NULL, "call-call", rates[k]), 0.9e6, 0.9);
		check_told(find(r, "tenth", NULL, NULL, "call-nop", rates[k]), 0.45e6, 0.9);
		check_told(find(r, "on-off", NULL, NULL, "call-nop", rates[k]), 0.45e6, 0.9);
	}
	row = find(r, "tenth", NULL, NULL, "call-nop", 1e5);
	assert_true(fabs(bench_row_extra_of(row, "balance") - 3) < 1e-12);
	assert_true(fabs(bench_row_extra_of(row, "toggles_per_s") / 1e5 - 1) < 1e-6);
	/* As fast as possible is what this one was asked for, and not a rate. */
	row = find(r, "tenth", NULL, NULL, "call-call", 1e7);
	assert_true(fabs(bench_row_extra_of(row, "toggles_per_s") * 0.030 / 77 - 1) < 1e-6);
	check_told(find(r, "tenth", NULL, NULL, "call-call", 0), 1e6, 1);
	check_told(find(r, "tenth", NULL, NULL, "call-nop", 0), 0.5e6, 1);
	row = find(r, "on-off", NULL, NULL, "call-call", NAN);
	assert_true(row && row->samples == 0);
	assert_string_equal(row->why, "has no second target");
	row = find(r, "missing", NULL, NULL, "call-nop", NAN);
	assert_true(row && row->samples == 0);
	assert_string_equal(row->why, "not installed");
	assert_null(find(r, "other", NULL, NULL, "call-nop", NAN));
}

static void every_row_is_there(void **state)
{
	struct bench_result result = { 0 };

	(void)state;
	assert_int_equal(throughput_measure(&run_here, slice, &result), 0);
	/* 12 ways, 3 modes of peers, and one row for each of 3 that are not to be had. */
	assert_int_equal(result.rows, 15 * RATES + 3);
	check_ways(&result);
	check_peers(&result);
	bench_result_free(&result);
}

static void more_executors_have_more_rows(void **state)
{
	struct bench_run run = run_here;
	struct bench_result result = { 0 };
	unsigned seen[8] = { 0 };

	(void)state;
	run.seating.executors = 5;
	for (unsigned i = 1; i < 5; i++)
		run.seating.executor[i] = run.seating.executor[0];
	run.rounds = 0;
	assert_int_equal(throughput_measure(&run, slice, &result), 0);
	for (unsigned i = 0; i < result.rows; i++) {
		double executors = bench_row_number(&result.row[i], "executors");

		if (executors >= 1 && executors < 8)
			seen[(unsigned)executors]++;
	}
	/* 1, 2, 4 and all 5; in between only calls at split 0, in either mode. */
	assert_int_equal(seen[1], 15 * RATES);
	assert_int_equal(seen[2], 2 * RATES);
	assert_int_equal(seen[3], 0);
	assert_int_equal(seen[4], 2 * RATES);
	assert_int_equal(seen[5], 12 * RATES);
	bench_result_free(&result);
}

/* --- Around all of it --------------------------------------------------------------------- */

static int set_up(void **state)
{
	static volatile sig_atomic_t stop;
	const char *scale = getenv("TMAX_STRESS_SCALE");
	struct seating three;
	int foreign;

	(void)state;
	if (scale && atof(scale) > 0)
		run_here.rounds = (unsigned)ceil(atof(scale));
	run_here.rounds += !run_here.rounds;
	run_here.seed = 1;
	run_here.stop = &stop;
	assert_int_equal(topology_open(&run_here.topology, &foreign), 0);
	alone = placement_seat(run_here.topology, PLACEMENT_SPREAD, 1, &run_here.seating, NULL, 0) <
		0;
	if (alone)
		assert_int_equal(placement_seat(run_here.topology, PLACEMENT_OVERSUBSCRIBED, 1,
						&run_here.seating, NULL, 0),
				 0);
	three = run_here.seating;
	three.executors = 3;
	three.executor[1] = three.executor[2] = three.executor[0];
	assert_int_equal(pin_this_thread(run_here.topology, run_here.seating.patcher), 0);
	assert_int_equal(pc_init(), 0);
	assert_int_equal(hot_start(&hot, run_here.topology, &three), 0);
	return flow_open(&flow, hot, HZ);
}

static int tear_down(void **state)
{
	(void)state;
	flow_close(flow);
	hot_stop(hot);
	hwloc_topology_destroy(run_here.topology);
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
		cmocka_unit_test(the_balance_is_more_to_less),
		cmocka_unit_test(what_is_missing_is_seen),
		cmocka_unit_test(figures_are_medians_without_the_warm_up),
		cmocka_unit_test(unequal_states_are_weighed_by_their_time),
		cmocka_unit_test(a_site_that_is_left_alone_has_no_balance),
		cmocka_unit_test(a_change_that_changes_nothing_is_caught),
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(more_executors_have_more_rows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
