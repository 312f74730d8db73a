/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "results/figures/figure.h"
#include "results/tests/sample.h"

#define RECORDS_MAX 4096

static const char paper[] = "The paper: 25 waits from 0 to 2400, S = 1 to 4, N = 2 to 6 executors, "
			    "5 runs of each, 5e7 toggles a run.\n";

struct place {
	struct cell_record *records;
	struct journal_data data;
	char text[CAPTION_ROOM];
};

static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	p->records = calloc(RECORDS_MAX, sizeof(*p->records));
	p->data.records = p->records;
	p->data.have_identity = 1;
	p->data.identity = sample_identity();
	*state = p;
	return p->records ? 0 : -1;
}

static int free_place(void **state)
{
	struct place *p = *state;

	free(p->records);
	free(p);
	return 0;
}

static struct cell_record *add(struct place *p, uint64_t wait, unsigned split, unsigned executors)
{
	struct cell_record *r = &p->records[p->data.count++];

	assert_true(p->data.count <= RECORDS_MAX);
	*r = sample_record(0);
	r->cell.oracle = ORACLE_CRASH;
	r->cell.pair = PAIR_CALL_NOP;
	r->cell.placement = PLACEMENT_SPREAD;
	r->cell.waits.first = r->cell.waits.second = wait;
	r->cell.split = split;
	r->cell.executors = executors;
	r->cell.toggles = 50000000;
	r->result.outcome = split % 2 ? OUTCOME_DONE : OUTCOME_CRASH;
	return r;
}

static void add_grid(struct place *p)
{
	for (uint64_t wait = 0; wait <= 2400; wait += 100)
		for (unsigned split = 1; split <= 4; split++)
			for (unsigned n = 2; n <= 6; n++)
				for (unsigned i = 0; i < 5; i++)
					add(p, wait, split, n);
}

/* The caption without the line on the paper, which is always the same. */
static const char *caption(struct place *p)
{
	assert_int_equal(caption_paper(&p->data, p->text, sizeof(p->text)), 0);
	assert_int_equal(strncmp(p->text, paper, strlen(paper)), 0);
	return p->text + strlen(paper);
}

static bool says(struct place *p, const char *words)
{
	return strstr(caption(p), words);
}

static void test_the_papers_own_grid(void **state)
{
	struct place *p = *state;

	add_grid(p);
	assert_string_equal(caption(p),
			    "Here: 2 CPUs; spread; N = 2 to 6; waits 0 to 2400 by 100; S = 1 to 4; "
			    "runs of each: 5; 5e7 toggles a run; a rest of 2000 ticks; pair "
			    "call-nop; across a line; stretch 0; not provoked.");
}

static void test_what_is_missing_is_told(void **state)
{
	struct place *p = *state;

	add(p, 0, 1, 2);
	add(p, 0, 1, 2);
	add(p, 300, 3, 2);
	assert_true(says(p, "; runs of each: 1, 2;"));
	assert_true(says(p, "; waits 0, 300;"));
	assert_true(says(p, "; S = 1, 3;"));
}

static void test_a_hole_in_the_waits(void **state)
{
	struct place *p = *state;

	add_grid(p);
	for (size_t i = 0; i < p->data.count; i++)
		if (p->records[i].cell.waits.first == 1200)
			p->records[i].cell.oracle = ORACLE_COUNT;
	assert_true(says(p, "; waits 0 to 1100 by 100, 1300 to 2400 by 100;"));
}

static void test_scaled_down_runs(void **state)
{
	struct place *p = *state;

	add_grid(p);
	p->records[0].cell.toggles = 20000;
	p->records[1].cell.rest = 0;
	assert_true(says(p, "; 20000, 5e7 toggles a run;"));
	assert_true(says(p, "; a rest of 0, 2000 ticks;"));
}

static void test_placements(void **state)
{
	struct place *p = *state;

	add(p, 0, 1, 1);
	add(p, 0, 1, 2)->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	add(p, 0, 1, 3)->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	add(p, 0, 1, 6)->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	assert_true(says(p, "; spread, oversubscribed; N = 1 to 3, 6;"));
	add(p, 0, 1, 700)->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	assert_true(says(p, "; N = 1 to 3, 6, 700;"));
}

static void test_other_sites(void **state)
{
	struct place *p = *state;

	add(p, 0, 1, 2);
	assert_true(says(p, "; across a line; stretch 0; not provoked."));
	add(p, 0, 1, 2)->cell.crossing = CROSSING_PAGE;
	assert_true(says(p, "; across a line, page;"));
	add(p, 0, 1, 2)->cell.waits.stretch = 4;
	assert_true(says(p, "; stretch 0, 4;"));
	add(p, 0, 1, 2)->cell.provokers = 1;
	assert_true(says(p, "; not provoked, provoked."));
	add(p, 0, 1, 2)->cell.pair = PAIR_JMP_NOP;
	assert_true(says(p, "; pair call-nop, jmp-nop;"));
}

/* As many as the figure has: no others, and none without an answer. */
static void test_only_what_the_figure_counts(void **state)
{
	struct place *p = *state;

	add(p, 0, 1, 2)->result.outcome = OUTCOME_HANG;
	add(p, 0, 1, 2)->cell.oracle = ORACLE_COUNT;
	add(p, 0, 1, 2)->cell.waits.second = 100;
	assert_int_equal(caption_paper(&p->data, p->text, sizeof(p->text)), -ENODATA);
	assert_string_equal(p->text, "");
	add(p, 0, 1, 2);
	assert_true(says(p, "; runs of each: 1;"));
}

static void test_little_room(void **state)
{
	struct place *p = *state;
	char text[40];

	add(p, 0, 1, 2);
	memset(text, 'x', sizeof(text));
	assert_int_equal(caption_paper(&p->data, text, 20), 0);
	assert_int_equal(strlen(text), 19);
	assert_int_equal(text[20], 'x');
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, free_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_the_papers_own_grid),
		IN_PLACE(test_what_is_missing_is_told),
		IN_PLACE(test_a_hole_in_the_waits),
		IN_PLACE(test_scaled_down_runs),
		IN_PLACE(test_placements),
		IN_PLACE(test_other_sites),
		IN_PLACE(test_only_what_the_figure_counts),
		IN_PLACE(test_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
