/* SPDX-License-Identifier: MIT */
/*
 * Executors: one that is aimed runs, one that sleeps does not, and what is counted is what was
 * done. Once with a CPU for each, as far as there are any, once with all on one CPU.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bench/method/hot.h"
#include "bench/tests/threads.h"
#include "patchcore/machine/wait.h"

#define MOST 5

static hwloc_topology_t topology;
static struct seating seating;
static struct hot *hot;

/* --- Work that tells what was done to it ---------------------------------------------------- */

struct mark {
	_Atomic(uint64_t) begun, ended;
	_Atomic(int) cpu;
} __attribute__((aligned(128)));

struct told {
	struct mark mark[MOST];
	uint64_t ticks;
};

static uint64_t get(_Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void tell(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct told *told = work->arg;
	struct mark *mark = &told->mark[executor];

	atomic_fetch_add_explicit(&mark->begun, 1, memory_order_relaxed);
	atomic_store_explicit(&mark->cpu, sched_getcpu(), memory_order_relaxed);
	ticks_wait(told->ticks);
	counts->calls[executor % 2] += 3;
	atomic_fetch_add_explicit(&counts->executed, 2, memory_order_relaxed);
	atomic_fetch_add_explicit(&mark->ended, 1, memory_order_relaxed);
}

static uint64_t sum_of(struct told *told)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MOST; i++)
		sum += get(&told->mark[i].ended);
	return sum;
}

static void pause_a_little(void)
{
	const struct timespec pause = { .tv_nsec = 3000000 };

	nanosleep(&pause, NULL);
}

static void assert_none_runs(struct told *told)
{
	struct hot_sum before = hot_count(hot), after;
	uint64_t sum = sum_of(told);

	for (unsigned i = 0; i < MOST; i++)
		assert_int_equal(get(&told->mark[i].begun), get(&told->mark[i].ended));
	pause_a_little();
	after = hot_count(hot);
	assert_int_equal(sum_of(told), sum);
	assert_int_equal(after.executed, before.executed);
	assert_int_equal(after.calls[0], before.calls[0]);
	assert_int_equal(after.calls[1], before.calls[1]);
}

/* --- Aim and sleep -------------------------------------------------------------------------- */

static void at_first_all_sleep(void **state)
{
	struct hot_sum sum;

	(void)state;
	pause_a_little();
	sum = hot_count(hot);
	assert_int_equal(hot_executors(hot), seating.executors);
	assert_int_equal(sum.executed + sum.calls[0] + sum.calls[1], 0);
}

static void who_is_aimed_runs_at_once(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= seating.executors + 1; n++) {
		struct told told = { .ticks = 100 };
		struct hot_work work = { tell, &told };
		unsigned aimed = n < seating.executors ? n : seating.executors;

		hot_aim(hot, &work, n);
		for (unsigned i = 0; i < aimed; i++)
			assert_true(get(&told.mark[i].ended) > 0);
		hot_sleep(hot);
		for (unsigned i = aimed; i < MOST; i++)
			assert_int_equal(get(&told.mark[i].begun), 0);
		assert_none_runs(&told);
	}
}

/* Many times: the work is gone as soon as they sleep. */
static void nobody_runs_who_was_put_to_sleep(void **state)
{
	static struct told told;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct hot_work work = { tell, &told };

		told.ticks = i * 500;
		hot_aim(hot, &work, seating.executors);
		hot_sleep(hot);
		for (unsigned e = 0; e < seating.executors; e++)
			assert_int_equal(get(&told.mark[e].begun), get(&told.mark[e].ended));
		/* An executor that still looks at it crashes. */
		work = (struct hot_work){ NULL, NULL };
	}
	assert_none_runs(&told);
	hot_sleep(hot);
}

static void aimed_elsewhere_they_leave_what_they_did(void **state)
{
	struct told first = { .ticks = 1000 }, second = { .ticks = 1000 };
	struct hot_work one = { tell, &first }, other = { tell, &second };
	uint64_t sum;

	(void)state;
	hot_aim(hot, &one, seating.executors);
	hot_aim(hot, &other, 1);
	sum = sum_of(&first);
	assert_true(sum >= seating.executors);
	hot_cool(hot);
	assert_int_equal(sum_of(&first), sum);
	assert_true(get(&second.mark[0].ended) > 0);
	hot_sleep(hot);
	assert_int_equal(sum_of(&second), get(&second.mark[0].ended));
}

static void each_sits_on_its_cpu(void **state)
{
	struct told told = { .ticks = 100 };
	struct hot_work work = { tell, &told };

	(void)state;
	hot_aim(hot, &work, seating.executors);
	hot_cool(hot);
	hot_sleep(hot);
	for (unsigned i = 0; i < seating.executors; i++)
		assert_int_equal(atomic_load_explicit(&told.mark[i].cpu, memory_order_relaxed),
				 seating.executor[i]);
}

/* --- Counting ------------------------------------------------------------------------------- */

static void counts_are_what_was_done(void **state)
{
	struct told told = { .ticks = 100 };
	struct hot_work work = { tell, &told };
	struct hot_sum before = hot_count(hot), after;
	uint64_t even = 0, odd = 0;

	(void)state;
	hot_aim(hot, &work, seating.executors);
	for (unsigned i = 0; i < 5; i++)
		hot_cool(hot);
	hot_sleep(hot);
	after = hot_count(hot);
	for (unsigned i = 0; i < MOST; i++)
		*(i % 2 ? &odd : &even) += get(&told.mark[i].ended);
	assert_true(even > 5);
	assert_int_equal(after.executed - before.executed, 2 * (even + odd));
	assert_int_equal(after.calls[0] - before.calls[0], 3 * even);
	assert_int_equal(after.calls[1] - before.calls[1], 3 * odd);
}

static void a_loop_is_run_in_whole_rounds(void **state)
{
	const struct loop_spec spec = { .kind = LOOP_DIRECT, .target = LOOP_COUNT };
	struct hot_sum before = hot_count(hot), after;
	struct hot_work work = { hot_loop, NULL };
	struct loop loop;

	(void)state;
	assert_int_equal(loop_build(&loop, &spec), 0);
	work.arg = &loop;
	hot_aim(hot, &work, seating.executors);
	hot_cool(hot);
	hot_sleep(hot);
	after = hot_count(hot);
	assert_true(after.executed - before.executed >= 3 * HOT_ROUND * seating.executors);
	assert_int_equal((after.executed - before.executed) % HOT_ROUND, 0);
	assert_int_equal(after.calls[0] - before.calls[0], after.executed - before.executed);
	assert_int_equal(after.calls[1], before.calls[1]);
	loop_free(&loop);
}

/* --- Cool ----------------------------------------------------------------------------------- */

/* Rounds far longer than the rest: one that was under way when it began is not enough. */
static void cool_is_a_whole_round_of_each(void **state)
{
	struct told told = { .ticks = 20 * HOT_REST };
	struct hot_work work = { tell, &told };

	(void)state;
	hot_aim(hot, &work, seating.executors);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t begun[MOST];

		for (unsigned e = 0; e < seating.executors; e++)
			begun[e] = get(&told.mark[e].begun);
		hot_cool(hot);
		/* Of those that begun[e] counts, the last may have been under way. */
		for (unsigned e = 0; e < seating.executors; e++)
			assert_true(get(&told.mark[e].ended) > begun[e]);
	}
	hot_sleep(hot);
}

static void cool_rests(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		uint64_t begin = ticks_now();

		hot_cool(hot);
		assert_true(ticks_now() - begin >= HOT_REST);
	}
}

/* --- Beginning and end ---------------------------------------------------------------------- */

static unsigned first_threads; /* of this process, before any test */

/* The kernel lists a thread for a moment after it was joined. */
static void assert_threads(unsigned expected)
{
	for (unsigned i = 0; i < 10000 && threads() != expected; i++)
		pause_a_little();
	assert_int_equal(threads(), expected);
}

static void who_cannot_be_pinned_is_not_started(void **state)
{
	unsigned before = first_threads + seating.executors;
	struct seating nowhere = { .executors = 2, .executor = { seating.patcher, 999999 } };
	struct hot *none = NULL;

	(void)state;
	assert_true(hot_start(&none, topology, &nowhere) < 0);
	assert_null(none);
	assert_threads(before);
}

static void stopped_under_way_they_are_gone(void **state)
{
	unsigned before = first_threads + seating.executors;
	struct told told = { .ticks = 100 };
	struct hot_work work = { tell, &told };
	struct hot *other;
	uint64_t sum;

	(void)state;
	hot_stop(NULL);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(hot_start(&other, topology, &seating), 0);
		assert_true(threads() >= before + seating.executors);
		if (i % 2)
			hot_aim(other, &work, seating.executors);
		hot_stop(other);
	}
	sum = sum_of(&told);
	assert_threads(before);
	assert_int_equal(sum_of(&told), sum);
}

static void nobody_to_run_is_fine(void **state)
{
	const struct seating empty = { .patcher = seating.patcher };
	struct hot_work work = { hot_loop, NULL };
	struct hot *other;
	struct hot_sum sum;

	(void)state;
	assert_int_equal(hot_start(&other, topology, &empty), 0);
	assert_int_equal(hot_executors(other), 0);
	hot_aim(other, &work, 3);
	hot_cool(other);
	hot_sleep(other);
	sum = hot_count(other);
	assert_int_equal(sum.executed, 0);
	hot_stop(other);
}

/* --- On which CPUs -------------------------------------------------------------------------- */

static int begin(void)
{
	if (pin_this_thread(topology, seating.patcher) < 0)
		return -1;
	return hot_start(&hot, topology, &seating);
}

/* One on each other CPU, at most three; on a machine with one CPU, that. */
static int set_up_apart(void **state)
{
	hwloc_const_bitmap_t cpus;
	int foreign, cpu;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	cpus = hwloc_topology_get_topology_cpuset(topology);
	cpu = hwloc_bitmap_first(cpus);
	seating = (struct seating){ .patcher = (unsigned)cpu };
	while (seating.executors < 3 && (cpu = hwloc_bitmap_next(cpus, cpu)) >= 0)
		seating.executor[seating.executors++] = (unsigned)cpu;
	if (!seating.executors)
		seating.executor[seating.executors++] = seating.patcher;
	return begin();
}

/* All on the patcher's CPU: a thread that waits must let the others run. */
static int set_up_together(void **state)
{
	int foreign;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	seating = (struct seating){ .executors = 3 };
	seating.patcher =
		(unsigned)hwloc_bitmap_first(hwloc_topology_get_topology_cpuset(topology));
	for (unsigned i = 0; i < seating.executors; i++)
		seating.executor[i] = seating.patcher;
	return begin();
}

static int tear_down(void **state)
{
	(void)state;
	hot_stop(hot);
	hwloc_topology_destroy(topology);
	return 0;
}

/* Each on CPUs of their own, and all on one. */
#define TEST(test)                                                                                 \
	{ #test ", apart", test, set_up_apart, tear_down, NULL },                                  \
	{                                                                                          \
#test ", together", test, set_up_together, tear_down, NULL                         \
	}

static void *ends_at_once(void *unused)
{
	return unused;
}

/* A sanitizer starts a thread of its own with the first one. */
static void note_first_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, ends_at_once, NULL) == 0)
		pthread_join(thread, NULL);
	first_threads = threads();
	for (unsigned i = 0; i < 30; i++) {
		unsigned now = threads();

		first_threads = now < first_threads ? now : first_threads;
		pause_a_little();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at_first_all_sleep),
		TEST(who_is_aimed_runs_at_once),
		TEST(nobody_runs_who_was_put_to_sleep),
		TEST(aimed_elsewhere_they_leave_what_they_did),
		TEST(each_sits_on_its_cpu),
		TEST(counts_are_what_was_done),
		TEST(a_loop_is_run_in_whole_rounds),
		TEST(cool_is_a_whole_round_of_each),
		TEST(cool_rests),
		TEST(who_cannot_be_pinned_is_not_started),
		TEST(stopped_under_way_they_are_gone),
		TEST(nobody_to_run_is_fine),
	};

	note_first_threads();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
