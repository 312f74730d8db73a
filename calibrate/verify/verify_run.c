/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/verify_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/ladder/ladder.h"
#include "calibrate/program/exit_status.h"
#include "stress/base/random.h"
#include "stress/provoke/provoker.h"

#define CONTROL_SHARE 0.05 /* of the budget */
#define WINDOW_SHARE  0.10
#define CELL_SHARE    0.9  /* of a cell's time; the rest starts the child */
#define CELL_MIN      0.05 /* seconds; shorter cells are mostly set-up */
#define LOOK_SLICE    0.2  /* seconds: many places say more than much time at one */
#define SLICE	      5.0  /* seconds of a cell at a time: so that all meet the same conditions */

static struct verify_cell *add_cell(struct verify *v, enum verify_check check)
{
	struct verify_cell *c = &v->cell[v->cells++];

	*c = (struct verify_cell){ .check = check };
	cell_defaults(&c->cell);
	c->cell.toggles = CELL_TOGGLES_MAX;
	return c;
}

/* The closest that this machine has to two threads that never share a CPU. */
static void seat_anywhere(struct cell *cell, hwloc_topology_t topology)
{
	char reason[160];
	int cpus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);

	cell->placement = PLACEMENT_SPREAD;
	cell->executors = 1;
	if (placement_max(topology, PLACEMENT_SPREAD, reason, sizeof(reason)) > 0)
		return;
	cell->placement = PLACEMENT_OVERSUBSCRIBED;
	cell->executors = cpus > 0 ? (unsigned)cpus : 1;
}

/* Both leave a mix standing in memory for a whole wait. */
static void plan_controls(struct verify *v, hwloc_topology_t topology)
{
	static const enum protocol broken[] = { PROTOCOL_NO_INT3, PROTOCOL_FRONT_FIRST };

	for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct cell *cell = &add_cell(v, CHECK_CONTROL)->cell;

		seat_anywhere(cell, topology);
		cell->protocol = broken[i];
		cell->stop_tears = 1;
	}
}

/* A window of 8 bytes has no boundary inside; one of 16 has those of 8, and so on. */
static void plan_window(struct verify *v, hwloc_topology_t topology)
{
	for (int crossing = CROSSING_NONE; crossing <= CROSSING_32; crossing++) {
		if (crossing_bytes((enum crossing)crossing) >= v->conf.window)
			break;
		for (unsigned split = 1; split <= 4; split++) {
			struct cell *cell = &add_cell(v, CHECK_WINDOW)->cell;

			seat_anywhere(cell, topology);
			cell->protocol = PROTOCOL_ATOMIC;
			cell->crossing = (enum crossing)crossing;
			cell->split = split;
			cell->pair = PAIR_CALL_NOP;
		}
	}
}

static void plan_wait(struct verify *v, const struct cell *worst)
{
	struct verify_cell *c = add_cell(v, CHECK_WAIT);
	struct cell *cell = &c->cell;

	*cell = *worst;
	cell->oracle = ORACLE_COUNT; /* goes on after a tear */
	cell->waits = verify_level(v)->waits;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->stop_tears = 0;
}

static void plan_fallback(struct verify *v)
{
	static const enum crossing crossings[] = { CROSSING_LINE, CROSSING_PAGE };
	struct cell cell;

	v->fallback = true;
	cell_defaults(&cell);
	cell.pair = PAIR_CALL_NOP; /* has a mix at every split */
	for (unsigned i = 0; i < 2 * 4; i++) {
		cell.crossing = crossings[i / 4];
		cell.split = i % 4 + 1;
		plan_wait(v, &cell);
	}
}

static void skip_impossible(struct verify_cell *c, hwloc_topology_t topology)
{
	struct seating seating;
	int ret = placement_seat(topology, c->cell.placement, c->cell.executors, &seating,
				 c->reason, sizeof(c->reason));

	if (ret == 0)
		ret = provokers_possible(&c->cell, topology, &seating, c->reason,
					 sizeof(c->reason));
	c->skipped = ret < 0;
}

void verify_plan(struct verify *v, hwloc_topology_t topology, const struct cell *worst,
		 unsigned count)
{
	plan_controls(v, topology);
	plan_window(v, topology);
	for (unsigned i = 0; i < count; i++)
		plan_wait(v, &worst[i]);
	if (count == 0)
		plan_fallback(v);
	for (unsigned i = 0; i < v->cells; i++)
		skip_impossible(&v->cell[i], topology);
}

static void run_cell(struct verify *v, struct session *s, struct verify_cell *c, unsigned turn,
		     double seconds)
{
	const struct cell_record *last;
	struct cell cell = c->cell;
	size_t before = s->count;
	int ret;

	cell.seconds = fmax(seconds * CELL_SHARE, CELL_MIN);
	cell.seed = random_at(v->seed, turn) & INT64_MAX;
	ret = session_run(s, "verify", turn, &cell, &last);
	for (size_t i = before; i < s->count; i++)
		verify_add(c, &s->done[i]);
	/* Without a result the cell's part of the run is over. */
	if (ret == -EINTR) {
		v->cut_short = EXIT_INTERRUPTED;
	} else if (ret == -EIO) {
		v->cut_short = EXIT_CANNOT_WRITE;
	} else if (ret < 0) {
		/*
		 * A seat that this machine lacks is no failure, unless it was there a moment ago.
		 */
		c->skipped = c->runs == 0 && (ret == -ENOENT || ret == -ENOTSUP);
		c->failed += !c->skipped;
		snprintf(c->reason, sizeof(c->reason), "it cannot be run here: %s", strerror(-ret));
	}
	if (c->failed || c->skipped)
		return;
	c->reason[0] = '\0';
	if (c->noisy && c->quiet == 0)
		snprintf(c->reason, sizeof(c->reason), "too noisy: %s", s->noise);
}

static bool is_due(const struct verify *v, unsigned i, enum verify_check check)
{
	const struct verify_cell *c = &v->cell[i];

	return c->check == check && !c->skipped && !c->failed;
}

/* Cells of a part that can be run, from the given one on. */
static unsigned count_due(const struct verify *v, unsigned from, enum verify_check check)
{
	unsigned count = 0;

	for (unsigned i = from; i < v->cells; i++)
		count += is_due(v, i, check);
	return count;
}

/* All cells of one part, several times over, each with its share of what is left. */
static void run_part(struct verify *v, struct session *s, enum verify_check check, double seconds,
		     unsigned *turn)
{
	double end = session_left(s) - seconds;
	double slices = ceil(seconds / SLICE / fmax(1, count_due(v, 0, check)));

	progress_stage(&s->progress, verify_check_name(check));
	/*
	 * Each at least once: on a noisy machine other parts may have taken more than their
	 * share.
	 */
	for (unsigned left = (unsigned)fmax(1, slices); left > 0; left--) {
		for (unsigned i = 0; i < v->cells && !v->cut_short; i++) {
			unsigned runs =
				count_due(v, i, check) + (left - 1) * count_due(v, 0, check);

			if (is_due(v, i, check))
				run_cell(v, s, &v->cell[i], (*turn)++,
					 (session_left(s) - end) / runs);
		}
	}
}

/*
 * The lowest rungs, of waits that are stretched and of those that are not: they tear often enough
 * to tell something within seconds. All looks have the same mix of them.
 */
void verify_look(struct verify *v, struct session *session, double seconds)
{
	static const struct waits rungs[] = {
		{ 0, 0, 0 }, { 0, 0, LADDER_STRETCH }, { 200, 200, 0 }, { 200, 200, LADDER_STRETCH }
	};
	const unsigned kinds = 2 * sizeof(rungs) / sizeof(rungs[0]);
	double end = session_left(session) - seconds;
	unsigned turn = 0;
	int ret = 0;

	progress_stage(&session->progress, "look");
	/* All kinds once, and then again in the same order, so that a look that is cut has each. */
	while (ret == 0 && (turn < kinds || session_left(session) - end > LOOK_SLICE)) {
		const struct cell_record *last;
		struct cell cell;
		uint64_t random;

		cell_defaults(&cell);
		seat_anywhere(&cell, session->topology);
		cell.waits = rungs[turn % kinds / 2];
		cell.crossing = turn % 2 ? CROSSING_PAGE : CROSSING_LINE;
		cell.toggles = CELL_TOGGLES_MAX;
		cell.seconds = LOOK_SLICE;
		cell.seed = random = random_at(~v->seed, turn++) & INT64_MAX;
		cell.split = 2 + (unsigned)(random_next(&random) % 3);
		cell.pair = PAIR_CALL_CALL;
		cell.place = 1 + (random_next(&random) & INT32_MAX);
		cell.swap = random_next(&random) % 2;
		if (random_next(&random) % 2)
			cell.provokers = 1u << PROVOKER_COLD_BACK;
		ret = session_run(session, "look", turn, &cell, &last);
	}
	progress_end(&session->progress);
	if (ret == -EINTR)
		v->cut_short = EXIT_INTERRUPTED;
	else if (ret == -EIO)
		v->cut_short = EXIT_CANNOT_WRITE;
}

void verify_run(struct verify *v, struct session *session, double reserve)
{
	unsigned turn = 0;

	run_part(v, session, CHECK_CONTROL, v->budget * CONTROL_SHARE, &turn);
	run_part(v, session, CHECK_WINDOW, v->budget * WINDOW_SHARE, &turn);
	/* The waits get the time that the other parts did not need. */
	run_part(v, session, CHECK_WAIT, session_left(session) - reserve, &turn);
	progress_end(&session->progress);
}
