/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/arm.h"
#include "calibrate/bound.h"

#define RECORDS	   64
#define COLD	   (1u << PROVOKER_COLD_BACK)
#define CHAIN	   (1u << PROVOKER_CHAIN)
#define BOTH_SIDES ((1 + CONFIDENCE) / 2)

struct stage {
	struct cell_record record[RECORDS];
	size_t count;
	struct arms arms;
};

static int new_stage(void **state)
{
	*state = calloc(1, sizeof(struct stage));
	return *state == NULL;
}

static int end_stage(void **state)
{
	free(*state);
	return 0;
}

static struct cell_record *add(struct stage *s, unsigned provokers, uint64_t toggles,
			       uint64_t tears)
{
	struct cell_record *r = &s->record[s->count++];

	assert_true(s->count <= RECORDS);
	*r = (struct cell_record){ .stage = "provoke" };
	cell_defaults(&r->cell);
	r->cell.provokers = provokers;
	r->result.toggles = toggles;
	r->result.tears[TEAR_OLD_FRONT] = tears;
	return r;
}

static const struct arms *count(struct stage *s)
{
	memset(&s->arms, 0xa5, sizeof(s->arms));
	arms_count(&s->arms, s->record, s->count);
	return &s->arms;
}

static void assert_close(double value, double expected)
{
	if (fabs(value - expected) > 1e-9 * expected)
		fail_msg("%.12g is not %.12g", value, expected);
}

static void no_records_are_no_arms(void **state)
{
	unsigned index[3];

	assert_int_equal(count(*state)->count, 0);
	assert_int_equal(arms_worst(count(*state), index, 3), 0);
}

static void records_of_an_arm_are_summed_up(void **state)
{
	struct stage *s = *state;
	const struct arms *a;

	add(s, 0, 1000, 1);
	add(s, COLD, 2000, 8)->result.tears[TEAR_NEW_FRONT] = 4;
	add(s, 0, 3000, 1);
	add(s, COLD, 2000, 3)->result.tears[TEAR_OTHER] = 1;
	a = count(s);
	assert_int_equal(a->count, 2);
	assert_int_equal(a->arm[0].provokers, 0);
	assert_int_equal(a->arm[0].toggles, 4000);
	assert_int_equal(a->arm[0].tears, 2);
	assert_int_equal(a->arm[1].provokers, COLD);
	assert_int_equal(a->arm[1].toggles, 4000);
	assert_int_equal(a->arm[1].tears, 16);
	assert_true(a->arm[1].rate == 0.004);
	assert_true(a->arm[1].ratio == 8);
	assert_true(a->arm[1].lower == bound_lower(16, 4000, BOTH_SIDES));
	assert_true(a->arm[1].upper == bound_upper(16, 4000, BOTH_SIDES));
}

static void other_stages_are_no_arms(void **state)
{
	static const char *const stages[] = { "proof", "window", "bracket", "campaign", "stress" };
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		strcpy(add(s, COLD, 1000, 5)->stage, stages[i]);
	assert_int_equal(count(s)->count, 0);
}

static void provokers_rhythm_and_loop_make_an_arm(void **state)
{
	struct stage *s = *state;

	add(s, 0, 1, 0);
	add(s, COLD, 1, 0);
	add(s, COLD | CHAIN, 1, 0);
	add(s, 0, 1, 0)->cell.rest = 500;
	add(s, 0, 1, 0)->cell.loop = 64;
	/* What is varied within an arm. */
	add(s, COLD, 1, 0)->cell.split = 1;
	add(s, COLD, 1, 0)->cell.crossing = CROSSING_PAGE;
	add(s, COLD, 1, 0)->cell.pair = PAIR_WORD;
	add(s, COLD, 1, 0)->cell.seed = 99;
	assert_int_equal(count(s)->count, 5);
	assert_int_equal(s->arms.arm[1].toggles, 5);
}

/* It was run again, so its toggles would count twice; its tears are tears. */
static void a_noisy_cell_counts_for_its_tears_only(void **state)
{
	struct stage *s = *state;

	add(s, COLD, 1000, 1)->noisy = true;
	add(s, COLD, 1000, 0);
	assert_int_equal(count(s)->arm[0].toggles, 1000);
	assert_int_equal(s->arms.arm[0].tears, 1);
}

static void a_full_list_takes_no_more(void **state)
{
	struct stage *s = *state;

	for (unsigned i = 0; i <= ARMS_MAX; i++)
		add(s, 0, 10 + i, 0)->cell.loop = i;
	add(s, 0, 1000, 7);
	assert_int_equal(count(s)->count, ARMS_MAX);
	assert_null(arm_of(&s->arms, &s->record[ARMS_MAX].cell));
	assert_int_equal(s->arms.arm[ARMS_MAX - 1].toggles, 10 + ARMS_MAX - 1);
	/* Those that it has still count. */
	assert_int_equal(s->arms.arm[0].toggles, 1010);
	assert_ptr_equal(arm_of(&s->arms, &s->record[3].cell), &s->arms.arm[3]);
}

/* Shares of a half, a quarter, an eleventh and two thirds; added up as fractions elsewhere. */
static void the_comparison_is_exact(void **state)
{
	static const struct {
		uint64_t toggles[2], tears[2];
		double p;
	} known[] = {
		{ { 1000, 1000 }, { 2, 10 }, 0.019287109375 },
		{ { 3000, 1000 }, { 0, 3 }, 0.015625 },
		{ { 10000, 1000 }, { 4, 5 }, 0.00057155254340203263 },
		{ { 1000, 2000 }, { 3, 1 }, 0.98765432098765427 },
		{ { 1000, 1000 }, { 5, 0 }, 1 },
		{ { 0, 1000 }, { 0, 5 }, 1 },
		{ { 1000, 0 }, { 1, 5 }, 1 },
	};
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		s->count = 0;
		add(s, 0, known[i].toggles[0], known[i].tears[0]);
		add(s, COLD, known[i].toggles[1], known[i].tears[1]);
		assert_close(count(s)->arm[1].p, known[i].p);
	}
}

static void nothing_seen_is_no_ratio(void **state)
{
	struct stage *s = *state;

	add(s, 0, 1000, 0);
	add(s, COLD, 1000, 5);
	assert_true(count(s)->arm[1].ratio < 0);
	assert_true(s->arms.arm[0].rate == 0);
	assert_true(s->arms.arm[0].lower == 0);
	assert_true(s->arms.arm[0].upper == bound_upper(0, 1000, BOTH_SIDES));
}

static void none_comes_first_then_the_worst(void **state)
{
	struct stage *s = *state;
	unsigned index[4] = { 9, 9, 9, 9 };

	add(s, 0, 1000, 10);
	add(s, COLD, 1000, 100);
	add(s, CHAIN, 1000, 300);
	add(s, COLD | CHAIN, 1000, 200);
	assert_int_equal(arms_worst(count(s), index, 4), 4);
	assert_int_equal(index[0], 0);
	assert_int_equal(index[1], 2);
	assert_int_equal(index[2], 3);
	assert_int_equal(index[3], 1);
}

static void no_more_than_there_is_room_for(void **state)
{
	for (unsigned room = 0; room <= 3; room++) {
		struct stage *s = *state;
		unsigned index[4] = { 9, 9, 9, 9 };

		s->count = 0;
		add(s, 0, 1000, 10);
		for (unsigned i = 0; i < 4; i++)
			add(s, 1u << i, 1000, 200 + i);
		assert_int_equal(arms_worst(count(s), index, room), room);
		assert_int_equal(index[room], 9);
		for (unsigned i = 1; i < room; i++)
			assert_int_equal(index[i], 5 - i);
	}
}

static void what_is_no_worse_is_left_out(void **state)
{
	struct stage *s = *state;
	unsigned index[3];

	add(s, 0, 1000, 100);
	add(s, COLD, 1000, 110);
	add(s, CHAIN, 1000, 1);
	assert_int_equal(arms_worst(count(s), index, 3), 1);
	assert_int_equal(index[0], 0);
}

/*
 * Six tears to none have p = 1/64: enough for one arm, too little for the best of
 * four. Eight have 1/256, which is enough there.
 */
static void the_best_of_many_has_to_be_better(void **state)
{
	struct stage *s = *state;
	unsigned index[3];

	add(s, 0, 1000, 0);
	add(s, COLD, 1000, 6);
	assert_int_equal(arms_worst(count(s), index, 3), 2);
	for (unsigned i = 0; i < 3; i++)
		add(s, 0, 1000, 0)->cell.loop = 1 + i;
	assert_int_equal(arms_worst(count(s), index, 3), 1);
	s->record[1].result.tears[TEAR_OLD_FRONT] = 8;
	assert_int_equal(arms_worst(count(s), index, 3), 2);
	assert_int_equal(index[1], 1);
}

static void a_cell_can_be_run_as_an_arm(void **state)
{
	const struct arm arm = { .provokers = COLD | CHAIN, .loop = 64, .rest = 500 };
	struct arms arms = { 0 };
	struct cell cell, before;

	(void)state;
	cell_defaults(&cell);
	before = cell;
	arm_to_cell(&arm, &cell);
	assert_int_equal(cell.provokers, COLD | CHAIN);
	assert_int_equal(cell.loop, 64);
	assert_int_equal(cell.rest, 500);
	assert_int_equal(cell.split, before.split);
	assert_int_equal(cell.first_wait, before.first_wait);
	assert_int_equal(cell.stretch, before.stretch);
	assert_int_equal(arm_of(&arms, &cell)->provokers, arm.provokers);
	assert_int_equal(arms.arm[0].loop, arm.loop);
	assert_int_equal(arms.arm[0].rest, arm.rest);
	assert_int_equal(arms.count, 1);
}

static void arms_have_names(void **state)
{
	const struct arm none = { .rest = 2000 };
	const struct arm all = { .provokers = PROVOKERS_ALL, .loop = 4096, .rest = UINT64_MAX };
	const struct arm two = { .provokers = COLD | CHAIN, .loop = 64, .rest = 500 };
	char name[PROVOKERS_MAX + 64], cut[12];

	(void)state;
	assert_string_equal(arm_name(&none, name, sizeof(name)), "none rest 2000 loop 0");
	assert_string_equal(arm_name(&two, name, sizeof(name)), "cold-back+chain rest 500 loop 64");
	assert_non_null(
		strstr(arm_name(&all, name, sizeof(name)), " rest 18446744073709551615 loop 4096"));
	assert_string_equal(arm_name(&two, cut, sizeof(cut)), "cold-back+c");
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, new_stage, end_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(no_records_are_no_arms),
		ON_STAGE(records_of_an_arm_are_summed_up),
		ON_STAGE(other_stages_are_no_arms),
		ON_STAGE(provokers_rhythm_and_loop_make_an_arm),
		ON_STAGE(a_noisy_cell_counts_for_its_tears_only),
		ON_STAGE(a_full_list_takes_no_more),
		ON_STAGE(the_comparison_is_exact),
		ON_STAGE(nothing_seen_is_no_ratio),
		ON_STAGE(none_comes_first_then_the_worst),
		ON_STAGE(no_more_than_there_is_room_for),
		ON_STAGE(what_is_no_worse_is_left_out),
		ON_STAGE(the_best_of_many_has_to_be_better),
		cmocka_unit_test(a_cell_can_be_run_as_an_arm),
		cmocka_unit_test(arms_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
