/* SPDX-License-Identifier: MIT */
/*
 * The oracle on trial: what is broken must be caught, what is sound must pass,
 * and every execution must be accounted for. TMAX_STRESS_SCALE lengthens it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/tests/scale.h"
#include "patchcore/word/word.h"
#include "stress/cell/code.h"
#include "stress/run/run.h"

static struct run_options how;
static bool alone; /* one CPU: nothing ever runs at the same time */

static void seat(struct cell *cell)
{
	cell_defaults(cell);
	cell->placement = alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD;
	cell->executors = 1;
}

static void run(const struct cell *cell, struct cell_result *result)
{
	assert_int_equal(cell_run(cell, &how, result), 0);
}

/* Split 1 shares the opcode in these: there is no mix to be seen, and the cell is refused. */
static bool has_mix(enum code_pair pair, unsigned split)
{
	return split > 1 || pair == PAIR_CALL_NOP || pair == PAIR_JMP_NOP;
}

/*
 * Without the lock byte, or with the front first, a mix stands in memory for a
 * whole wait: not rare at all, the executor runs through it hundreds of times.
 */
static void standing_mix_is_caught(enum protocol protocol, enum tear_kind kind, unsigned provokers)
{
	for (int pair = 0; pair < PAIR_COUNT; pair++) {
		for (unsigned split = 1; split <= 4; split++) {
			struct cell cell;
			struct cell_result r;

			if (!has_mix((enum code_pair)pair, split))
				continue;
			seat(&cell);
			cell.protocol = protocol;
			cell.pair = (enum code_pair)pair;
			cell.split = split;
			cell.provokers = provokers;
			cell.loop = provokers ? 20 : 0;
			cell.waits.first = cell.waits.second = 20000;
			cell.stop_tears = 1000;
			cell.seconds = 20;
			cell.toggles = CELL_TOGGLES_MAX;
			run(&cell, &r);
			assert_int_equal(r.outcome, OUTCOME_DONE);
			assert_true(r.tears[kind] >= 1000);
			assert_true(r.torn > 0);
			assert_true(r.torn <= r.toggles && r.torn <= cell_result_tears(&r));
			/* The blame is right: hardly any of the other kind. */
			assert_true(cell_result_tears(&r) - r.tears[kind] <= r.tears[kind] / 10);
		}
	}
}

static void no_int3_is_caught(void **state)
{
	(void)state;
	standing_mix_is_caught(PROTOCOL_NO_INT3, TEAR_OLD_FRONT, 0);
}

static void front_first_is_caught(void **state)
{
	(void)state;
	standing_mix_is_caught(PROTOCOL_FRONT_FIRST, TEAR_NEW_FRONT, 0);
}

/* What the cell adds to the loop takes nothing from what is seen. */
static void longer_loops_catch_as_much(void **state)
{
	(void)state;
	standing_mix_is_caught(PROTOCOL_NO_INT3, TEAR_OLD_FRONT,
			       1u << PROVOKER_CHAIN | 1u << PROVOKER_SITES);
}

/* How far a stamp of the executor's may be off by the clocks alone. */
static int64_t clock_error(const struct witness *w)
{
	if (w->offset_error == WITNESS_UNKNOWN)
		return 100000;
	return llabs(w->offset) + (int64_t)w->offset_error + 1000;
}

static void run_broken(enum protocol protocol, struct cell *cell, struct cell_result *r)
{
	seat(cell);
	cell->protocol = protocol;
	cell->waits.first = cell->waits.second = 200000;
	cell->stop_tears = 1000;
	cell->seconds = 20;
	cell->toggles = CELL_TOGGLES_MAX;
	run(cell, r);
	assert_int_equal(r->outcome, OUTCOME_DONE);
	assert_int_equal(r->events, TEAR_EVENTS_MAX);
}

/*
 * The mix stands from the back's store (front first: the front's) to that of the
 * other part, so that is when the tears are. A few stamps may be late, if the
 * executor lost its CPU just there; not half of those that are kept.
 */
static void events_tell_when_it_tore(void **state)
{
	struct cell cell;
	struct cell_result r;
	unsigned within = 0;

	(void)state;
	run_broken(PROTOCOL_NO_INT3, &cell, &r);
	for (unsigned i = 0; i < r.events; i++) {
		const struct tear_event *e = &r.event[i];

		assert_true(e->toggle < r.toggles + 1);
		assert_int_equal(e->executor, 0);
		within += e->kind == TEAR_OLD_FRONT && e->after_front < clock_error(&r.witness) &&
			  e->after_int3 > (int64_t)cell.waits.first - clock_error(&r.witness);
	}
	assert_true(within > TEAR_EVENTS_MAX / 2);

	run_broken(PROTOCOL_FRONT_FIRST, &cell, &r);
	within = 0;
	for (unsigned i = 0; i < r.events; i++)
		within += r.event[i].kind == TEAR_NEW_FRONT &&
			  r.event[i].after_front > -clock_error(&r.witness);
	assert_true(within > TEAR_EVENTS_MAX / 2);
}

/* How far the lines travel is measured by the library's own protocol alone. */
static void latency_is_measured(void **state)
{
	struct cell cell;
	struct cell_result r;

	(void)state;
	seat(&cell);
	cell.toggles = 2000;
	run(&cell, &r);
	assert_true(r.latency.median > 0);
	assert_true(r.latency.p99 >= r.latency.median);
	/* A bucket's middle may lie above the largest that is in it. */
	assert_true(r.latency.max + r.latency.max / 16 >= r.latency.p99);
	assert_true(r.witness.longest_step > 0);
	cell.protocol = PROTOCOL_NAIVE;
	run(&cell, &r);
	assert_int_equal(r.latency.median, 0);
}

/* Each wait is at least so many times the latency: so 64 times makes them longer. */
static void stretch_reaches_the_library(void **state)
{
	struct cell cell;
	struct sync sync;

	(void)state;
	seat(&cell);
	cell.waits.stretch = 64;
	sync = toggle_sync(&cell);
	assert_int_equal(sync.waits.stretch, 64);
	assert_null(sync.trace);
}

/*
 * A race, and so up to the machine. Seen at 1e-4 and more per toggle where it
 * tears at all, with 400,000 toggles a second: not to see one in 20 s has a
 * probability of exp(-800) there. A machine that tears at less than 2e-6 per
 * toggle is skipped over, and says so.
 */
static void racing_store_is_caught(enum protocol protocol, enum crossing crossing, uint64_t wait)
{
	struct cell cell;
	struct cell_result r;

	if (alone)
		skip();
	seat(&cell);
	cell.protocol = protocol;
	cell.crossing = crossing;
	cell.pair = PAIR_WORD;
	cell.waits.first = cell.waits.second = wait;
	cell.stop_tears = 1;
	cell.seconds = 20 * test_scale();
	cell.toggles = CELL_TOGGLES_MAX;
	run(&cell, &r);
	assert_int_equal(r.outcome, OUTCOME_DONE);
	if (cell_result_tears(&r) == 0) {
		print_message("# %s across a %s: no tear in %.3g toggles, skipped\n",
			      protocol_name(protocol), crossing_name(crossing), (double)r.toggles);
		skip();
	}
}

static void naive_store_is_caught(void **state)
{
	(void)state;
	racing_store_is_caught(PROTOCOL_NAIVE, CROSSING_LINE, 0);
}

static void wait_zero_is_caught(void **state)
{
	(void)state;
	racing_store_is_caught(PROTOCOL_WAIT, CROSSING_PAGE, 0);
}

static void check_accounts(const struct cell *cell, const struct cell_result *r)
{
	assert_int_equal(r->outcome, OUTCOME_DONE);
	assert_int_equal(r->toggles, cell->toggles);
	assert_true(r->executions > 0);
	assert_int_equal(r->old_new[0] + r->old_new[1] + cell_result_tears(r), r->executions);
	assert_true(r->torn <= r->toggles && r->torn <= cell_result_tears(r));
	assert_true(r->exposed <= r->toggles);
}

/* Of three sites in one line each is seen to tear where it does, and none where it does not. */
static void sites_inside_tear_each_by_itself(void **state)
{
	uint64_t torn[CELL_INSIDE] = { 0 };
	struct cell_result r;
	struct cell cell;

	(void)state;
	if (alone)
		skip();
	seat(&cell);
	cell.crossing = CROSSING_INSIDE;
	cell.pair = PAIR_CALL_CALL;
	cell.protocol = PROTOCOL_ATOMIC;
	cell.toggles = 20000;
	run(&cell, &r);
	check_accounts(&cell, &r);
	assert_int_equal(r.executions % CELL_INSIDE, 0);
	assert_int_equal(r.torn, 0);
	assert_true(!r.torn_inside[0] && !r.torn_inside[1] && !r.torn_inside[2]);

	/* A mix stands at each for a whole wait, one site after the other. */
	cell.protocol = PROTOCOL_NO_INT3;
	cell.waits = (struct waits){ 20000, 20000, 0 };
	cell.toggles = 2000;
	for (unsigned turn = 0; turn < 20 && !(torn[0] && torn[1] && torn[2]); turn++) {
		run(&cell, &r);
		assert_int_equal(r.outcome, OUTCOME_DONE);
		for (unsigned site = 0; site < CELL_INSIDE; site++) {
			assert_true(r.torn_inside[site] <= r.toggles);
			torn[site] += r.torn_inside[site];
		}
	}
	if (torn[0] + torn[1] + torn[2] < 100) {
		print_message("# patcher and executor hardly ever ran at a time: skipped\n");
		skip();
	}
	/* Of 100 by chance all at two sites: 3 * (2/3)^100, below 1e-16. */
	assert_true(torn[0] && torn[1] && torn[2]);
}

/*
 * The kernel documents SYNC_CORE; so not one tear, and old + new is all there
 * was. Both codes must have been run: patching that changes nothing is safe too.
 */
static void membarrier_never_tears(void **state)
{
	uint64_t old = 0, new = 0;

	(void)state;
	if (membarrier_register() < 0)
		skip();
	for (int pair = 0; pair < PAIR_COUNT; pair++) {
		for (unsigned split = 1; split <= 4; split++) {
			struct cell cell;
			struct cell_result r;

			if (!has_mix((enum code_pair)pair, split))
				continue;
			seat(&cell);
			cell.protocol = PROTOCOL_MEMBARRIER;
			cell.pair = (enum code_pair)pair;
			cell.split = split;
			cell.crossing = split % 2 ? CROSSING_PAGE : CROSSING_LINE;
			cell.provokers =
				split < 3 ? 1u << PROVOKER_CHAIN | 1u << PROVOKER_SITES : 0;
			cell.loop = split < 3 ? 10 : 0;
			cell.toggles = (uint64_t)(3000 * test_scale());
			run(&cell, &r);
			check_accounts(&cell, &r);
			assert_int_equal(cell_result_tears(&r), 0);
			old += r.old_new[0];
			new += r.old_new[1];
		}
	}
	/* In all, since on a busy machine an executor may sleep through a short cell. */
	assert_true(old > 0 && new > 0);
}

/* An aligned store must not tear on any machine we know: the 8-byte rule. */
static void one_word_never_tears(void **state)
{
	(void)state;
	for (unsigned split = 1; split <= 4; split++) {
		struct cell cell;
		struct cell_result r;

		seat(&cell);
		cell.protocol = PROTOCOL_ATOMIC;
		cell.crossing = CROSSING_NONE;
		cell.pair = split == 1 ? PAIR_CALL_NOP : PAIR_CALL_CALL;
		cell.split = split;
		cell.toggles = (uint64_t)(100000 * test_scale());
		run(&cell, &r);
		check_accounts(&cell, &r);
		assert_int_equal(cell_result_tears(&r), 0);
	}
}

/*
 * The wait protocol: every execution accounted for and no crash. Whether
 * it tears is what calibration is for, no matter of pass and fail here.
 */
static void wait_accounts_for_everything(void **state)
{
	(void)state;
	for (int pair = 0; pair < PAIR_COUNT; pair++) {
		struct cell cell;
		struct cell_result r;

		seat(&cell);
		cell.pair = (enum code_pair)pair;
		cell.split = 2;
		cell.toggles = (uint64_t)(30000 * test_scale());
		cell.rest =
			pair % 2 ? 0 : 1000; /* handlers that come late, sites held again at once */
		run(&cell, &r);
		check_accounts(&cell, &r);
	}
}

static void more_threads_than_cpus_account_too(void **state)
{
	struct cell cell;
	struct cell_result r;

	(void)state;
	seat(&cell);
	cell.placement = PLACEMENT_OVERSUBSCRIBED;
	cell.executors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) * 2;
	cell.toggles = (uint64_t)(10000 * test_scale());
	run(&cell, &r);
	check_accounts(&cell, &r);
}

/* Each runs through the mix of each toggle: together they tear no more than there are. */
static void a_toggle_is_torn_once_by_however_many(void **state)
{
	uint64_t torn = 0, exposed = 0;
	struct cell cell;
	struct cell_result r;

	(void)state;
	seat(&cell);
	cell.placement = PLACEMENT_OVERSUBSCRIBED;
	cell.executors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) * 2;
	cell.protocol = PROTOCOL_NO_INT3;
	cell.waits.first = cell.waits.second = 20000;
	cell.toggles = (uint64_t)(5000 * test_scale());
	/* A cell may be over before an executor gets a CPU. */
	for (unsigned turn = 0; turn < 20 && !(torn && exposed); turn++) {
		run(&cell, &r);
		check_accounts(&cell, &r);
		torn += r.torn;
		exposed += r.exposed;
	}
	assert_true(torn > 0);
	assert_true(exposed > 0);
}

/* The paper's oracle: a mix is an instruction that kills. */
static void crash_oracle_dies(void **state)
{
	static const enum code_pair pairs[] = { PAIR_CALL_NOP, PAIR_CALL_CALL, PAIR_JMP_NOP };

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (unsigned split = 1; split <= 4; split++) {
			struct cell cell;
			struct cell_result r;

			if (!has_mix(pairs[i], split))
				continue;
			seat(&cell);
			cell.oracle = ORACLE_CRASH;
			cell.protocol = PROTOCOL_NO_INT3;
			cell.pair = pairs[i];
			cell.split = split;
			cell.waits.first = cell.waits.second = 20000;
			cell.seconds = 20;
			run(&cell, &r);
			assert_int_equal(r.outcome, OUTCOME_CRASH);
			assert_true(r.signal == SIGILL || r.signal == SIGSEGV);
			/* Once, and by one executor only. */
			assert_int_equal(r.tears[TEAR_OTHER], 1);
			assert_true(r.torn >= 1 && r.torn <= r.toggles);
		}
	}
}

/* A process beside us that sends a signal to our child, once there is one. */
static pid_t start_sender(int signal)
{
	pid_t us = getpid(), sender = fork();
	char path[64];

	if (sender != 0)
		return sender;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)us, (int)us);
	for (;;) {
		FILE *file = fopen(path, "r");
		int pid;

		usleep(100000);
		while (file && fscanf(file, "%d", &pid) == 1)
			if (pid != getpid())
				kill(pid, signal);
		if (file)
			fclose(file);
	}
}

static void disturbed(int signal, enum outcome expected)
{
	struct cell cell;
	struct cell_result r;
	pid_t sender = start_sender(signal);

	seat(&cell);
	cell.seconds = 60;
	cell.toggles = CELL_TOGGLES_MAX;
	how.hang_seconds = 2;
	run(&cell, &r);
	how.hang_seconds = 0;
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	assert_int_equal(r.outcome, expected);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void killed_child_is_told(void **state)
{
	(void)state;
	disturbed(SIGKILL, OUTCOME_KILLED);
}

static void stopped_child_is_a_hang(void **state)
{
	(void)state;
	disturbed(SIGSTOP, OUTCOME_HANG);
}

static void same_cell_can_be_stopped(void **state)
{
	static volatile sig_atomic_t stop = 1;
	struct cell cell;
	struct cell_result r;

	(void)state;
	seat(&cell);
	cell.toggles = CELL_TOGGLES_MAX;
	how.stop = &stop;
	run(&cell, &r);
	how.stop = NULL;
	assert_int_equal(r.outcome, OUTCOME_INTERRUPTED);
	assert_true(r.toggles > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_int3_is_caught),
		cmocka_unit_test(front_first_is_caught),
		cmocka_unit_test(longer_loops_catch_as_much),
		cmocka_unit_test(events_tell_when_it_tore),
		cmocka_unit_test(latency_is_measured),
		cmocka_unit_test(stretch_reaches_the_library),
		cmocka_unit_test(naive_store_is_caught),
		cmocka_unit_test(sites_inside_tear_each_by_itself),
		cmocka_unit_test(wait_zero_is_caught),
		cmocka_unit_test(membarrier_never_tears),
		cmocka_unit_test(one_word_never_tears),
		cmocka_unit_test(wait_accounts_for_everything),
		cmocka_unit_test(more_threads_than_cpus_account_too),
		cmocka_unit_test(a_toggle_is_torn_once_by_however_many),
		cmocka_unit_test(crash_oracle_dies),
		cmocka_unit_test(killed_child_is_told),
		cmocka_unit_test(stopped_child_is_a_hang),
		cmocka_unit_test(same_cell_can_be_stopped),
	};
	char reason[160];
	int foreign;

	if (topology_open(&how.topology, &foreign) < 0 || foreign) {
		fprintf(stderr, "the topology cannot be read\n");
		return 77;
	}
	alone = placement_max(how.topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
