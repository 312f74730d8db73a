/* SPDX-License-Identifier: MIT */
/* Every provoker in a cell: it is asked when it should be, and the cell ends as any other. */
#include <emmintrin.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchcore/machine/wait.h"
#include "patchcore/word/word.h"
#include "stress/cell/code.h"
#include "stress/run/child.c"
#include "stress/tests/provoker_place.h"

static void every_provoker_lets_its_cell_end(void **state)
{
	(void)state;
	for (int i = 0; i < PROVOKER_COUNT; i++) {
		struct cell_result r;
		struct seating seating;
		struct cell cell;
		char reason[160];

		seat(&cell, &seating, 1u << i);
		cell.toggles = 3000;
		assert_int_equal(cell_run(&cell, &how, &r), 0);
		if (provokers_possible(cell.provokers, how.topology, &seating, reason,
				       sizeof(reason)) < 0) {
			assert_int_equal(r.outcome, OUTCOME_ERROR);
			assert_int_equal(r.error, -ENOTSUP);
			continue;
		}
		assert_int_equal(r.outcome, OUTCOME_DONE);
		assert_int_equal(r.toggles, cell.toggles);
		assert_int_equal(r.old_new[0] + r.old_new[1] + cell_result_tears(&r), r.executions);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

/* Runs the inside of a cell, to see what it leaves in the memory that it shares with us. */
static struct shared *run_inside(unsigned provokers)
{
	size_t size = sizeof(struct shared) + sizeof(struct executor_counts);
	struct shared *shared =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cell cell;
	int status;
	pid_t pid;

	assert_ptr_not_equal(shared, MAP_FAILED);
	seat(&cell, &shared->result.seating, provokers);
	cell.toggles = 3000;
	shared->cell = &cell;
	shared->options = &how;
	pid = fork();
	if (pid == 0) {
		child_run(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(shared->result.outcome, OUTCOME_DONE);
	assert_int_equal(shared->result.toggles, cell.toggles);
	return shared;
}

/* Once for each toggle, and for those of which the first store found an INT3. */
static void the_patcher_provokes_before_each_toggle(void **state)
{
	struct shared *shared = run_inside(1u << PROVOKER_COLD_FRONT);
	struct cell_result *r = &shared->result;

	(void)state;
	assert_in_range(shared->provoked[PROVOKER_COLD_FRONT], r->toggles, r->toggles + r->retries);
	assert_int_equal(shared->stirred, 0);
}

static void the_patcher_rewrites_the_extra_sites(void **state)
{
	struct shared *shared = run_inside(1u << PROVOKER_SITES);

	(void)state;
	assert_int_equal(shared->stirred, CODE_EXTRA * shared->result.toggles);
	assert_int_equal(shared->provoked[PROVOKER_COLD_FRONT], 0);
}

static void the_executors_provoke_after_each_round(void **state)
{
	struct seating seating;
	struct shared *shared;
	struct cell cell;
	char reason[160];

	(void)state;
	seat(&cell, &seating, 1u << PROVOKER_WIDE);
	if (provokers_possible(cell.provokers, how.topology, &seating, reason, sizeof(reason)) < 0)
		skip();
	shared = run_inside(cell.provokers);
	assert_int_equal(shared->provoked[PROVOKER_WIDE], shared->result.executions / 1000);
}

/* What a provoker finds when it is called in a toggle of a site that no executor runs. */
struct finding {
	const struct code *code;
	const struct sync *sync;
	unsigned calls;
	bool is_old; /* the site has its old code, so no INT3 */
	uint64_t tsc;
	int second; /* what another toggle of the site gets meanwhile */
};

static void find(void *arg)
{
	struct finding *f = arg;
	struct sync sync = *f->sync;

	f->calls++;
	f->is_old = memcmp(f->code->site[0].at, f->code->site[0].bytes[0], CODE_LENGTH) == 0;
	sync.trace = NULL;
	f->second = toggle(PROTOCOL_WAIT, f->code, 0, 2, &sync);
	f->tsc = ticks_now();
}

static struct code *build(struct cell *cell, enum protocol protocol)
{
	static struct code code;

	cell_defaults(cell);
	cell->protocol = protocol;
	cell->waits.first = cell->waits.second = 100;
	assert_int_equal(code_build(&code, cell), 0);
	return &code;
}

/*
 * When the site is held already, and before any store. A second toggle of it cannot be
 * made then; where the protocol holds nothing it is made, and overwritten.
 */
static void provokers_act_right_before_the_first_store(void **state)
{
	static const enum protocol protocols[] = { PROTOCOL_WAIT, PROTOCOL_NO_INT3,
						   PROTOCOL_FRONT_FIRST, PROTOCOL_NAIVE };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct cell cell;
		struct code *code = build(&cell, protocols[i]);
		struct sync sync = toggle_sync(&cell);
		struct finding f = { .code = code, .sync = &sync };
		struct word_trace trace = { .prepared = find, .arg = &f };

		sync.trace = &trace;
		assert_int_equal(toggle(protocols[i], code, 0, 1, &sync), 0);
		assert_int_equal(f.calls, 1);
		assert_true(f.is_old);
		assert_int_equal(f.second, protocol_is_compiled(protocols[i]) ? -EAGAIN : 0);
		assert_memory_equal(code->site[0].at, code->site[0].bytes[1], CODE_LENGTH);
		assert_true(trace.visible[2] > f.tsc);
		assert_true(protocols[i] == PROTOCOL_NAIVE || trace.visible[0] > f.tsc);
		/* How long the provoker took is not how far the line was. */
		assert_true(trace.latency[0] <= trace.visible[0] - f.tsc);
	}
}

#define MEASURED 2001

static int by_size(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

static void flush_line(void *line)
{
	_mm_clflush(line);
	_mm_mfence();
}

/* Median latency of the back's store, where its line is flushed in the toggle, before it, or not.
 */
static uint64_t back_latency(bool before, bool in_it)
{
	static uint64_t latency[MEASURED];
	struct cell cell;
	struct code *code = build(&cell, PROTOCOL_WAIT);
	struct sync sync = toggle_sync(&cell);
	uint8_t *back = code->site[0].at + cell.split;

	for (unsigned i = 0; i < MEASURED; i++) {
		struct word_trace trace = { .prepared = in_it ? flush_line : NULL, .arg = back };

		sync.trace = &trace;
		if (before)
			flush_line(back);
		assert_int_equal(toggle(PROTOCOL_WAIT, code, 0, (i + 1) % 3, &sync), 0);
		latency[i] = trace.latency[1];
	}
	qsort(latency, MEASURED, sizeof(*latency), by_size);
	return latency[MEASURED / 2];
}

/* For people: machines differ, and there may be none to whom it matters. */
static void a_flushed_line_is_cold(void **state)
{
	(void)state;
	print_message("# back's store, median ticks: warm %lu, flushed before the toggle %lu, "
		      "right before the first store %lu\n",
		      (unsigned long)back_latency(false, false),
		      (unsigned long)back_latency(true, false),
		      (unsigned long)back_latency(false, true));
}

static uint64_t involuntary(unsigned provokers)
{
	struct cell_result r;
	struct seating seating;
	struct cell cell;

	seat(&cell, &seating, provokers);
	cell.toggles = CELL_TOGGLES_MAX;
	cell.seconds = 0.5;
	assert_int_equal(cell_run(&cell, &how, &r), 0);
	assert_int_equal(r.outcome, OUTCOME_DONE);
	assert_true(r.witness.involuntary != WITNESS_UNKNOWN);
	return r.witness.involuntary;
}

/* 0.5 s of bursts of 0.2 ms with as long a rest; a scheduler's slice is some 4 ms at most. */
static void load_takes_the_cpu_from_executors(void **state)
{
	uint64_t most = 0;

	(void)state;
	/* Others may take so much of that CPU that few slices are left to take. */
	for (unsigned turn = 0; turn < 10 && most < 100; turn++)
		most = involuntary(1u << PROVOKER_LOAD);
	assert_true(most >= 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_takes_the_cpu_from_executors),
		cmocka_unit_test(every_provoker_lets_its_cell_end),
		cmocka_unit_test(the_patcher_provokes_before_each_toggle),
		cmocka_unit_test(provokers_act_right_before_the_first_store),
		cmocka_unit_test(a_flushed_line_is_cold),
		cmocka_unit_test(the_patcher_rewrites_the_extra_sites),
		cmocka_unit_test(the_executors_provoke_after_each_round),
	};

	return open_place() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
