/* SPDX-License-Identifier: MIT */
/*
 * What a session does with cells that were disturbed, on a machine made up here
 * in place of stress/run.c.
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

#include "calibrate/session.h"
#include "calibrate/tests/session_place.h"
#include "stress/witness.h"

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
	struct step step[RUNS_MAX];
	unsigned runs;
	struct session session;
	volatile sig_atomic_t stop;
	char path[SESSION_PATH];
	int fd;
};

static struct machine *here; /* for the stand-in of stress/run.c */

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	const struct step *step = &here->step[here->runs++];

	(void)options;
	assert_true(here->runs <= RUNS_MAX);
	*result = (struct cell_result){ .outcome = step->outcome, .toggles = 1000, .seconds = 1 };
	result->executions = 3000 + cell->seed % 1000;
	result->seating = (struct seating){ .placement = cell->placement, .executors = 1 };
	result->seating.executor[0] = 1;
	result->tears[TEAR_NEW_FRONT] = step->tears;
	result->signal = step->outcome == OUTCOME_CRASH ? 11 : 0;
	witness_clear(&result->witness);
	result->witness.steal = step->noisy ? 0.071 : 0.001;
	here->stop |= step->stops;
	if (step->spends_all)
		here->session.budget = 0;
	return step->error;
}

static void start(struct machine *m)
{
	session_start(&m->session, m->path, &m->stop);
	m->stop = 0;
	m->runs = 0;
}

static void restart(struct machine *m)
{
	session_free(&m->session);
	start(m);
}

static int new_machine(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	*state = here = m;
	m->fd = session_file(m->path);
	start(m);
	return 0;
}

static int end_machine(void **state)
{
	struct machine *m = *state;

	session_free(&m->session);
	close(m->fd);
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

	return session_run(&m->session, "campaign", 0, &cell, record);
}

static const struct cell_record *must_run(struct machine *m, uint64_t seed)
{
	const struct cell_record *record = NULL;

	assert_int_equal(run(m, seed, &record), 0);
	assert_ptr_equal(record, &m->session.done[m->session.count - 1]);
	return record;
}

static struct journal_data journalled(const struct machine *m)
{
	struct journal_data data = { 0 };

	assert_int_equal(journal_read(m->path, &data), 0);
	assert_int_equal(data.skipped, 0);
	return data;
}

static void a_quiet_cell_runs_once(void **state)
{
	struct machine *m = *state;

	assert_false(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->session.tries, 1);
	assert_int_equal(m->session.noise.cells, 1);
	assert_int_equal(m->session.noise.noisy, 0);
}

static void noisy_twice_then_quiet(void **state)
{
	struct machine *m = *state;
	const struct cell_record *last, *done;
	char key[200];

	m->step[0].noisy = m->step[1].noisy = true;
	last = must_run(m, 1);
	done = m->session.done;
	assert_false(last->noisy);
	assert_int_equal(m->runs, 3);
	assert_int_equal(m->session.tries, 3);
	assert_int_equal(m->session.count, 3);
	assert_true(done[0].noisy && done[1].noisy);
	assert_int_equal(done[0].cell.seed, 1);
	assert_true(done[1].cell.seed != done[0].cell.seed);
	assert_true(done[2].cell.seed != done[0].cell.seed);
	assert_true(done[2].cell.seed != done[1].cell.seed);
	snprintf(key, sizeof(key), "%s again 1", done[0].key);
	assert_string_equal(done[1].key, key);
	snprintf(key, sizeof(key), "%s again 2", done[0].key);
	assert_string_equal(done[2].key, key);
}

static void every_try_is_journalled(void **state)
{
	struct machine *m = *state;
	struct journal_data data;

	m->step[0].noisy = m->step[1].noisy = true;
	must_run(m, 1);
	data = journalled(m);
	assert_int_equal(data.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(data.records[i].key, m->session.done[i].key);
		assert_int_equal(data.records[i].noisy, i < 2);
	}
	journal_free(&data);
}

static void always_noisy_stays_noisy(void **state)
{
	struct machine *m = *state;

	for (unsigned i = 0; i < RUNS_MAX; i++)
		m->step[i].noisy = true;
	assert_true(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1 + SESSION_REPEATS);
	assert_true(must_run(m, 2)->noisy);
	assert_int_equal(m->runs, 2 * (1 + SESSION_REPEATS));
	assert_int_equal(m->session.tries, 1 + SESSION_REPEATS);
}

static void the_summary_counts_cells_not_tries(void **state)
{
	struct machine *m = *state;
	char text[NOISE_REASON_MAX + 64];

	m->step[0].noisy = true;
	must_run(m, 1); /* twice */
	assert_int_equal(session_noise_summary(&m->session, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(m->session.noise.noisy, 1);
	must_run(m, 2);
	m->step[3].noisy = m->step[4].noisy = m->step[5].noisy = true;
	must_run(m, 3);
	assert_int_equal(m->session.noise.cells, 3);
	assert_int_equal(m->session.noise.noisy, 2);
	assert_int_equal(session_noise_summary(&m->session, text, sizeof(text)), 1);
	assert_string_equal(text, "1 of 3 cells stayed noisy (steal 7.1 %)");
}

static void a_tear_in_a_noisy_try_is_a_tear(void **state)
{
	struct machine *m = *state;
	struct journal_data data;

	m->step[0] = (struct step){ .noisy = true, .tears = 2 };
	m->step[1] = (struct step){ .noisy = true, .tears = 3 };
	assert_int_equal(cell_result_tears(&must_run(m, 1)->result), 0);
	assert_int_equal(cell_result_tears(&m->session.done[0].result), 2);
	assert_int_equal(cell_result_tears(&m->session.done[1].result), 3);
	data = journalled(m);
	assert_int_equal(cell_result_tears(&data.records[0].result), 2);
	assert_int_equal(cell_result_tears(&data.records[1].result), 3);
	journal_free(&data);
}

static void a_fixed_list_of_cells_is_run_once(void **state)
{
	struct machine *m = *state;

	m->session.once = true;
	m->step[0].noisy = true;
	assert_true(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->session.noise.stayed, 1);
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

static void a_spent_budget_ends_the_repeats(void **state)
{
	struct machine *m = *state;

	m->step[0].noisy = true;
	m->step[1] = (struct step){ .noisy = true, .spends_all = true };
	assert_true(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 2);
	assert_int_equal(m->session.noise.stayed, 1);
}

static void a_stop_ends_the_repeats(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0] = (struct step){ .noisy = true, .stops = true };
	assert_int_equal(run(m, 1, &record), -EINTR);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->session.count, 1);
	assert_true(m->session.done[0].noisy);
}

static void a_repeat_that_cannot_run_is_an_error(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0] = (struct step){ .noisy = true, .tears = 1 };
	m->step[1] = (struct step){ .error = -EAGAIN };
	assert_int_equal(run(m, 1, &record), -EAGAIN);
	assert_int_equal(m->session.count, 1);
	assert_int_equal(cell_result_tears(&m->session.done[0].result), 1);
}

/* --- resuming --- */

#define CELLS 4

static const struct step story[] = {
	{ .noisy = true, .tears = 1 },
	{ .noisy = true },
	{ .tears = 4 },
	{ .outcome = OUTCOME_DONE },
	{ .noisy = true },
	{ .noisy = true, .tears = 2 },
	{ .noisy = true },
	{ .noisy = true },
	{ .outcome = OUTCOME_DONE },
};

#define STORY (sizeof(story) / sizeof(*story))

static void run_story(struct machine *m)
{
	for (unsigned i = 0; i < CELLS; i++)
		must_run(m, 10 * i);
	assert_int_equal(m->session.count, STORY);
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

/* Killed after any record, in the middle of repeats too, it takes the same way. */
static void a_resumed_run_has_the_same_records(void **state)
{
	struct machine *m = *state;
	struct session_noise noise;
	struct journal_data whole, again;
	char *text;

	memcpy(m->step, story, sizeof(story));
	run_story(m);
	noise = m->session.noise;
	whole = journalled(m);
	text = calloc(1, JOURNAL_LINE_MAX);
	assert_true(pread(m->fd, text, JOURNAL_LINE_MAX - 1, 0) > 0);
	for (size_t kept = 0; kept <= STORY; kept++) {
		assert_int_equal(ftruncate(m->fd, end_of_line(text, kept)), 0);
		restart(m);
		memcpy(m->step, story + kept, (STORY - kept) * sizeof(*story));
		run_story(m);
		assert_int_equal(m->runs, STORY - kept);
		assert_memory_equal(&m->session.noise, &noise, sizeof(noise));
		again = journalled(m);
		assert_same(&again, &whole);
		journal_free(&again);
		assert_int_equal(pwrite(m->fd, text, strlen(text), 0), strlen(text));
	}
	journal_free(&whole);
	free(text);
}

static void an_interrupted_repeat_is_run_again(void **state)
{
	const struct cell_record *record;
	struct machine *m = *state;

	m->step[0].noisy = true;
	m->step[1] = (struct step){ .outcome = OUTCOME_INTERRUPTED, .stops = true };
	assert_int_equal(run(m, 1, &record), -EINTR);
	restart(m);
	memset(m->step, 0, sizeof(m->step));
	assert_false(must_run(m, 1)->noisy);
	assert_int_equal(m->runs, 1);
	assert_int_equal(m->session.tries, 2);
}

/* Else the cells that follow would get other seeds than those in the journal. */
static void what_was_left_out_stays_left_out(void **state)
{
	struct machine *m = *state;

	m->step[0] = (struct step){ .noisy = true, .spends_all = true };
	assert_true(must_run(m, 1)->noisy);
	must_run(m, 2);
	restart(m);
	assert_true(must_run(m, 1)->noisy);
	assert_int_equal(m->session.count, 1);
	assert_int_equal(m->runs, 0);
}

static void the_journal_knows_what_was_noisy(void **state)
{
	struct machine *m = *state;
	struct cell_record *known;

	must_run(m, 1);
	m->step[1].noisy = m->step[2].noisy = m->step[3].noisy = true;
	must_run(m, 2);
	restart(m);
	m->step[0].noisy = false;
	known = m->session.known.records;
	/* As if judged by other rules, in both directions. */
	known[1].noisy = false;
	assert_false(must_run(m, 2)->noisy);
	assert_int_equal(m->session.tries, 1);
	known[1].noisy = known[2].noisy = known[3].noisy = true;
	known[3].result.witness.steal = 0;
	assert_true(must_run(m, 2)->noisy);
	assert_int_equal(m->session.tries, 3);
	assert_string_equal(m->session.noise.reason, "as the journal has it");
	assert_int_equal(m->runs, 0);
}

/* What was measured is there, whatever time is left. */
static void known_repeats_cost_no_budget(void **state)
{
	struct machine *m = *state;

	m->step[0].noisy = true;
	must_run(m, 1);
	restart(m);
	m->session.budget = 0;
	assert_false(must_run(m, 1)->noisy);
	assert_int_equal(m->session.tries, 2);
}

static void resumed_tries_are_paid_for(void **state)
{
	struct machine *m = *state;

	m->step[0].noisy = true;
	must_run(m, 1);
	restart(m);
	must_run(m, 1);
	assert_true(m->session.used == 2);
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
	cells[2].stretch = 4;
	cells[3].loop = 4;
	cells[4].split = 4;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(session_run(&m->session, "provoke", 0, &cells[i], &record), 0);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(m->session.done[i].key, m->session.done[j].key);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_quiet_cell_runs_once),
		TEST(noisy_twice_then_quiet),
		TEST(every_try_is_journalled),
		TEST(always_noisy_stays_noisy),
		TEST(the_summary_counts_cells_not_tries),
		TEST(a_tear_in_a_noisy_try_is_a_tear),
		TEST(a_fixed_list_of_cells_is_run_once),
		TEST(a_crash_is_a_finding_not_noise),
		TEST(a_spent_budget_ends_the_repeats),
		TEST(a_stop_ends_the_repeats),
		TEST(a_repeat_that_cannot_run_is_an_error),
		TEST(a_resumed_run_has_the_same_records),
		TEST(an_interrupted_repeat_is_run_again),
		TEST(what_was_left_out_stays_left_out),
		TEST(the_journal_knows_what_was_noisy),
		TEST(known_repeats_cost_no_budget),
		TEST(resumed_tries_are_paid_for),
		TEST(cells_that_differ_have_keys_that_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
