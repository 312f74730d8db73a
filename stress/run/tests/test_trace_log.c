/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stress/run/child.c"

static struct trace_log log_;
static struct code_slots slots;
static struct cell_result result;
static const struct code rotation = { .codes = 3, .pair = PAIR_CALL_CALL };

static int fresh(void **state)
{
	(void)state;
	memset(&log_, 0, sizeof(log_));
	memset(&slots, 0, sizeof(slots));
	memset(&result, 0, sizeof(result));
	return 0;
}

/* A toggle whose INT3, back and front were visible at these times. */
static struct word_trace *note_toggle(uint64_t number, uint64_t int3, uint64_t back, uint64_t front)
{
	struct word_trace *trace = trace_begin(&log_, number);

	trace->visible[0] = int3;
	trace->visible[1] = back;
	trace->visible[2] = front;
	return trace;
}

static void mark(uint64_t tsc, uint64_t slot)
{
	slots.mark[slots.marks++ % CODE_MARKS] = (struct code_mark){ tsc, slot };
}

static void look(void)
{
	trace_tears(&log_, &rotation, 0, 0, &slots, &result);
}

static void a_tear_belongs_to_the_last_closed_toggle(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		note_toggle(i, 1000 * i + 100, 1000 * i + 400, 1000 * i + 700);
	mark(3500, 1);	/* in toggle 3, between back and front */
	mark(4050, 3);	/* after it, before INT3 of toggle 4 */
	mark(99999, 1); /* long after the last */
	mark(7, 1);	/* before all that is known */
	mark(5100, 1);	/* just when INT3 of toggle 5 is visible */
	mark(5099, 1);
	look();
	assert_int_equal(result.events, 6);
	assert_int_equal(result.event[4].toggle, 5);
	assert_int_equal(result.event[5].toggle, 4);
	assert_int_equal(result.event[0].toggle, 3);
	assert_int_equal(result.event[0].kind, TEAR_OLD_FRONT);
	assert_int_equal(result.event[0].tsc, 3500);
	assert_int_equal(result.event[0].after_int3, 400);
	assert_int_equal(result.event[0].after_front, -200);
	assert_int_equal(result.event[1].toggle, 3);
	assert_int_equal(result.event[1].kind, TEAR_NEW_FRONT);
	assert_int_equal(result.event[1].after_front, 350);
	assert_int_equal(result.event[2].toggle, 9);
	assert_int_equal(result.event[3].toggle, 0);
	assert_int_equal(result.event[3].after_int3, 7 - 100);
}

static void an_event_has_what_the_trace_had(void **state)
{
	struct word_trace *trace = note_toggle(0, 100, 200, 300);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		trace->latency[i] = 11 + i;
	for (unsigned i = 0; i < 2; i++) {
		trace->waited[i] = 21 + i;
		trace->step[i] = 31 + i;
	}
	mark(250, 1);
	trace_tears(&log_, &rotation, 5, 0, &slots, &result);
	assert_int_equal(result.events, 1);
	assert_int_equal(result.event[0].executor, 5);
	assert_int_equal(result.event[0].latency[2], 13);
	assert_int_equal(result.event[0].waited[1], 22);
	assert_int_equal(result.event[0].step[0], 31);
}

static void each_tear_is_told_once(void **state)
{
	(void)state;
	note_toggle(0, 100, 200, 300);
	look();
	assert_int_equal(result.events, 0);
	mark(250, 1);
	look();
	look();
	assert_int_equal(result.events, 1);
	mark(260, 1);
	look();
	assert_int_equal(result.events, 2);
	assert_int_equal(result.event[1].tsc, 260);
}

static uint64_t look_of(unsigned executor, struct code_slots *of)
{
	return trace_tears(&log_, &rotation, executor, 0, of, &result);
}

static void mark_toggle(struct code_slots *of, uint64_t toggle)
{
	of->mark[of->marks++ % CODE_MARKS] = (struct code_mark){ 1, toggle << 8 | 1 };
}

/* What a second executor tears as well is told, once; also when no event is kept any more. */
static void toggles_torn_by_several_are_told(void **state)
{
	static struct code_slots other;

	(void)state;
	memset(&other, 0, sizeof(other));
	note_toggle(3, 100, 200, 300);
	for (unsigned i = 0; i < 3; i++) {
		mark_toggle(&slots, 3);
		mark_toggle(&other, 3);
	}
	mark_toggle(&other, 4);
	assert_int_equal(look_of(0, &slots), 0);
	assert_int_equal(look_of(1, &other), 1);
	mark_toggle(&slots, 3 + TRACE_TOGGLES);
	mark_toggle(&slots, 4 + TRACE_TOGGLES);
	mark_toggle(&other, 4 + TRACE_TOGGLES);
	assert_int_equal(look_of(1, &other), 0);
	assert_int_equal(look_of(0, &slots), 1);
	for (unsigned i = 0; i < 2 * TEAR_EVENTS_MAX; i++)
		mark_toggle(&slots, 300 + i);
	mark_toggle(&other, 300 + 2 * TEAR_EVENTS_MAX - 1);
	assert_int_equal(look_of(0, &slots), 0);
	assert_int_equal(look_of(1, &other), 1);
	assert_int_equal(result.events, TEAR_EVENTS_MAX);
}

static void only_the_first_are_kept(void **state)
{
	(void)state;
	note_toggle(0, 100, 200, 300);
	for (uint64_t i = 0; i < TEAR_EVENTS_MAX + 5; i++)
		mark(200 + i, 1);
	look();
	assert_int_equal(result.events, TEAR_EVENTS_MAX);
	assert_int_equal(result.event[TEAR_EVENTS_MAX - 1].tsc, 200 + TEAR_EVENTS_MAX - 1);
}

/* More than the ring holds: what is told is what is still there. */
static void lost_marks_are_left_out(void **state)
{
	(void)state;
	note_toggle(0, 100, 200, 300);
	for (uint64_t i = 0; i < 1000; i++)
		mark(1000 + i, 1);
	look();
	assert_int_equal(result.events, TEAR_EVENTS_MAX);
	assert_int_equal(result.event[0].tsc, 1000 + 1000 - CODE_MARKS + 1);
}

static void the_ring_of_toggles_goes_round(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3 * TRACE_TOGGLES; i++)
		note_toggle(i, 1000 * i + 100, 1000 * i + 400, 1000 * i + 700);
	mark(1000 * (3 * TRACE_TOGGLES - 2) + 500, 1);
	mark(1000 * (2 * TRACE_TOGGLES) + 500, 1);
	mark(5, 1);
	look();
	assert_int_equal(result.event[0].toggle, 3 * TRACE_TOGGLES - 2);
	assert_int_equal(result.event[1].toggle, 2 * TRACE_TOGGLES);
	assert_int_equal(result.event[2].toggle, 2 * TRACE_TOGGLES);
}

/* A toggle that has to be tried again is one toggle, and starts with a clean sheet. */
static void a_second_try_starts_anew(void **state)
{
	struct word_trace *trace = note_toggle(7, 100, 200, 300);

	(void)state;
	trace->latency[0] = 99;
	trace = trace_begin(&log_, 7);
	assert_int_equal(trace->visible[0], 0);
	assert_int_equal(trace->latency[0], 0);
	assert_int_equal(log_.toggles, 8);
}

/* Protocols without INT3 leave no such time: then it is the time when they began. */
static void without_int3_the_beginning_counts(void **state)
{
	uint64_t begun;

	(void)state;
	trace_begin(&log_, 0);
	begun = log_.entry[0].begun;
	assert_true(begun > 0);
	mark(begun + 10, 1);
	look();
	assert_int_equal(result.event[0].after_int3, 10);
}

static void latencies_become_quantiles(void **state)
{
	struct latency latency = { 0 };

	(void)state;
	trace_latency(&log_, &latency);
	assert_int_equal(latency.median, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		note_toggle(i, 1, 2, 3)->latency[0] = i < 600 ? 200 : i < 995 ? 1000 : 50000 + i;
		trace_end(&log_, i, &result.witness);
	}
	trace_latency(&log_, &latency);
	/* Buckets are a sixteenth of their octave wide. */
	assert_in_range(latency.median, 192, 208);
	assert_in_range(latency.p99, 960, 1040);
	assert_int_equal(latency.max, 50999);
	for (uint64_t i = 1000; i < 1020; i++) {
		note_toggle(i, 1, 2, 3)->latency[0] = 50000;
		trace_end(&log_, i, &result.witness);
	}
	trace_latency(&log_, &latency);
	assert_in_range(latency.p99, 47000, 53000);
}

static void toggles_without_a_latency_do_not_count(void **state)
{
	struct latency latency = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		note_toggle(i, 1, 2, 3)->latency[0] = i % 2 ? 500 : 0;
		trace_end(&log_, i, &result.witness);
	}
	trace_latency(&log_, &latency);
	assert_in_range(latency.median, 480, 520);
	assert_int_equal(log_.latencies, 5);
}

static void steps_are_witnessed(void **state)
{
	struct word_trace *trace = note_toggle(0, 1, 2, 3);

	(void)state;
	trace->step[0] = 50;
	trace->step[1] = WITNESS_STEP_ALLOWED + 1;
	trace_end(&log_, 0, &result.witness);
	assert_int_equal(result.witness.longest_step, WITNESS_STEP_ALLOWED + 1);
	assert_int_equal(result.witness.tsc_jumps, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_tear_belongs_to_the_last_closed_toggle, fresh),
		cmocka_unit_test_setup(an_event_has_what_the_trace_had, fresh),
		cmocka_unit_test_setup(each_tear_is_told_once, fresh),
		cmocka_unit_test_setup(toggles_torn_by_several_are_told, fresh),
		cmocka_unit_test_setup(only_the_first_are_kept, fresh),
		cmocka_unit_test_setup(lost_marks_are_left_out, fresh),
		cmocka_unit_test_setup(the_ring_of_toggles_goes_round, fresh),
		cmocka_unit_test_setup(a_second_try_starts_anew, fresh),
		cmocka_unit_test_setup(without_int3_the_beginning_counts, fresh),
		cmocka_unit_test_setup(latencies_become_quantiles, fresh),
		cmocka_unit_test_setup(toggles_without_a_latency_do_not_count, fresh),
		cmocka_unit_test_setup(steps_are_witnessed, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
