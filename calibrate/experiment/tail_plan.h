/* SPDX-License-Identifier: MIT */
/*
 * The experiment on what the slow tail is: cells that differ in one thing each,
 * run in turn, so that what drifts on the machine hits all of them alike.
 */
#ifndef CALIBRATE_EXPERIMENT_TAIL_PLAN_H
#define CALIBRATE_EXPERIMENT_TAIL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/ladder/plan.h"
#include "calibrate/statistics/bound.h"
#include "results/journal/journal.h"

#define TAIL_BUDGET   1200.0 /* seconds */
#define TAIL_SLICE    2.0    /* seconds of a cell */
#define TAIL_ARMS_MAX 32

/*
 * Half a round trip of a cache line between the two CPUs, ticks, that tells near
 * ones from far ones: where a hypervisor moves its CPUs, a cell finds them
 * either way.
 */
#define TAIL_FAR 300

struct tail_arm {
	const char *name;
	bool gaps; /* measured by the gap oracle: no INT3, no waits */
	enum protocol protocol;
	enum crossing crossing;
	uint64_t wait; /* both */
	uint64_t stretch;
	unsigned provokers;
	unsigned weight; /* share of the time: a slow toggle needs more for the same exposure */
};

/* The arms that are left once those that cannot run here are taken out. */
struct tail_plan {
	struct tail_arm arm[TAIL_ARMS_MAX];
	unsigned arms;
	double slice; /* seconds of a cell */
	bool fifo;    /* all threads have a real-time priority */
};

/*
 * tail_plan_make - all arms, with cells so short that each arm gets its turns
 * within the budget. With fifo the load provoker is left out: threads of one real-time priority
 * do not take turns, so it would end the cell.
 */
void tail_plan_make(struct tail_plan *plan, double budget, bool fifo);

/*
 * tail_next - whose turn it is after so many cells of each arm: the one that has
 * the least for its weight, the first of those.
 */
unsigned tail_next(const struct tail_plan *plan, const uint64_t *done);

/* tail_cell - the turn-th cell of all, an arm's, on that seat. */
void tail_cell(const struct tail_plan *plan, unsigned arm, const struct seat *seat, uint64_t seed,
	       uint64_t turn, struct cell *cell);

/* tail_name - "tail" or "tail-fifo". */
const char *tail_name(const struct tail_plan *plan);

/* tail_stage - what an arm's records have as their stage. Returns buf. */
char *tail_stage(const struct tail_plan *plan, unsigned arm, char *buf, size_t size);

/* What one arm came to, in cells of one regime. */
struct tail_sum {
	size_t cells;
	uint64_t toggles;
	uint64_t tears[TEAR_KINDS];
	uint64_t all;	       /* tears of every kind, and crashes where tears should be counted */
	struct rate_band band; /* tears per toggle, 95 %, two-sided */
	uint64_t latency[2];   /* least and greatest median, ticks; 0 where nothing was measured */
};

enum tail_regime {
	TAIL_ALL,
	TAIL_NEAR, /* below TAIL_FAR */
	TAIL_DISTANT,
	TAIL_REGIMES
};

/* tail_sum - an arm's records of one regime, and no others, added up. */
void tail_sum(struct tail_sum *sum, const struct tail_plan *plan, unsigned arm,
	      enum tail_regime regime, const struct cell_record *records, size_t count);

#endif
