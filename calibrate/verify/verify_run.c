/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/exit_status.h"
#include "base/random.h"
#include "calibrate/statistics/estimate.h"
#include "calibrate/verify/verify.h"
#include "stress/cell/cell.h"
#include "stress/run/run.h"

#define CONTROL_SHARE 0.05 /* of the budget */
#define CONTROL_MIN   1.0  /* seconds for both: the first tear ends each, but that may take */
#define WINDOW_SHARE  0.10
#define CELL_SHARE    0.9  /* of a cell's time; the rest starts the child */
#define CELL_MIN      0.05 /* seconds; shorter cells are mostly set-up */
#define SLICE	      0.25 /* seconds of a cell at a time, as of a calibration */

/* At the closest that this machine has to two threads that never share a CPU. */
static struct cell *add_cell(struct verify *v, enum verify_check check, hwloc_topology_t topology)
{
	struct verify_cell *c = &v->cell[v->cells++];
	int cpus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);

	*c = (struct verify_cell){ .check = check };
	cell_defaults(&c->cell);
	c->cell.toggles = CELL_TOGGLES_MAX;
	if (placement_max(topology, PLACEMENT_SPREAD, c->reason, sizeof(c->reason)) == 0) {
		c->cell.placement = PLACEMENT_OVERSUBSCRIBED;
		c->cell.executors = cpus > 0 ? (unsigned)cpus : 1;
	}
	return &c->cell;
}

void verify_plan(struct verify *v, hwloc_topology_t topology)
{
	/* Both leave a mix standing in memory for a whole wait. */
	static const enum protocol broken[] = { PROTOCOL_NO_INT3, PROTOCOL_FRONT_FIRST };
	const struct machine_conf_level *level;
	struct plan plan = { 0 };
	struct cell *cell;

	plan_seat(&plan, topology);
	for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		cell = add_cell(v, CHECK_CONTROL, topology);
		cell->protocol = broken[i];
		cell->stop_tears = 1;
	}
	/* A window of 8 bytes has no boundary inside; one of 16 has those of 8, and so on. */
	for (int crossing = CROSSING_NONE; crossing <= CROSSING_32; crossing++) {
		if (crossing_bytes((enum crossing)crossing) >= v->conf.window)
			break;
		for (unsigned split = 1; split <= 4; split++) {
			cell = add_cell(v, CHECK_WINDOW, topology);
			cell->protocol = PROTOCOL_ATOMIC;
			cell->crossing = (enum crossing)crossing;
			cell->split = split;
			cell->pair = PAIR_CALL_NOP;
		}
	}
	for (unsigned i = 0; i < CLAIMS * plan.seats; i++) {
		cell = add_cell(v, CHECK_WAIT, topology);
		cell->placement = plan.seat[i / CLAIMS].placement;
		cell->executors = plan.seat[i / CLAIMS].executors;
		cell->crossing = claimed[i % CLAIMS];
		level = verify_level(v, (int)(i % CLAIMS));
		cell->waits = level->waits;
		cell->rest = level->rest ? level->rest : cell->rest;
	}
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
	/* Each time another CPU is the patcher's. */
	cell.place = ((v->seed + c->runs) & INT32_MAX) << PLACE_TURN_SHIFT;
	ret = session_run(s, "verify", turn, &cell, &last);
	for (size_t i = before; i < s->count; i++)
		verify_add(c, &s->done[i]);
	/* Without a result the cell's part of the run is over. */
	if (ret == -EINTR) {
		v->cut_short = EXIT_INTERRUPTED;
	} else if (ret == -EIO) {
		v->cut_short = EXIT_CANNOT_WRITE;
	} else if (ret < 0) {
		/* A seat that this machine lacks is no failure, unless it was there before. */
		c->skipped = c->runs == 0 && (ret == -ENOENT || ret == -ENOTSUP);
		c->failed += !c->skipped;
		snprintf(c->reason, sizeof(c->reason), "it cannot be run here: %s", strerror(-ret));
	}
	if (c->failed || c->skipped)
		return;
	c->reason[0] = '\0';
	if (c->noisy && c->quiet.toggles == 0)
		snprintf(c->reason, sizeof(c->reason), "too noisy: %s", s->noise);
}

static bool is_due(const struct verify_cell *c, enum verify_check check)
{
	return c->check == check && !c->skipped && !c->failed &&
	       !(check == CHECK_CONTROL && verify_tears(c));
}

/* Cells of a part that can be run, from the given one on. */
static unsigned count_due(const struct verify *v, const struct verify_cell *from,
			  enum verify_check check)
{
	unsigned count = 0;

	for (; from < v->cell + v->cells; from++)
		count += is_due(from, check);
	return count;
}

/* All cells of one part, several times over, each with its share of what is left. */
static void run_part(struct verify *v, struct session *s, enum verify_check check, double seconds,
		     unsigned *turn)
{
	double end = session_left(s) - seconds;
	double slices = ceil(seconds / SLICE / fmax(1, count_due(v, v->cell, check)));

	s->progress.stage = verify_check_name(check);
	/* Each at least once: on a noisy machine other parts may have taken too much. */
	for (unsigned left = (unsigned)fmax(1, slices); left > 0; left--)
		for (struct verify_cell *c = v->cell; c < v->cell + v->cells && !v->cut_short; c++)
			if (is_due(c, check))
				run_cell(v, s, c, (*turn)++,
					 (session_left(s) - end) /
						 (count_due(v, c, check) +
						  (left - 1) * count_due(v, v->cell, check)));
}

void verify_run(struct verify *v, struct session *session, double reserve)
{
	unsigned turn = 0;

	run_part(v, session, CHECK_CONTROL, fmax(v->budget * CONTROL_SHARE, CONTROL_MIN), &turn);
	run_part(v, session, CHECK_WINDOW, v->budget * WINDOW_SHARE, &turn);
	/* The waits get the time that the other parts did not need. */
	run_part(v, session, CHECK_WAIT, session_left(session) - reserve, &turn);
	progress_end(&session->progress);
}
