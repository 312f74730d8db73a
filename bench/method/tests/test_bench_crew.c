/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "bench/method/crew.h"
#include "bench/tests/bench_run.h"
#include "bench/tests/threads.h"

#define MEMBERS 3
#define TURNS	200

static struct bench_run run;

struct tally {
	_Atomic(unsigned) inside; /* members that are in the function */
	_Atomic(unsigned) times[MEMBERS];
	unsigned expected;
};

/* Nobody leaves before all have come: if one was not woken, this would never end. */
static void meet(void *arg, unsigned member)
{
	struct tally *tally = arg;

	atomic_fetch_add(&tally->times[member], 1);
	atomic_fetch_add(&tally->inside, 1);
	while (atomic_load(&tally->inside) < tally->expected)
		sched_yield();
}

static struct crew *start(unsigned members)
{
	unsigned cpu[MEMBERS];
	struct crew *crew;

	for (unsigned i = 0; i < MEMBERS; i++)
		cpu[i] = i % 2 ? run.seating.executor[0] : run.seating.patcher;
	assert_int_equal(crew_start(&crew, run.topology, cpu, members), 0);
	return crew;
}

static void all_members_are_at_it_together(void **state)
{
	struct crew *crew = start(MEMBERS);
	struct tally tally = { .expected = MEMBERS };

	(void)state;
	for (unsigned turn = 1; turn <= TURNS; turn++) {
		atomic_store(&tally.inside, 0);
		crew_run(crew, MEMBERS, meet, &tally);
		for (unsigned i = 0; i < MEMBERS; i++)
			assert_int_equal(atomic_load(&tally.times[i]), turn);
	}
	crew_stop(crew);
}

/* Now more, now fewer; who is not wanted sleeps on. */
static void fewer_members_may_be_wanted(void **state)
{
	struct crew *crew = start(MEMBERS);
	struct tally tally = { 0 };
	unsigned times[MEMBERS] = { 0 };

	(void)state;
	for (unsigned turn = 0; turn < TURNS; turn++) {
		tally.expected = 1 + turn % MEMBERS;
		atomic_store(&tally.inside, 0);
		crew_run(crew, tally.expected, meet, &tally);
		for (unsigned i = 0; i < tally.expected; i++)
			times[i]++;
		for (unsigned i = 0; i < MEMBERS; i++)
			assert_int_equal(atomic_load(&tally.times[i]), times[i]);
	}
	crew_stop(crew);
}

static void note_thread(void *arg, unsigned member)
{
	((pthread_t *)arg)[member] = pthread_self();
}

static void the_caller_is_the_first_member(void **state)
{
	struct crew *crew = start(2);
	pthread_t thread[2];

	(void)state;
	crew_run(crew, 2, note_thread, thread);
	assert_true(pthread_equal(thread[0], pthread_self()));
	assert_false(pthread_equal(thread[1], pthread_self()));
	crew_stop(crew);
}

static void note_cpus(void *arg, unsigned member)
{
	((int *)arg)[member] = sched_getcpu();
}

static void members_sit_where_they_were_put(void **state)
{
	struct crew *crew = start(MEMBERS);
	int cpu[MEMBERS];

	(void)state;
	for (unsigned turn = 0; turn < 20; turn++) {
		crew_run(crew, MEMBERS, note_cpus, cpu);
		assert_int_equal(cpu[1], run.seating.executor[0]);
		assert_int_equal(cpu[2], run.seating.patcher);
	}
	crew_stop(crew);
}

static void a_crew_of_one_is_the_caller(void **state)
{
	struct tally tally = { .expected = 1 };
	struct crew *crew = start(1);

	(void)state;
	crew_run(crew, 1, meet, &tally);
	crew_run(crew, MEMBERS, meet, &tally);
	assert_int_equal(atomic_load(&tally.times[0]), 2);
	crew_stop(crew);
	crew_stop(NULL);
}

/*
 * The kernel lists a thread for a moment after it was joined, and what was counted before may
 * have held such a one, too.
 */
static void assert_threads(unsigned expected)
{
	for (unsigned i = 0; i < 1000 && threads() > expected; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_in_range(threads(), 1, expected);
}

/* Whichever of them it is; the others are ended. */
static void who_cannot_be_pinned_is_not_started(void **state)
{
	unsigned before = threads();

	(void)state;
	for (unsigned bad = 1; bad < MEMBERS; bad++) {
		unsigned cpu[MEMBERS] = { run.seating.patcher, run.seating.patcher,
					  run.seating.patcher };
		struct crew *none = NULL;

		cpu[bad] = 999999;
		assert_true(crew_start(&none, run.topology, cpu, MEMBERS) < 0);
		assert_null(none);
		assert_threads(before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_members_are_at_it_together),
		cmocka_unit_test(fewer_members_may_be_wanted),
		cmocka_unit_test(the_caller_is_the_first_member),
		cmocka_unit_test(members_sit_where_they_were_put),
		cmocka_unit_test(a_crew_of_one_is_the_caller),
		cmocka_unit_test(who_cannot_be_pinned_is_not_started),
	};

	return BENCH_RUN_TESTS(&run, tests, NULL, NULL);
}
