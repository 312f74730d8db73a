/* SPDX-License-Identifier: MIT */
/*
 * Provoke: which provokers, rhythms and loops raise the rate, measured in turn at
 * waits so short that there is something to count.
 */
#include <stdio.h>

#include "calibrate/search_state.h"
#include "stress/provoker.h"

#define PROVOKE_WAIT 200  /* ticks, both; not stretched */
#define ROUNDS	     4	  /* over all arms, at most; splits 4, 3, 2, 3, line and page */
#define PAIR_SHARE   0.25 /* of the stage, for the two worst together */

/* Rhythms and loops beside the default ones. */
static const struct arm others[] = {
	{ .rest = 500 },
	{ .rest = 8000 },
	{ .rest = 2000, .loop = 64 },
	{ .rest = 2000, .loop = 512 },
};

/* Can it be done at the seat that the stage uses? */
static bool is_possible(const struct search *s, unsigned provokers)
{
	struct cell cell;
	struct seating seating;
	char reason[160];

	search_cell(s, &cell, &s->plan->seat[0], 0);
	cell.provokers = provokers;
	return placement_seat(s->session->topology, cell.placement, cell.executors, &seating,
			      reason, sizeof(reason)) == 0 &&
	       provokers_possible(&cell, s->session->topology, &seating, reason, sizeof(reason)) ==
		       0;
}

static void add_arm(struct arms *arms, unsigned provokers, unsigned loop, uint64_t rest)
{
	struct cell cell;

	cell_defaults(&cell);
	cell.provokers = provokers;
	cell.loop = loop;
	if (rest)
		cell.rest = rest;
	arm_of(arms, &cell);
}

static void list_arms(const struct search *s, struct arms *arms)
{
	add_arm(arms, 0, 0, 0);
	for (unsigned p = 0; p < PROVOKER_COUNT; p++)
		if (is_possible(s, 1u << p))
			add_arm(arms, 1u << p, 0, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		add_arm(arms, 0, others[i].loop, others[i].rest);
}

static int run_arm(struct search *s, const struct arm *arm, unsigned turn, enum crossing crossing,
		   double seconds)
{
	static const unsigned splits[ROUNDS] = { 4, 3, 2, 3 };
	const struct cell_record *record;
	struct cell cell;

	search_cell(s, &cell, &s->plan->seat[0], seconds);
	arm_to_cell(arm, &cell);
	cell.crossing = crossing;
	cell.split = splits[turn % ROUNDS];
	cell.pair = search_pair(cell.split, turn);
	cell.first_wait = PROVOKE_WAIT;
	cell.second_wait = PROVOKE_WAIT;
	cell.stretch = 0;
	return search_run_cell(s, "provoke", turn, &cell, &record);
}

/* Of cells that are not too short; 0: there is no time for any. */
static unsigned rounds_in(double seconds, unsigned arms)
{
	double rounds = seconds / (2 * arms) / CELL_SHORT;

	if (rounds >= ROUNDS)
		return ROUNDS;
	return rounds < 1 && rounds * CELL_SHORT >= CELL_MIN ? 1 : (unsigned)rounds;
}

/* In rounds, so that all arms meet the machine in the same moods. */
static int run_arms(struct search *s, const struct arms *arms, double seconds)
{
	unsigned rounds = rounds_in(seconds, arms->count);
	double each = rounds ? seconds / (rounds * 2) / arms->count : 0;
	int ret = 0;

	for (unsigned turn = 0; turn < rounds; turn++) {
		for (unsigned i = 0; i < arms->count && ret == 0; i++)
			ret = run_arm(s, &arms->arm[i], turn, CROSSING_LINE, each);
		for (unsigned i = 0; i < arms->count && ret == 0; i++)
			ret = run_arm(s, &arms->arm[i], turn, CROSSING_PAGE, each);
	}
	return ret;
}

/* The two worst at once; the default where one of them has no opinion. */
static struct arm both(const struct arm *a, const struct arm *b, const struct arm *none)
{
	return (struct arm){
		.provokers = a->provokers | b->provokers,
		.loop = a->loop != none->loop ? a->loop : b->loop,
		.rest = a->rest != none->rest ? a->rest : b->rest,
	};
}

static int run_both(struct search *s, double seconds)
{
	struct arms seen, pair = { .count = 2 };
	unsigned worst[3];

	arms_count(&seen, s->session->done, s->session->count);
	if (arms_worst(&seen, worst, 3) < 3)
		return 0;
	pair.arm[0] = seen.arm[0];
	pair.arm[1] = both(&seen.arm[worst[1]], &seen.arm[worst[2]], &seen.arm[0]);
	if (!is_possible(s, pair.arm[1].provokers))
		return 0;
	return run_arms(s, &pair, seconds);
}

static void choose_arms(struct search *s)
{
	struct arms seen;
	unsigned worst[ARMS_CAMPAIGN];

	arms_count(&seen, s->session->done, s->session->count);
	s->arms = arms_worst(&seen, worst, ARMS_CAMPAIGN);
	for (unsigned i = 0; i < s->arms; i++)
		s->arm[i] = seen.arm[worst[i]];
	/* Nothing was provoked, so all is run without anything. */
	if (s->arms == 0) {
		add_arm(&seen, 0, 0, 0);
		s->arm[s->arms++] = seen.arm[0];
	}
}

int stage_provoke(struct search *s)
{
	double seconds = s->plan->budget * s->plan->provoke;
	struct arms arms = { 0 };
	int ret;

	progress_stage(&s->session->progress, "provoke");
	list_arms(s, &arms);
	ret = run_arms(s, &arms, seconds * (1 - PAIR_SHARE));
	if (ret == 0)
		ret = run_both(s, seconds * PAIR_SHARE);
	choose_arms(s);
	return ret;
}
