/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/tail_plan.h"

#include <stdio.h>
#include <string.h>

#include "stress/base/random.h"
#include "stress/run/gap.h"

#define BIT(provoker) (1u << (provoker))
#define CELL_MIN      0.05 /* seconds; shorter cells are mostly set-up */

/*
 * Each hypothesis has an arm without it: the line at 2000 is what most of them
 * are to be compared with. A membarrier toggle takes about ten times as long.
 */
static const struct tail_arm arms[] = {
	{ .name = "line-1000", .crossing = CROSSING_LINE, .wait = 1000, .weight = 1 },
	{ .name = "line-2000", .crossing = CROSSING_LINE, .wait = 2000, .weight = 1 },
	{ .name = "line-4000", .crossing = CROSSING_LINE, .wait = 4000, .weight = 1 },
	/* Four times the store's own latency, alone and as a least wait besides. */
	{ .name = "stretch-only", .crossing = CROSSING_LINE, .stretch = 4, .weight = 1 },
	{ .name = "stretch-1000",
	  .crossing = CROSSING_LINE,
	  .wait = 1000,
	  .stretch = 4,
	  .weight = 1 },
	{ .name = "page-2000", .crossing = CROSSING_PAGE, .wait = 2000, .weight = 1 },
	{ .name = "page-stretch", .crossing = CROSSING_PAGE, .stretch = 4, .weight = 1 },
	{ .name = "membarrier",
	  .protocol = PROTOCOL_MEMBARRIER,
	  .crossing = CROSSING_LINE,
	  .wait = 2000,
	  .weight = 8 },
	/* Something more in the first wait: see stress/cell/variant.h. */
	{ .name = "line-400", .crossing = CROSSING_LINE, .wait = 400, .weight = 1 },
	{ .name = "touch-400",
	  .protocol = PROTOCOL_TOUCH,
	  .crossing = CROSSING_LINE,
	  .wait = 400,
	  .weight = 1 },
	{ .name = "read-400",
	  .protocol = PROTOCOL_READ,
	  .crossing = CROSSING_LINE,
	  .wait = 400,
	  .weight = 1 },
	{ .name = "halves-400",
	  .protocol = PROTOCOL_HALVES,
	  .crossing = CROSSING_LINE,
	  .wait = 400,
	  .weight = 1 },
	{ .name = "again-400",
	  .protocol = PROTOCOL_AGAIN,
	  .crossing = CROSSING_LINE,
	  .wait = 400,
	  .weight = 1 },
	/* Control: the split is patched in the same three steps, but lies inside a line. */
	{ .name = "inside-2000", .crossing = CROSSING_32, .wait = 2000, .weight = 1 },
	{ .name = "cold-back",
	  .crossing = CROSSING_LINE,
	  .wait = 2000,
	  .provokers = BIT(PROVOKER_COLD_BACK),
	  .weight = 1 },
	{ .name = "cold-front",
	  .crossing = CROSSING_LINE,
	  .wait = 2000,
	  .provokers = BIT(PROVOKER_COLD_FRONT),
	  .weight = 1 },
	{ .name = "shootdown",
	  .crossing = CROSSING_LINE,
	  .wait = 2000,
	  .provokers = BIT(PROVOKER_SHOOTDOWN),
	  .weight = 1 },
	{ .name = "load",
	  .crossing = CROSSING_LINE,
	  .wait = 2000,
	  .provokers = BIT(PROVOKER_LOAD),
	  .weight = 1 },
	{ .name = "gap-line", .gaps = true, .crossing = CROSSING_LINE, .weight = 1 },
	{ .name = "gap-page", .gaps = true, .crossing = CROSSING_PAGE, .weight = 1 },
	{ .name = "gap-inside", .gaps = true, .crossing = CROSSING_32, .weight = 1 },
};

#define ARMS (sizeof(arms) / sizeof(arms[0]))
_Static_assert(ARMS <= TAIL_ARMS_MAX, "the plan has room for every arm");

void tail_plan_make(struct tail_plan *plan, double budget, bool fifo)
{
	unsigned weights = 0;

	plan->arms = 0;
	plan->fifo = fifo;
	for (size_t i = 0; i < ARMS; i++) {
		if (fifo && arms[i].provokers & BIT(PROVOKER_LOAD))
			continue;
		plan->arm[plan->arms++] = arms[i];
		weights += arms[i].weight;
	}
	plan->slice = budget / weights < TAIL_SLICE ? budget / weights : TAIL_SLICE;
	if (plan->slice < CELL_MIN)
		plan->slice = CELL_MIN;
}

unsigned tail_next(const struct tail_plan *plan, const uint64_t *done)
{
	unsigned next = 0;

	/* done / weight is least, without dividing. */
	for (unsigned i = 1; i < plan->arms; i++)
		if (done[i] * plan->arm[next].weight < done[next] * plan->arm[i].weight)
			next = i;
	return next;
}

/*
 * Splits and pairs stay the same throughout. At 4|1 the tail was first seen, and
 * the three calls in rotation tell the kind of every mix.
 */
void tail_cell(const struct tail_plan *plan, unsigned arm, const struct seat *seat, uint64_t seed,
	       uint64_t turn, struct cell *cell)
{
	const struct tail_arm *a = &plan->arm[arm];

	if (a->gaps)
		gap_defaults(cell);
	else
		cell_defaults(cell);
	cell->placement = seat->placement;
	cell->executors = seat->executors;
	cell->crossing = a->crossing;
	cell->protocol = a->protocol;
	if (!a->gaps) {
		cell->pair = PAIR_CALL_CALL;
		cell->split = 4;
	}
	cell->first_wait = cell->second_wait = a->wait;
	cell->stretch = a->stretch;
	cell->provokers = a->provokers;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = plan->slice;
	cell->seed = (seed + plan->fifo + (turn + 1) * RANDOM_STEP) & INT64_MAX;
}

const char *tail_name(const struct tail_plan *plan)
{
	return plan->fifo ? "tail-fifo" : "tail";
}

char *tail_stage(const struct tail_plan *plan, unsigned arm, char *buf, size_t size)
{
	snprintf(buf, size, "%s-%s", tail_name(plan), plan->arm[arm].name);
	return buf;
}

/* --- Sums ------------------------------------------------------------------------ */

static bool in_regime(const struct cell_result *r, enum tail_regime regime)
{
	uint64_t distance = r->witness.offset_error;

	if (regime == TAIL_ALL)
		return true;
	/* Threads on one CPU have no distance, and the dead tell nothing. */
	if (distance == 0 || distance == WITNESS_UNKNOWN)
		return false;
	return (distance >= TAIL_FAR) == (regime == TAIL_DISTANT);
}

static void add_latency(struct tail_sum *sum, uint64_t median)
{
	if (median == 0)
		return;
	if (sum->latency[0] == 0 || median < sum->latency[0])
		sum->latency[0] = median;
	if (median > sum->latency[1])
		sum->latency[1] = median;
}

static void add_result(struct tail_sum *sum, const struct cell_result *r)
{
	sum->cells++;
	sum->toggles += r->toggles;
	for (int kind = 0; kind < TEAR_KINDS; kind++)
		sum->tears[kind] += r->tears[kind];
	sum->all += cell_result_tears(r);
	add_latency(sum, r->latency.median);
}

void tail_sum(struct tail_sum *sum, const struct tail_plan *plan, unsigned arm,
	      enum tail_regime regime, const struct cell_record *records, size_t count)
{
	char stage[sizeof(records->stage)];

	memset(sum, 0, sizeof(*sum));
	tail_stage(plan, arm, stage, sizeof(stage));
	for (size_t i = 0; i < count; i++)
		if (strcmp(records[i].stage, stage) == 0 && in_regime(&records[i].result, regime))
			add_result(sum, &records[i].result);
	sum->band = bound_band(sum->all, sum->toggles, CONFIDENCE);
}
