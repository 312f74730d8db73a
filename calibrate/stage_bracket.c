/* SPDX-License-Identifier: MIT */
/*
 * Bracket: the rate against the wait. Once with waits that stand still, which is
 * the paper's figure, and once as the library waits.
 */
#include "calibrate/search_state.h"

static const enum crossing crossings[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

/* The seats that the bracket looks at: one executor each, never oversubscribed. */
static bool is_bracket_seat(const struct plan *plan, const struct seat *seat)
{
	return plan->seats == 1 ||
	       (seat->executors == 1 && seat->placement != PLACEMENT_OVERSUBSCRIBED) ||
	       (seat == &plan->seat[0]);
}

static unsigned bracket_seats(const struct plan *plan)
{
	unsigned count = 0;

	for (unsigned i = 0; i < plan->seats; i++)
		count += is_bracket_seat(plan, &plan->seat[i]);
	return count;
}

/* All crossings and splits of a seat at one wait for both. */
static int bracket_seat(struct search *s, const struct seat *seat, uint64_t wait, uint64_t stretch,
			double seconds)
{
	const struct cell_record *record;
	int ret = 0;

	for (unsigned j = 0; j < 4 * CLAIMS && ret == 0; j++) {
		struct cell cell;

		search_cell(s, &cell, seat, seconds);
		cell.crossing = crossings[j / 4];
		cell.split = j % 4 + 1;
		/* The paper's pair, and one that has a mix at every split. */
		cell.pair = PAIR_CALL_NOP;
		cell.first_wait = wait;
		cell.second_wait = wait;
		cell.stretch = stretch;
		ret = search_run_cell(s, "bracket", 0, &cell, &record);
	}
	return ret;
}

static int bracket_wait(struct search *s, uint64_t wait, uint64_t stretch, double seconds)
{
	int ret = 0;

	for (unsigned i = 0; i < s->plan->seats && ret == 0; i++)
		if (is_bracket_seat(s->plan, &s->plan->seat[i]))
			ret = bracket_seat(s, &s->plan->seat[i], wait, stretch, seconds);
	return ret;
}

/* Where time is short: every second wait, and waits that stretch alone. */
int stage_bracket(struct search *s)
{
	const struct plan *plan = s->plan;
	unsigned ways = plan->stretch ? 2 : 1, step = 1;
	double total = plan->budget * plan->bracket / (4 * CLAIMS) / bracket_seats(plan);
	int ret = 0;

	if (total / (plan->wait_count * ways) < CELL_SHORT)
		ways = 1;
	if (total / plan->wait_count < CELL_MIN)
		step = 2;
	total *= (double)step / (plan->wait_count * ways);
	progress_stage(&s->session->progress, "bracket");
	for (unsigned i = 0; i < plan->wait_count && ret == 0; i += step) {
		ret = bracket_wait(s, plan->waits[i], plan->stretch, total);
		/* In turn, so that whatever drifts meanwhile hits both alike. */
		if (ret == 0 && ways == 2)
			ret = bracket_wait(s, plan->waits[i], 0, total);
	}
	return ret;
}
