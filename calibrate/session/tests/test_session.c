/* SPDX-License-Identifier: MIT */
/*
 * What a session does with cells that were disturbed, on a machine made up here
 * in place of stress/run/child.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/session/session.h"
#include "calibrate/tests/session_place.h"
#include "stress/tests/synthetic.h"
#include "stress/witness/witness.h"

#define RUNS_MAX 64

/* What comes of each run of a cell. */
struct step {
	bool noisy;
	enum outcome outcome;
	uint64_t tears;
	int error;
	bool spends_all; /* of the budget */
	bool stops;	 /* the user asks to stop meanwhile */
};

struct machine {
	struct session_place place;
	struct step step[RUNS_MAX];
	unsigned runs;
	struct seating seating; /* of each run */
};

static struct machine *here; /* for the stand-in of stress/run/child.c */

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	const struct step *step = &here->step[here->runs++];

	(void)options;
	assert_true(here->runs <= RUNS_MAX);
	*result = (struct cell_result){ .outcome = step->outcome, .toggles = 1000, .seconds = 1 };
	result->executions = 3000 + cell->seed % 1000;
	result->seating = here->seating;
	result->tears[TEAR_NEW_FRONT] = step->tears;
	result->signal = step->outcome == OUTCOME_CRASH ? 11 : 0;
	witness_clear(&result->witness);
	result->witness.steal = step->noisy ? 0.071 : 0.001;
	here->place.stop |= step->stops;
	if (step->spends_all)
		here->place.session.budget = 0;
	return step->error;
}

static void start(struct machine *m)
{
	session_begin(&m->place);
	m->runs = 0;
}

static int new_machine(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	*state = here = m;
	m->seating = (struct seating){ .executors = 1, .executor = { 1 } };
	session_open(&m->place);
	start(m);
	return 0;
}

static int end_machine(void **state)
{
	struct machine *m = *state;

	session_close(&m->place);
	free(m);
	return 0;
}

static struct cell a_cell(uint64_t seed)
{
	struct cell cell;

	cell_defaults(&cell);
	cell.seed = seed;
	return cell;
}

static int run(struct machine *m, uint64_t seed, const struct cell_record **record)
{
	struct cell cell = a_cell(seed);

	return session_run(&m->place.session, "ladder", 0, &cell, record);
}

static const struct cell_record *must_run(struct machine *m, uint64_t seed)
{
	const struct cell_record *record = NULL;

	assert_int_equal(run(m, seed, &record), 0);
	assert_ptr_equal(record, &m->place.session.done[m->place.session.count - 1]);
	return record;
}

static struct journal_data journalled(const struct machine *m)
{
	struct journal_data data = { 0 };

	assert_int_equal(journal_read(m->place.path, &data), 0);
	assert_int_equal(data.skipped, 0);
	return data;
}

static void a_quiet_cell_runs_once(void **state)
{
	struct machine *m = *state;

	assert_false(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->place.session.tries, 1);
	assert_string_equal(m->place.session.noise, "");
}

/* A plan that chose cells by their noise would choose among their tears. */
static void a_noisy_cell_runs_once_and_is_marked(void **state)
{
	struct machine *m = *state;
	const struct cell_record *record;

	m->step[0] = (struct step){ .noisy = true, .tears = 2 };
	record = must_run(m, 1);
	assert_true(record->noisy);
	assert_int_equal(record->cell.seed, 1);
	assert_int_equal(cell_result_tears(&record->result), 2);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->place.session.tries, 1);
	assert_int_equal(m->place.session.count, 1);
	assert_string_equal(m->place.session.noise, "steal 7.1 %");
}

static void every_cell_is_journalled(void **state)
{
	struct machine *m = *state;
	struct journal_data data;

	m->step[0] = (struct step){ .noisy = true, .tears = 2 };
	m->step[1] = (struct step){ .noisy = true, .tears = 3 };
	for (unsigned i = 0; i < 3; i++)
		must_run(m, i);
	data = journalled(m);
	assert_int_equal(data.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(data.records[i].key, m->place.session.done[i].key);
		assert_int_equal(data.records[i].noisy, i < 2);
		assert_int_equal(cell_result_tears(&data.records[i].result), m->step[i].tears);
	}
	journal_free(&data);
}

static void a_crash_is_a_finding_not_noise(void **state)
{
	static const enum outcome outcomes[] = { OUTCOME_CRASH, OUTCOME_KILLED, OUTCOME_HANG };
	struct machine *m = *state;

	for (unsigned i = 0; i < 3; i++) {
		m->step[i] = (struct step){ .noisy = true, .outcome = outcomes[i] };
		assert_false(must_run(m, i)->noisy);
		assert_int_equal(m->runs, i + 1);
	}
}

/* How long a cell may take is the plan's to say; what it has counted is evidence. */
static void a_cell_that_spends_all_counts(void **state)
{
	struct machine *m = *state;

	m->step[0] = (struct step){ .noisy = true, .spends_all = true };
	assert_true(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1);
	assert_true(session_left(&m->place.session) < 0);
}

static void what_was_measured_before_a_stop_is_kept(void **state)
{
	const struct cell_record *record = NULL;
	struct machine *m = *state;
	struct journal_data data;

	m->step[0] = (struct step){ .outcome = OUTCOME_INTERRUPTED, .tears = 1, .stops = true };
	assert_int_equal(run(m, 1, &record), -EINTR);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->place.session.tries, 1);
	assert_int_equal(m->place.session.count, 1);
	assert_ptr_equal(record, &m->place.session.done[0]);
	assert_int_equal(cell_result_tears(&record->result), 1);
	data = journalled(m);
	assert_int_equal(data.count, 1);
	journal_free(&data);
	/* No other cell begins. */
	assert_int_equal(run(m, 2, &record), -EINTR);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->place.session.tries, 0);
	assert_int_equal(m->place.session.count, 1);
}

static void a_cell_that_cannot_run_is_an_error(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0] = (struct step){ .tears = 1 };
	m->step[1] = (struct step){ .error = -EAGAIN };
	must_run(m, 1);
	assert_int_equal(run(m, 2, &record), -EAGAIN);
	assert_int_equal(m->place.session.tries, 0);
	assert_int_equal(m->place.session.count, 1);
	assert_int_equal(cell_result_tears(&m->place.session.done[0].result), 1);
}

/* --- resuming --- */

static const struct step story[] = {
	{ .noisy = true, .tears = 1 },
	{ .tears = 4 },
	{ .outcome = OUTCOME_CRASH, .tears = 2 },
	{ .noisy = true },
};

#define STORY (sizeof(story) / sizeof(*story))

static void run_story(struct machine *m)
{
	for (unsigned i = 0; i < STORY; i++)
		must_run(m, 10 * i);
	assert_int_equal(m->place.session.count, STORY);
}

static off_t end_of_line(const char *text, size_t lines)
{
	const char *at = text;

	while (lines--)
		at = strchr(at, '\n') + 1;
	return at - text;
}

static void assert_same(const struct journal_data *a, const struct journal_data *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->records[i].key, b->records[i].key);
		assert_int_equal(a->records[i].noisy, b->records[i].noisy);
		assert_int_equal(a->records[i].cell.seed, b->records[i].cell.seed);
		assert_int_equal(a->records[i].result.executions, b->records[i].result.executions);
		assert_int_equal(cell_result_tears(&a->records[i].result),
				 cell_result_tears(&b->records[i].result));
	}
}

/* Killed after any line, of a cell that begins or that has ended, it takes the same way. */
static void a_resumed_run_has_the_same_records(void **state)
{
	struct machine *m = *state;
	char noise[NOISE_REASON_MAX];
	struct journal_data whole, again;
	char *text;

	memcpy(m->step, story, sizeof(story));
	run_story(m);
	strcpy(noise, m->place.session.noise);
	whole = journalled(m);
	text = calloc(1, JOURNAL_LINE_MAX);
	assert_true(pread(m->place.fd, text, JOURNAL_LINE_MAX - 1, 0) > 0);
	for (size_t lines = 0; lines <= 2 * STORY; lines++) {
		size_t kept = lines / 2;

		assert_int_equal(ftruncate(m->place.fd, end_of_line(text, lines)), 0);
		again = journalled(m);
		assert_int_equal(json_object_size(again.begun), lines % 2);
		journal_free(&again);
		start(m);
		memcpy(m->step, story + kept, (STORY - kept) * sizeof(*story));
		run_story(m);
		assert_int_equal(m->runs, STORY - kept);
		assert_string_equal(m->place.session.noise, noise);
		again = journalled(m);
		assert_same(&again, &whole);
		assert_int_equal(json_object_size(again.begun), 0);
		journal_free(&again);
		assert_int_equal(pwrite(m->place.fd, text, strlen(text), 0), strlen(text));
	}
	journal_free(&whole);
	free(text);
}

/* Its tears are not lost with it: the resumed run has both. */
static void an_interrupted_cell_has_been_seen(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0] = (struct step){ .outcome = OUTCOME_INTERRUPTED, .stops = true, .tears = 5 };
	assert_int_equal(run(m, 1, &record), -EINTR);
	start(m);
	m->step[0] = (struct step){ .tears = 2 };
	assert_int_equal(must_run(m, 1)->result.tears[TEAR_NEW_FRONT], 2);
	assert_int_equal(m->place.session.count, 2);
	assert_int_equal(m->place.session.done[0].result.outcome, OUTCOME_INTERRUPTED);
	assert_int_equal(m->place.session.done[0].result.tears[TEAR_NEW_FRONT], 5);
	assert_int_equal(must_run(m, 2)->result.tears[TEAR_NEW_FRONT], 0);
	assert_int_equal(m->place.session.count, 3);
}

static void an_interrupted_cell_is_run_again(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0] = (struct step){ .outcome = OUTCOME_INTERRUPTED, .stops = true };
	assert_int_equal(run(m, 1, &record), -EINTR);
	start(m);
	memset(m->step, 0, sizeof(m->step));
	must_run(m, 1);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->place.session.count, 1);
}

static void the_journal_knows_what_was_noisy(void **state)
{
	struct machine *m = *state;
	struct cell_record *known;

	must_run(m, 1);
	m->step[1].noisy = true;
	must_run(m, 2);
	start(m);
	known = m->place.session.known.records;
	/* As if judged by other rules, in both directions. */
	known[0].noisy = true;
	known[1].noisy = false;
	assert_true(must_run(m, 1)->noisy);
	assert_string_equal(m->place.session.noise, "as the journal has it");
	assert_false(must_run(m, 2)->noisy);
	assert_int_equal(m->runs, 0);
}

/* What was measured is there, however little time is left. */
static void known_cells_need_no_time(void **state)
{
	struct machine *m = *state;

	must_run(m, 1);
	start(m);
	m->place.session.budget = 0;
	must_run(m, 1);
	assert_int_equal(m->runs, 0);
	assert_int_equal(m->place.session.tries, 1);
}

static void resumed_cells_are_paid_for(void **state)
{
	struct machine *m = *state;

	must_run(m, 1);
	must_run(m, 2);
	assert_true(m->place.session.used == 0);
	start(m);
	must_run(m, 1);
	must_run(m, 2);
	assert_true(m->place.session.used == 2);
}

/* --- keys --- */

static void cells_that_differ_have_keys_that_differ(void **state)
{
	struct machine *m = *state;
	struct cell cells[5];
	const struct cell_record *record;

	for (unsigned i = 0; i < 5; i++)
		cells[i] = a_cell(1);
	cells[1].provokers = PROVOKERS_ALL;
	cells[2].waits.stretch = 4;
	cells[3].loop = 4;
	cells[4].split = 4;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(session_run(&m->place.session, "ladder", 0, &cells[i], &record),
				 0);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(m->place.session.done[i].key,
						m->place.session.done[j].key);
}

static hwloc_topology_t made_up_cpus(unsigned first)
{
	hwloc_topology_t t = synthetic("pack:1 core:8 pu:1");
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	hwloc_bitmap_set_range(set, first, 7);
	assert_int_equal(hwloc_topology_restrict(t, set, 0), 0);
	hwloc_bitmap_free(set);
	return t;
}

static void seat_cells(struct machine *m, hwloc_topology_t t)
{
	struct cell cell = a_cell(1);
	char reason[160];

	m->place.session.topology = t;
	assert_int_equal(placement_seat(t, cell.placement, cell.executors, 0, &m->seating, reason,
					sizeof(reason)),
			 0);
}

/* What was measured under another cpuset is measured anew. */
static void other_cpus_are_another_cell(void **state)
{
	hwloc_topology_t cpus = made_up_cpus(0), others = made_up_cpus(2);
	struct machine *m = *state;

	seat_cells(m, cpus);
	must_run(m, 1);
	assert_int_equal(m->runs, 1);
	start(m);
	seat_cells(m, cpus);
	must_run(m, 1);
	assert_int_equal(m->runs, 0);
	start(m);
	seat_cells(m, others);
	must_run(m, 1);
	assert_int_equal(m->runs, 1);
	/* Now the journal has both. */
	start(m);
	seat_cells(m, others);
	must_run(m, 1);
	assert_int_equal(m->runs, 0);
	m->place.session.topology = NULL;
	hwloc_topology_destroy(cpus);
	hwloc_topology_destroy(others);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_quiet_cell_runs_once),
		TEST(a_noisy_cell_runs_once_and_is_marked),
		TEST(every_cell_is_journalled),
		TEST(a_crash_is_a_finding_not_noise),
		TEST(a_cell_that_spends_all_counts),
		TEST(what_was_measured_before_a_stop_is_kept),
		TEST(a_cell_that_cannot_run_is_an_error),
		TEST(a_resumed_run_has_the_same_records),
		TEST(an_interrupted_cell_has_been_seen),
		TEST(an_interrupted_cell_is_run_again),
		TEST(the_journal_knows_what_was_noisy),
		TEST(known_cells_need_no_time),
		TEST(resumed_cells_are_paid_for),
		TEST(cells_that_differ_have_keys_that_differ),
		TEST(other_cpus_are_another_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
