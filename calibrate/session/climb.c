/* SPDX-License-Identifier: MIT */
/*
 * What a calibration runs, in this order:
 *
 *   controls    the broken protocols must tear, or the oracle is blind
 *   membarrier  what a change costs by membarrier: the top of the ladder
 *   ladder      slices on all rungs; among them stores inside a line, for the window, and the
 *		 fetch gap itself, for waits that are longer
 *
 * What comes next is a function of the records, so that a run which was killed can be resumed.
 */
#include "calibrate/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "calibrate/session/schedule.h"
#include "calibrate/statistics/estimate.h"
#include "results/journal/journal.h"
#include "stress/run/gap.h"
#include "stress/witness/witness.h"

#define CELL_MIN   0.05 /* seconds; shorter cells are mostly set-up */
#define BARRIERS   2	/* slices by membarrier for each crossing */
#define PLACES	   24	/* that a run comes back to: more tell less of each */
#define PROVOKE_IN 3	/* one slice in so many is provoked */

/* Seconds: it ends with the first tear, but on a busy machine that may take. */
#define CONTROLS_MIN 2.0

/* Ticks: with less, most stores come before an executor has run the last. */
#define WINDOW_REST 400

struct climb {
	struct session *session;
	const struct plan *plan;
	struct sums *sums;
	struct schedule schedule;
	/* Seconds of cells: by the records, not by the clock. */
	double ladder_used, window_used, gaps_used;
	unsigned window_turn, gap_turn;
	unsigned round;
	const char *doubt; /* why a control says that the oracle is blind, or NULL */
	unsigned pair[PLACEMENT_COUNT][2]; /* two CPUs whose distance stands for the placement */
	uint64_t
		turn[PLACEMENT_COUNT]; /* its next slice's, of the CPUs that can be the patcher's */
};

/* --- Cells ------------------------------------------------------------------------------------ */

/* Each cell has a seed of its own, drawn from the run's and kept in its record. */
static uint64_t seed_of_next_cell(const struct climb *c)
{
	return random_at(c->session->seed, c->session->count) & INT64_MAX;
}

static void make_cell(const struct climb *c, struct cell *cell, const struct seat *seat,
		      double seconds)
{
	cell_defaults(cell);
	cell->placement = seat->placement;
	cell->executors = seat->executors;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = seconds > CELL_MIN ? seconds : CELL_MIN;
	cell->waits = (struct waits){ 0 };
	cell->seed = seed_of_next_cell(c);
}

/*
 * Split 1 of a pair with one opcode has no mix to see, so it takes a pair with a NOP. Of these
 * fewer toggles are known to have been exposed: so there are few.
 */
static void draw_shape(struct cell *cell)
{
	uint64_t random = cell->seed;

	cell->split = 1 + (unsigned)(random_next(&random) % 10);
	if (cell->split == 1) {
		cell->pair = random_next(&random) % 2 ? PAIR_CALL_NOP : PAIR_JMP_NOP;
		return;
	}
	cell->split = 2 + (unsigned)(random_next(&random) % 3);
	cell->pair = random_next(&random) % 4 ? PAIR_CALL_CALL : PAIR_WORD;
}

/*
 * One of the run's places, so that each comes again; with another CPU for the patcher each time,
 * every other time with the seats swapped.
 */
static void draw_place(struct climb *c, struct cell *cell)
{
	uint64_t random = cell->seed ^ UINT64_C(0x5851f42d4c957f2d);
	uint64_t place = c->session->seed * PLACES + random_next(&random) % PLACES;
	uint64_t turn = (c->session->seed + c->turn[cell->placement]++) & INT32_MAX;

	cell->place = 1 + (random_next(&place) & INT32_MAX) + (turn << PLACE_TURN_SHIFT);
	cell->swap = random_next(&random) % 2;
}

/*
 * Slices that are left alone tear more often than most that are provoked, so they are the rule. The
 * others are provoked in one way that this machine and the oracle have, and that counts.
 */
static void draw_provoker(const struct climb *c, struct cell *cell, bool is_gap)
{
	uint64_t random = ~cell->seed;
	enum provoker p = (enum provoker)(random_next(&random) % PROVOKER_COUNT);

	if (random_next(&random) % PROVOKE_IN ||
	    provokers_have(1u << p, is_gap ? PROVOKER_COLD | PROVOKER_SITED : PROVOKER_COLD))
		return;
	for (unsigned i = c->plan->untested_placements; i < c->plan->untesteds; i++)
		if (c->plan->untested[i].which == (int)p)
			return;
	cell->provokers = 1u << p;
	/* Fetch runs ahead in a loop that is long enough. */
	if (p == PROVOKER_CHAIN)
		cell->loop = 64;
}

/*
 * Cells that were cut short count as well, in this run or in the one that it resumes. used, unless
 * NULL, gets the seconds of one that was not.
 */
static int run_cell(struct climb *c, const char *stage, const struct cell *cell, double *used)
{
	const struct cell_record *record;
	struct session *s = c->session;
	size_t first = s->count;
	int ret;

	s->progress.stage = stage;
	ret = session_run(s, stage, c->round++, cell, &record);
	for (size_t i = first; i < s->count; i++)
		if (sums_add_record(c->sums, &s->done[i]) < 0)
			return -ENOMEM;
	if (s->tries) {
		const struct seating *seating = &record->result.seating;
		unsigned a = seating->patcher, b = seating->executor[0];
		unsigned pair[2] = { a < b ? a : b, a < b ? b : a };

		/* Placements that seat the same two CPUs, either way round, find them equally far
		 * apart. */
		memcpy(c->pair[record->cell.placement], pair, sizeof(pair));
		for (int p = 0; p < PLACEMENT_COUNT; p++)
			if (memcmp(c->pair[p], pair, sizeof(pair)) == 0)
				schedule_saw(&c->schedule, (enum placement)p,
					     witness_distance_after(&record->result.witness));
	}
	if (ret == 0 && used)
		*used += record->result.seconds;
	return ret;
}

/*
 * The controls. Both protocols leave a mix in memory for a whole wait: an oracle that does not see
 * it is blind.
 */
static int run_controls(struct climb *c)
{
	static const enum protocol broken[] = { PROTOCOL_NO_INT3, PROTOCOL_FRONT_FIRST };
	double share = c->plan->budget * c->plan->controls / 2;
	double seconds = share > CONTROLS_MIN ? share : CONTROLS_MIN;
	unsigned tore = 0;
	int ret = 0;

	for (unsigned i = 0; i < 2 && ret == 0; i++) {
		struct session *s = c->session;
		struct cell cell;

		make_cell(c, &cell, &c->plan->seat[0], seconds);
		cell.waits = (struct waits){ 3000, 3000, 0 };
		cell.protocol = broken[i];
		cell.stop_tears = 1;
		ret = run_cell(c, "controls", &cell, NULL);
		tore += ret == 0 && cell_result_tears(&s->done[s->count - 1].result) > 0;
	}
	if (ret == 0)
		c->doubt = tore == 2 ? NULL : "the oracle did not see the broken protocols tear";
	return ret;
}

static int time_membarrier(struct climb *c)
{
	struct cell cell;
	int ret = 0;

	for (unsigned i = 0; i < 2 * BARRIERS && ret == 0; i++) {
		make_cell(c, &cell, &c->plan->seat[0], c->plan->slice);
		cell.protocol = PROTOCOL_MEMBARRIER;
		cell.crossing = i % 2 ? CROSSING_PAGE : CROSSING_LINE;
		ret = run_cell(c, "membarrier", &cell, NULL);
	}
	/* Without it the ladder goes all the way up. */
	return ret == -EINTR || ret == -EIO ? ret : 0;
}

/* --- The ladder ------------------------------------------------------------------------------- */

#define WORDS_IN  16 /* one window slice in so many stays inside 8 bytes, where vendors promise, */
#define SHARED_IN 4  /* one in so many of those with executors that share CPUs is run as such */
#define SHAPES_IN 8  /* one in so many has one site, of any shape; the others have three calls */

/*
 * All seats in turn. Executors that share a CPU see few of the stores, so most of their turns go to
 * seats where they do not, if there are any.
 */
static const struct seat *window_seat(const struct plan *plan, unsigned turn)
{
	const struct seat *seat = &plan->seat[turn % plan->seats];
	unsigned round = turn / plan->seats;

	if (seat->placement != PLACEMENT_OVERSUBSCRIBED || round % SHARED_IN == 0)
		return seat;
	for (unsigned i = 0; i < plan->seats; i++) {
		const struct seat *other = &plan->seat[(round + i) % plan->seats];

		if (other->placement != PLACEMENT_OVERSUBSCRIBED)
			return other;
	}
	return seat;
}

/*
 * Sites inside a line are most of all sites, and with a window that is proved they cost one
 * store: stores across each boundary inside a line, as fast as executors can see them. An executor
 * that fetches a line again sees three stores in it as soon as one.
 */
static int run_window(struct climb *c)
{
	unsigned turn = c->window_turn++;
	struct cell cell;

	make_cell(c, &cell, window_seat(c->plan, turn), c->plan->slice);
	cell.protocol = PROTOCOL_ATOMIC;
	cell.rest = WINDOW_REST;
	if (turn % SHAPES_IN == 0) {
		cell.crossing = turn % WORDS_IN ? (enum crossing)(CROSSING_8 + turn / SHAPES_IN % 3)
						: CROSSING_NONE;
		draw_shape(&cell);
	} else {
		cell.crossing = CROSSING_INSIDE;
		cell.split = 2 + turn % 3;
	}
	draw_place(c, &cell);
	return run_cell(c, "window", &cell, &c->window_used);
}

/*
 * Where one store inside a line is known to tear, sites there are changed as those across a line:
 * one slice in so many is of them.
 */
#define INSIDE_IN 4

static int run_slice(struct climb *c, const struct estimate *e)
{
	const struct sum *kind = schedule_next(&c->schedule, e);
	const struct seat seat = { kind->placement, kind->executors };
	struct cell cell;

	make_cell(c, &cell, &seat, c->plan->slice);
	cell.crossing = kind->crossing;
	cell.waits = kind->rung;
	if (sum_is_rested(kind))
		cell.rest = CELL_RESTED;
	if (kind->crossing == CROSSING_LINE && kind->rung.stretch && e->window.torn &&
	    c->round % INSIDE_IN == 0)
		cell.crossing = e->window.across;
	draw_shape(&cell);
	draw_place(c, &cell);
	/* The paper's figure is of a program that is left alone. */
	if (cell.waits.stretch && !c->schedule.focused)
		draw_provoker(c, &cell, false);
	return run_cell(c, "ladder", &cell, &c->ladder_used);
}

/* --- Gaps ------------------------------------------------------------------------------------- */

#define GAP_SLICES 4 /* as long as so many others: each writes all that it saw */

/* Known or not, its time is used when its turn comes: so shares of the time choose as they did. */
static int run_gaps(struct climb *c)
{
	unsigned turn = c->gap_turn++;
	const struct seat *seat = &c->plan->seat[turn / CLAIMS % c->plan->seats];
	struct cell cell;
	int ret;

	gap_defaults(&cell);
	cell.placement = seat->placement;
	cell.executors = seat->executors;
	cell.crossing = claimed[turn % CLAIMS];
	cell.seconds = GAP_SLICES * c->plan->slice;
	cell.seed = seed_of_next_cell(c) + turn;
	draw_provoker(c, &cell, true);
	c->gaps_used += cell.seconds;
	c->session->progress.stage = "gaps";
	ret = session_gaps(c->session, &cell, c->sums);
	if (*c->session->stop && ret != -EIO)
		return -EINTR;
	return ret == -EIO || ret == -ENOMEM ? ret : 0;
}

/* --- All of it -------------------------------------------------------------------------------- */

static bool is_behind(const struct climb *c, double share, double used)
{
	return share > 0 && used <= share * (c->ladder_used + c->window_used + c->gaps_used);
}

static int climb_ladder(struct climb *c, struct estimate *e)
{
	int ret, taken;

	estimate_so_far(e, c->sums, 1, c->plan);
	ret = schedule_make(&c->schedule, c->plan, &e->ladder, c->session->seed);
	while (ret == 0 && session_left(c->session) > 0) {
		if (is_behind(c, c->plan->window, c->window_used)) {
			ret = run_window(c);
		} else if (is_behind(c, c->plan->fetch_gaps, c->gaps_used)) {
			ret = run_gaps(c);
		} else {
			estimate_so_far(e, c->sums, 1, c->plan);
			ret = run_slice(c, e);
		}
	}
	schedule_free(&c->schedule);
	/* Known runs that had no turn are evidence, too: this run may be shorter, or draw others.
	 */
	while (ret != -ENOMEM && (taken = session_known_gaps(c->session, NULL, c->sums)))
		if (taken < 0)
			ret = taken;
	return ret;
}

/* Why the counts of this run are no evidence, or NULL. */
static const char *doubt_of(const struct climb *c)
{
	bool apart = false, counted = c->plan->only;

	/* With one CPU threads take turns, and no fetch ever meets a store. */
	for (unsigned i = 0; i < c->plan->seats; i++)
		apart |= c->plan->seat[i].placement != PLACEMENT_OVERSUBSCRIBED;
	for (size_t i = 0; i < c->sums->count; i++)
		counted |= sum_is_wait(&c->sums->sum[i]) && c->sums->sum[i].count.toggles;
	if (!apart)
		return "only one CPU was allowed: nothing ran at the same time";
	if (c->doubt)
		return c->doubt;
	/* Nor would it be a run among others. */
	return counted ? NULL : "it was broken off before any wait was tried";
}

int climb(struct session *session, const struct plan *plan, struct sums *sums,
	  struct estimate *estimate)
{
	struct climb c = {
		.session = session,
		.plan = plan,
		.sums = sums,
		.doubt = "it was broken off before it was known whether the oracle sees tears",
	};
	const char *doubt;
	int ret = run_controls(&c);

	if (ret == 0)
		ret = time_membarrier(&c);
	if (ret == 0)
		ret = climb_ladder(&c, estimate);
	progress_end(&session->progress);
	estimate_make(estimate, sums, 1, plan);
	doubt = doubt_of(&c);
	if (doubt)
		estimate_blind(estimate, doubt);
	return ret;
}
