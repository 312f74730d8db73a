/* SPDX-License-Identifier: MIT */
/*
 * Does the recorder of stalls find one that was made up, in the window that it was made in and
 * nowhere else? Are the changes changes, and is every row there?
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bench/cases/stall.c"
#include "bench/method/method.h"
#include "bench/tests/threads.h"
#include "patchcore/machine/wait.h"

#define PASSES 100
#define MADE   2000000 /* ticks of the stall that is made up */
#define MARKED 5       /* window that it is made in */
#define LAST   10
#define TRIES  400

static hwloc_topology_t topology;
static struct seating seating;
static struct stall_record record;

/* --- What is noted of a pass ---------------------------------------------------------------- */

/* With 100 ticks as usual. */
static struct stall_log *fresh_log(void)
{
	stall_record_begin(&record, NULL, 1);
	for (unsigned i = 0; i < STALL_EARLY; i++)
		stall_note(record.log, 0, i % 10 ? 100 : 5000);
	return record.log;
}

static void usual_is_the_median(void **state)
{
	struct stall_log *log = fresh_log();

	(void)state;
	assert_int_equal(atomic_load(&log->usual), 100);
	/* For good. */
	for (unsigned i = 0; i < 2 * STALL_EARLY; i++)
		stall_note(log, 0, 900);
	assert_int_equal(atomic_load(&log->usual), 100);
	stall_record_begin(&record, NULL, 1);
	for (unsigned i = 0; i < STALL_EARLY - 1; i++)
		stall_note(log, 0, 100);
	assert_int_equal(atomic_load(&log->usual), 0);
}

static void each_number_has_its_own_worst(void **state)
{
	struct stall_log *log = fresh_log();
	static const uint64_t ticks[] = { 110, 7000, 120, 300, 130 };

	(void)state;
	for (unsigned number = 1; number <= 3; number++)
		for (unsigned i = 0; i < 5; i++)
			stall_note(log, number, number == 2 ? ticks[i] : 100 + number);
	assert_int_equal(log->window[1].worst, 101);
	assert_int_equal(log->window[2].worst, 7000);
	assert_int_equal(log->window[3].worst, 103);
	for (unsigned number = 1; number <= 3; number++)
		assert_int_equal(log->window[number].passes, 5);
	assert_int_equal(log->window[4].passes, 0);
}

/* --- A stall that is made up ----------------------------------------------------------------- */

static _Atomic(bool) marked;
static uint64_t ran; /* passes, by the one executor */

/* Stands for a loop with a site. Stalls in the first pass that it is told to. */
static void fake_pass(uint64_t iterations, uint64_t *counts)
{
	ran += iterations;
	counts[0] += iterations;
	if (!atomic_load_explicit(&marked, memory_order_relaxed))
		return;
	atomic_store_explicit(&marked, false, memory_order_relaxed);
	ticks_wait(MADE);
}

/*
 * The oracle: in windows 1 to LAST, as told by log, the stall is in MARKED and in no other. Others
 * may have been held up by other programs, so it is asked several times.
 */
static bool is_where_it_was_made(const struct stall_window *window)
{
	for (unsigned i = 1; i <= LAST; i++)
		if ((window[i].worst >= MADE) != (i == MARKED))
			return false;
	return true;
}

/* A recorder that cuts one too late: what happened after announcement n is told of n + 1. */
static bool would_be_one_late(const struct stall_window *window)
{
	struct stall_window late[LAST + 1] = { { 0 } };

	memcpy(late + 1, window, LAST * sizeof(*late));
	return is_where_it_was_made(late);
}

/* And one too early. */
static bool would_be_one_early(const struct stall_window *window)
{
	return is_where_it_was_made(window + 1);
}

static void judge_windows(bool (*make)(void))
{
	unsigned found = 0, broken = 0;

	for (unsigned i = 0; i < TRIES && !found; i++) {
		found += make();
		broken += would_be_one_late(record.log->window);
		broken += would_be_one_early(record.log->window);
	}
	assert_true(found > 0);
	assert_int_equal(broken, 0);
}

/* By hand, one thread: what comes after what is certain. */
static bool make_alone(void)
{
	struct hot_work work = { stall_run, &record };
	static struct hot_counts counts;
	uint64_t before = counts.executed, passes = 0;

	ran = 0;
	counts.calls[0] = 0;
	stall_record_begin(&record, fake_pass, 1);
	while (!atomic_load(&record.log->usual))
		work.run(&work, 0, &counts);
	for (unsigned i = 1; i <= LAST; i++) {
		stall_announce(&record);
		/* The pass that is to be found is not the first one of a round. */
		work.run(&work, 0, &counts);
		atomic_store(&marked, i == MARKED);
		work.run(&work, 0, &counts);
	}
	for (unsigned i = 0; i <= LAST; i++)
		passes += record.log->window[i].passes;
	assert_int_equal(passes, ran);
	assert_int_equal(counts.calls[0], ran);
	assert_int_equal(counts.executed - before, ran);
	for (unsigned i = 1; i <= LAST; i++)
		assert_int_equal(record.log->window[i].passes, 2 * STALL_ROUND);
	assert_true(record.log->window[MARKED].worst >= MADE);
	return is_where_it_was_made(record.log->window);
}

static void a_stall_is_found(void **state)
{
	(void)state;
	judge_windows(make_alone);
}

/* As the benchmark has it: one patcher, one executor on another CPU. */
static struct hot *hot;

/* Until it has told what is usual; but not for ever. */
static void await_usual(unsigned executor)
{
	for (unsigned i = 0; i < 2000 && !atomic_load(&record.log[executor].usual); i++)
		hot_cool(hot);
}

static bool make_beside(void)
{
	struct hot_work work = { stall_run, &record };
	struct hot_sum before = hot_count(hot), after;

	ran = 0;
	stall_record_begin(&record, fake_pass, 1);
	hot_aim(hot, &work, 1);
	await_usual(0);
	for (unsigned i = 1; i <= LAST; i++) {
		stall_announce(&record);
		hot_cool(hot);
		atomic_store(&marked, i == MARKED);
		hot_cool(hot);
	}
	hot_sleep(hot);
	after = hot_count(hot);
	assert_int_equal(after.executed - before.executed, ran);
	assert_int_equal(after.calls[0] - before.calls[0], ran);
	for (unsigned i = 1; i <= LAST; i++)
		assert_true(record.log->window[i].passes > 0);
	assert_true(record.log->window[MARKED].worst >= MADE);
	return is_where_it_was_made(record.log->window);
}

static void a_stall_of_another_thread_is_found(void **state)
{
	(void)state;
	if (!seating.executors)
		skip();
	assert_int_equal(hot_start(&hot, topology, &seating), 0);
	judge_windows(make_beside);
	hot_stop(hot);
}

/* The pass in which the number came is the new one's: the change may have begun in it. */
static void announce_amid(uint64_t iterations, uint64_t *counts)
{
	ran += iterations;
	(void)counts;
	if (ran == STALL_EARLY + 10) {
		stall_announce(&record);
		ticks_wait(MADE);
	}
}

static void a_pass_is_of_the_number_at_its_end(void **state)
{
	struct hot_work work = { stall_run, &record };
	static struct hot_counts counts;

	(void)state;
	ran = 0;
	stall_record_begin(&record, announce_amid, 1);
	while (ran < STALL_EARLY + 50)
		work.run(&work, 0, &counts);
	assert_int_equal(record.log->window[0].passes, STALL_EARLY + 9);
	assert_int_equal(record.log->window[1].passes, ran - STALL_EARLY - 9);
	assert_true(record.log->window[1].worst >= MADE);
}

static void count_pass(uint64_t iterations, uint64_t *counts)
{
	counts[0] += iterations;
}

static void make_by_two(void)
{
	struct hot_work work = { stall_run, &record };

	stall_record_begin(&record, count_pass, 2);
	hot_aim(hot, &work, 2);
	for (unsigned e = 0; e < 2; e++)
		await_usual(e);
	for (unsigned i = 1; i <= 3; i++) {
		stall_announce(&record);
		hot_cool(hot);
		hot_cool(hot);
	}
	hot_sleep(hot);
}

/* Here they may share a CPU. */
static void executors_have_logs_of_their_own(void **state)
{
	struct seating two = seating;
	struct hot_sum sum;
	uint64_t passes = 0;

	(void)state;
	if (!seating.executors)
		skip();
	two.executors = 2;
	two.executor[1] = seating.executor[seating.executors - 1];
	assert_int_equal(hot_start(&hot, topology, &two), 0);
	make_by_two();
	sum = hot_count(hot);
	hot_stop(hot);
	for (unsigned e = 0; e < 2; e++)
		for (unsigned i = 0; i <= STALL_WINDOWS; i++) {
			const struct stall_window *window = &record.log[e].window[i];

			passes += window->passes;
			assert_int_equal(window->passes > 0, i <= 3);
		}
	assert_int_equal(passes, sum.executed);
	assert_int_equal(sum.calls[0], sum.executed);
}

/* --- The changes ------------------------------------------------------------------------------ */

/* The site of the next one that is to be had here, and after that to be let go. NULL: that was all.
 */
static struct bench_site *next_site(size_t *i, struct spare *spare)
{
	struct bench_site *site = aligned_alloc(128, sizeof(*site));
	char why[BENCH_WHY];

	assert_non_null(site);
	*spare = (struct spare){ 0 };
	for (; *i < STALL_SPECS; ++*i) {
		const struct stall_spec *spec = &stall_specs[*i];

		assert_int_equal(stall_build(site, spare, spec, why), 0);
		if (bench_site_begin(site, why) == 0)
			return site;
		bench_site_free(site);
		spare_close(spare);
	}
	free(site);
	return NULL;
}

static void let_go(struct bench_site *site, struct spare *spare)
{
	bench_site_end(site);
	bench_site_free(site);
	spare_close(spare);
	free(site);
}

static int set_settled(struct bench_site *site, unsigned to)
{
	const struct way *way = &ways[site->spec.way];
	int ret = way->set(site, to);

	return ret == 0 && way->settle ? way->settle() : ret;
}

static void run_passes(const struct bench_site *site, uint64_t calls[2])
{
	calls[0] = calls[1] = 0;
	for (unsigned i = 0; i < PASSES; i++)
		site->loop.run(1, calls);
}

static void changes_turn_off_and_on(void **state)
{
	struct spare spare;
	struct bench_site *site;
	unsigned had = 0;

	(void)state;
	for (size_t i = 0; (site = next_site(&i, &spare)); i++, had++) {
		bool pointer = stall_specs[i].site.way == WAY_POINTER;
		uint64_t calls[2];

		for (unsigned turn = 0; turn < 3; turn++) {
			run_passes(site, calls);
			assert_true(calls[0] == PASSES && calls[1] == 0);
			assert_int_equal(set_settled(site, 1), 0);
			run_passes(site, calls);
			assert_true(calls[0] == 0 && calls[1] == (pointer ? PASSES : 0));
			assert_int_equal(set_settled(site, 0), 0);
		}
		let_go(site, &spare);
	}
	/* On any machine: aligned, the calls, flag, pointer. */
	assert_true(had >= 5);
}

static void check_batch(struct bench_site *site, const struct spare *spare, unsigned to)
{
	uint8_t before[STALL_BATCH][LOOP_SITE_BYTES];

	for (unsigned i = 0; i < STALL_BATCH; i++)
		memcpy(before[i], spare->op[i].addr, LOOP_SITE_BYTES);
	assert_int_equal(bench_site_set(site, to), 0);
	for (unsigned i = 0; i < STALL_BATCH; i++) {
		const struct pc_op *op = &spare->op[i];

		assert_int_equal(op->result, 0);
		assert_memory_equal(op->addr, op->bytes, op->len);
		assert_memory_not_equal(op->addr, before[i], op->len);
	}
}

/* All sites of a batch are changed, also those that no executor runs. */
static void a_batch_is_whole(void **state)
{
	struct spare spare;
	struct bench_site *site;

	(void)state;
	for (size_t i = 0; (site = next_site(&i, &spare)); i++) {
		for (unsigned turn = 0; turn < 3 && stall_specs[i].site.way == WAY_BATCH; turn++)
			check_batch(site, &spare, !(turn % 2));
		let_go(site, &spare);
	}
}

/* --- Rows ------------------------------------------------------------------------------------- */

static void check_row(const struct bench_row *row, const struct stall_spec *spec)
{
	unsigned windows = spec->windows ? spec->windows : STALL_WINDOWS;

	assert_string_equal(row->name, ways[spec->site.way].name);
	assert_string_equal(row->measure, "stall");
	assert_int_equal(row->peer, ways[spec->site.way].peer);
	if (row->samples == 0) {
		assert_true(strlen(row->why) > 0);
		return;
	}
	assert_int_equal(row->samples, 2 * windows * bench_row_number(row, "executors"));
	assert_string_equal(row->against, "idle");
	/* No pass is shorter than a reading of the clock. */
	assert_true(row->least > 0);
	assert_true(bench_row_extra_of(row, "pass") > 0);
	assert_false(isnan(bench_row_extra_of(row, "typical")));
	assert_true(bench_row_extra_of(row, "worst") >= 0);
	/* These never stop a thread. */
	if (strcmp(row->name, "aligned") == 0 || strcmp(row->name, "call") == 0)
		assert_true(bench_row_extra_of(row, "traps") == 0);
	assert_int_equal(isnan(bench_row_extra_of(row, "traps")), ways[spec->site.way].peer);
}

static void every_row_is_there(void **state)
{
	static volatile sig_atomic_t never;
	struct bench_run run = {
		.topology = topology, .seating = seating, .rounds = 1, .seed = 1, .stop = &never
	};
	struct bench_result result = { .benchmark = "stall" };
	struct pc_status status;
	unsigned row = 0;

	(void)state;
	if (!seating.executors)
		skip();
	assert_int_equal(bench_stall.run(&run, &result), 0);
	for (size_t i = 0; i < STALL_SPECS; i++)
		check_row(&result.row[row++], &stall_specs[i]);
	for (size_t i = 0; i < STALL_SPECS && seating.executors > 1; i++)
		if (stall_specs[i].all)
			check_row(&result.row[row++], &stall_specs[i]);
	assert_int_equal(result.rows, row);
	bench_result_free(&result);
	assert_int_equal(pc_get_status(&status), 0);
	assert_int_equal(status.asked, PC_POLICY_AUTO);
}

/* --- Which threads are there ------------------------------------------------------------------ */

#define CROWD 3 /* executors; here they share a CPU */

static struct {
	unsigned before;  /* threads, without executors: in set_up() */
	unsigned singles; /* cases seen with one executor */
	unsigned stops;	  /* of cases that stop all threads */
	unsigned crowds;  /* and with all */
	unsigned wrong;	  /* neither, or the wrong one */
	volatile sig_atomic_t stop;
} seen;

/* The kernel lists a thread for a moment after it was joined. */
static unsigned executors_there(unsigned expected)
{
	for (unsigned i = 0; i < 20000 && threads() != seen.before + expected; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return threads() - seen.before;
}

static void look_at_a_single(const char *name)
{
	seen.wrong += executors_there(1) != 1;
	seen.stops += strcmp(name, "stop-the-world") == 0 || strcmp(name, "ptrace") == 0;
	seen.singles++;
}

/* To run them all where they share a CPU would take long. */
static void look_at_a_crowd(void)
{
	seen.wrong += executors_there(CROWD) != CROWD;
	seen.crowds++;
	seen.stop = 1;
}

/* Called before each case. The second part leaves out the cases that stop all threads. */
static void look_around(unsigned done, unsigned all, const char *name)
{
	(void)done;
	seen.wrong += (all == STALL_SPECS) != (seen.singles < STALL_SPECS);
	if (seen.singles < STALL_SPECS)
		look_at_a_single(name);
	else
		look_at_a_crowd();
}

/* A peer that stops the world, or traces, stops all threads there are, also those that sleep. */
static void one_executor_is_alone(void **state)
{
	struct bench_run run = { .topology = topology,
				 .seating = seating,
				 .rounds = 1,
				 .seed = 1,
				 .stop = &seen.stop,
				 .progress = look_around };
	struct bench_result result = { .benchmark = "stall" };

	(void)state;
	if (!seating.executors)
		skip();
	run.seating.executors = CROWD;
	for (unsigned i = 1; i < CROWD; i++)
		run.seating.executor[i] = seating.executor[0];
	assert_int_equal(bench_stall.run(&run, &result), -EINTR);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.singles, STALL_SPECS);
	assert_int_equal(result.rows, STALL_SPECS);
	assert_int_equal(seen.stops, 2);
	assert_int_equal(seen.crowds, 1);
	/* And no executor is left. */
	assert_int_equal(executors_there(0), 0);
	bench_result_free(&result);
}

static int set_up(void **state)
{
	char why[BENCH_WHY];
	unsigned most;
	int foreign;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	most = placement_max(topology, PLACEMENT_SPREAD, why, sizeof(why));
	if (most > 3)
		most = 3;
	if (most > 0 &&
	    placement_seat(topology, PLACEMENT_SPREAD, most, 0, &seating, why, sizeof(why)) < 0)
		return -1;
	seen.before = threads();
	record.log = aligned_alloc(128, 2 * sizeof(*record.log));
	return record.log ? pc_init() : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(record.log);
	hwloc_topology_destroy(topology);
	return pc_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_is_the_median),
		cmocka_unit_test(each_number_has_its_own_worst),
		cmocka_unit_test(a_stall_is_found),
		cmocka_unit_test(a_stall_of_another_thread_is_found),
		cmocka_unit_test(a_pass_is_of_the_number_at_its_end),
		cmocka_unit_test(executors_have_logs_of_their_own),
		cmocka_unit_test(changes_turn_off_and_on),
		cmocka_unit_test(a_batch_is_whole),
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(one_executor_is_alone),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
