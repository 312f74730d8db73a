/* SPDX-License-Identifier: MIT */
/* Calibrations that go on where another one was broken off or killed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/session/tests/climb_machine.h"

#define LINES 2 /* of a cell: it begins, and it ends */

static off_t end_of_line(int fd, size_t lines)
{
	off_t at = 0;
	char c;

	while (lines && pread(fd, &c, 1, at++) == 1)
		lines -= c == '\n';
	return at;
}

/* Killed after any cell, it goes on as if nothing had been, and counts the same. */
static void a_resumed_run_takes_the_same_way(void **state)
{
	static const size_t kept[] = { 1, 2, 5, 6, 40, 150 };
	struct machine *m = *state;
	struct cell_record *whole;
	struct sums sums;
	size_t count;

	m->place.session.budget = 40;
	assert_climb_returns(m, 0);
	whole = m->place.session.done;
	count = m->place.session.count;
	sums = m->sums;
	m->place.session.done = NULL;
	m->place.session.count = 0;
	m->sums = (struct sums){ 0 };
	assert_true(count > 150);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		assert_int_equal(ftruncate(m->place.fd, end_of_line(m->place.fd, LINES * kept[i])),
				 0);
		start_session(m);
		m->place.session.budget = 40 - START_UP * (double)kept[i];
		/* A busy computer may take long over what is known: until the first cell that is
		 * run. */
		m->place.session.begin = seconds_now() + 3600;
		m->plan.budget = 40;
		assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
		assert_int_equal(m->place.session.count, count);
		assert_int_equal(m->runs, count - kept[i]);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(m->place.session.done[k].key, whole[k].key);
		assert_int_equal(m->sums.count, sums.count);
		for (size_t k = 0; k < sums.count; k++)
			assert_memory_equal(&m->sums.sum[k].count, &sums.sum[k].count,
					    sizeof(struct count));
	}
	sums_free(&sums);
	free(whole);
}

/* How many lines of that type the journal has, and where the n-th ends. */
static size_t lines_of(const struct machine *m, const char *type, size_t n, off_t *end)
{
	FILE *file = fopen(m->place.path, "re");
	char *line = NULL, start[64];
	size_t room = 0, count = 0;

	assert_non_null(file);
	snprintf(start, sizeof(start), "{\"type\":\"%s\"", type);
	while (getline(&line, &room, file) >= 0) {
		if (strncmp(line, start, strlen(start)) != 0)
			continue;
		if (++count == n)
			*end = ftello(file);
	}
	free(line);
	fclose(file);
	return count;
}

/* So it does with slices of the gap oracle in between, which are not run again. */
static void gaps_of_a_resumed_run_have_their_turn(void **state)
{
	static const size_t kept[] = { 8, 5, 3, 1 };
	struct machine *m = *state;
	struct cell_record *whole;
	size_t count, gap_runs;
	struct sums sums;
	off_t end = 0;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	assert_climb_returns(m, 0);
	whole = m->place.session.done;
	count = m->place.session.count;
	gap_runs = m->gap_runs;
	sums = m->sums;
	m->place.session.done = NULL;
	m->place.session.count = 0;
	m->sums = (struct sums){ 0 };
	assert_true(gap_runs > 8);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		size_t slices = lines_of(m, "gaps", kept[i], &end);

		assert_int_equal(ftruncate(m->place.fd, end), 0);
		slices = kept[i] + lines_of(m, "cell", 0, &end);
		start_session(m);
		m->place.session.budget = 40 - START_UP * (double)slices;
		m->place.session.begin = seconds_now() + 3600;
		m->plan.budget = 40;
		assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
		assert_int_equal(m->gap_runs, gap_runs - kept[i]);
		assert_int_equal(m->place.session.count, count);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(m->place.session.done[k].key, whole[k].key);
		assert_int_equal(m->sums.count, sums.count);
		for (size_t k = 0; k < sums.count; k++)
			assert_memory_equal(&m->sums.sum[k].count, &sums.sum[k].count,
					    sizeof(struct count));
	}
	sums_free(&sums);
	free(whole);
}

static void keep_whole(struct machine *m, struct cell_record **whole, size_t *count)
{
	*whole = m->place.session.done;
	*count = m->place.session.count;
	m->place.session.done = NULL;
	m->place.session.count = 0;
}

static void assert_same_way(const struct machine *m, const struct cell_record *whole, size_t count)
{
	assert_int_equal(m->place.session.count, count);
	for (size_t k = 0; k < count; k++)
		assert_string_equal(m->place.session.done[k].key, whole[k].key);
}

static uint64_t gap_slices_counted(const struct machine *m)
{
	uint64_t slices = 0;

	for (size_t i = 0; i < m->sums.count; i++)
		if (m->sums.sum[i].kind == SUM_GAP && m->sums.sum[i].rung.first == 32000)
			slices += m->sums.sum[i].count.slices;
	return slices;
}

/* A run of other draws was killed as well. Its gaps are counted, and no turn is theirs. */
static void gaps_of_another_run_have_no_turn(void **state)
{
	struct machine *m = *state;
	double slice = m->plan.slice;
	struct cell_record *whole;
	size_t count, gap_runs, others;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	assert_climb_returns(m, 0);
	keep_whole(m, &whole, &count);
	gap_runs = m->gap_runs;
	assert_true(gap_runs > 8);
	assert_int_equal(gap_slices_counted(m), gap_runs);

	assert_int_equal(ftruncate(m->place.fd, 0), 0);
	start_session(m);
	m->place.session.budget = 20;
	m->place.session.seed = 2;
	m->plan.slice = slice * 1.25;
	assert_climb_returns(m, 0);
	others = m->gap_runs;
	assert_true(others >= 3);

	start_session(m);
	m->place.session.budget = 40;
	m->plan.slice = slice;
	assert_climb_returns(m, 0);
	assert_same_way(m, whole, count);
	assert_int_equal(m->gap_runs, gap_runs);
	assert_int_equal(gap_slices_counted(m), gap_runs + others);
	free(whole);
}

/* A run of the gap oracle that failed has no line. It is tried again, and no other one. */
static void gaps_that_failed_have_their_turn(void **state)
{
	struct machine *m = *state;
	struct journal_data data = { 0 };
	struct cell_record *whole;
	size_t count, gap_runs, kept = 4, slices;
	off_t end = 0;
	const json_t *a, *b;
	size_t i, k;

	m->place.session.budget = 40;
	m->plan.fetch_gaps = 0.3;
	m->gap_fails_at = 2;
	assert_climb_returns(m, 0);
	keep_whole(m, &whole, &count);
	gap_runs = m->gap_runs;

	/* Soon after it: what is known takes time of the clock until a slice is run. */
	lines_of(m, "gaps", kept, &end);
	assert_int_equal(ftruncate(m->place.fd, end), 0);
	slices = kept + lines_of(m, "cell", 0, &end);
	start_session(m);
	m->gap_fails_at = NO_FAILURE;
	m->place.session.budget = 40 - START_UP * (double)slices;
	m->place.session.begin = seconds_now() + 3600;
	m->plan.budget = 40;
	assert_int_equal(climb(&m->place.session, &m->plan, &m->sums, &m->estimate), 0);
	assert_same_way(m, whole, count);
	assert_int_equal(m->gap_runs, gap_runs - kept);
	assert_int_equal(gap_slices_counted(m), gap_runs);

	assert_int_equal(journal_read(m->place.path, &data), 0);
	json_array_foreach(data.others, i, a)
	{
		if (strcmp(json_text_of(a, "type"), "gaps") != 0)
			continue;
		json_array_foreach(data.others, k, b)
			assert_true(k == i || strcmp(json_text_of(a, "command"),
						     json_text_of(b, "command")) != 0);
	}
	journal_free(&data);
	free(whole);
}

static uint64_t tears_counted(const struct machine *m)
{
	uint64_t tears = 0;

	for (size_t i = 0; i < m->sums.count; i++)
		tears += m->sums.sum[i].count.tears;
	return tears;
}

/* What an interrupted slice has seen tear is in the sums of the run that goes on, besides its own.
 */
static void what_was_seen_before_a_stop_stays_counted(void **state)
{
	const struct cell_record *cut;
	struct machine *m = *state;
	uint64_t seen = 0;

	m->fade = 1e9;
	m->stops_at = 20;
	assert_climb_returns(m, -EINTR);
	cut = &m->place.session.done[m->place.session.count - 1];
	assert_int_equal(cut->result.outcome, OUTCOME_INTERRUPTED);
	assert_true(cut->result.torn > 0);
	start_session(m);
	m->stops_at = NO_FAILURE;
	assert_climb_returns(m, 0);
	for (size_t i = 0; i < m->place.session.count; i++)
		if (sum_kind_of(&m->place.session.done[i].cell) >= 0)
			seen += m->place.session.done[i].result.torn;
	assert_true(seen > 0);
	assert_int_equal(tears_counted(m), seen);
}

/* They are the resumed run's, also where their turn does not come. */
static void gaps_of_a_resumed_run_are_counted(void **state)
{
	const struct sum sum = { .kind = SUM_GAP,
				 .rung = { .first = 400 },
				 .crossing = CROSSING_LINE,
				 .placement = PLACEMENT_SAME_L3,
				 .executors = 1,
				 .count = { .slices = 1, .toggles = 1000, .tears = 7 } };
	struct machine *m = *state;
	struct sums sums = { 0 };
	json_t *body;

	assert_int_equal(sums_add(&sums, &sum), 0);
	body = json_pack("{s:{s:f}, s:o}", "cell", "seconds", 50.0, "sums", sums_to_json(&sums));
	assert_int_equal(journal_write_line(m->place.session.journal, "gaps", body), 0);
	json_decref(body);
	sums_free(&sums);
	start_session(m);
	assert_climb_returns(m, 0);
	assert_non_null(sums_find(&m->sums, &sum));
	assert_int_equal(sums_find(&m->sums, &sum)->count.tears, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ON_MACHINE(a_resumed_run_takes_the_same_way),
		TEST_ON_MACHINE(what_was_seen_before_a_stop_stays_counted),
		TEST_ON_MACHINE(gaps_of_a_resumed_run_have_their_turn),
		TEST_ON_MACHINE(gaps_of_another_run_have_no_turn),
		TEST_ON_MACHINE(gaps_that_failed_have_their_turn),
		TEST_ON_MACHINE(gaps_of_a_resumed_run_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
