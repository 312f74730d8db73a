/* SPDX-License-Identifier: MIT */
/* How long the paper's grid takes: cells of both ends of it are timed before it begins. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "calibrate/experiment/experiment.h"
#include "stress/base/clock.h"
#include "stress/base/number.h"

#define TIMING_SECONDS 0.5

double pace_seconds(const struct pace *pace, const struct cell *cell)
{
	double share = 0;

	if (pace->wait[1] > pace->wait[0])
		share = (double)(cell->waits.first - pace->wait[0]) /
			(double)(pace->wait[1] - pace->wait[0]);
	return pace->start + (double)cell->toggles * (pace->toggle[0] +
						      share * (pace->toggle[1] - pace->toggle[0]));
}

/* The same cell by the oracle that survives its tears, so that it lasts. */
static int time_cell(struct session *s, const struct cell *grid_cell, struct pace *pace, int end)
{
	struct cell cell = *grid_cell;
	const struct cell_record *record;
	double begin = seconds_now();
	int ret;

	cell.oracle = ORACLE_COUNT;
	cell.toggles = CELL_TOGGLES_MAX;
	cell.seconds = TIMING_SECONDS;
	ret = session_run(s, TIMING_STAGE, 0, &cell, &record);
	if (ret < 0)
		return ret;
	if (record->result.toggles == 0)
		return -ETIME;
	pace->wait[end] = cell.waits.first;
	pace->toggle[end] = record->result.seconds / (double)record->result.toggles;
	pace->start = fmax(pace->start, seconds_now() - begin - record->result.seconds);
	return 0;
}

/* Of each number of executors, in their order. */
static int time_executors(const struct experiment *e, struct session *s, struct pace *pace)
{
	int ret = 0;

	progress_stage(&s->progress, TIMING_STAGE);
	for (unsigned n = 1; ret == 0 && n <= EXECUTORS_MOST; n++) {
		const struct listed *end[2] = { NULL, NULL };
		struct cell cell;

		for (size_t i = 0; i < e->cells.count; i++) {
			const struct listed *l = &e->cells.at[i];

			if (l->cell.executors != n)
				continue;
			if (!end[0] || l->cell.waits.first < end[0]->cell.waits.first)
				end[0] = l;
			if (!end[1] || l->cell.waits.first > end[1]->cell.waits.first)
				end[1] = l;
		}
		for (int i = 0; ret == 0 && end[0] && i < 2; i++) {
			experiment_cell(e, (size_t)(end[i] - e->cells.at), &cell);
			pace[n].executors = n;
			pace[n].placement = cell.placement;
			ret = time_cell(s, &cell, &pace[n], i);
		}
	}
	progress_end(&s->progress);
	return ret;
}

int pace_grid(const struct experiment *e, struct session *s)
{
	struct pace pace[EXECUTORS_MOST + 1] = { 0 };
	size_t count = experiment_count(e), to_run = 0;
	bool *have = calloc(count, sizeof(*have));
	struct there there;
	char duration[32];
	struct cell cell;
	double seconds = 0;
	int ret = have ? experiment_look(e, &s->known, have, &there) : -ENOMEM;

	for (size_t i = e->shard.number - 1; ret == 0 && i < count; i += e->shard.of)
		to_run += !have[i];
	if (ret == 0 && to_run)
		ret = time_executors(e, s, pace);
	for (size_t i = e->shard.number - 1; ret == 0 && i < count; i += e->shard.of) {
		experiment_cell(e, i, &cell);
		if (!have[i] && cell.executors <= EXECUTORS_MOST)
			seconds += pace_seconds(&pace[cell.executors], &cell);
	}
	free(have);
	if (ret < 0 || !to_run)
		return ret;
	printf("The paper's grid: %zu cells of %" PRIu64 " toggles", count,
	       e->cells.at[0].cell.toggles);
	if (e->shard.of > 1)
		printf(", shard %u/%u", e->shard.number, e->shard.of);
	printf("; %zu to run: about %s, less where runs crash\n", to_run,
	       tell_duration(seconds, duration, sizeof(duration)));
	for (unsigned n = 1; n <= EXECUTORS_MOST; n++)
		if (pace[n].executors)
			printf("  N %u, %s: %s to %s us a toggle\n", n,
			       placement_name(pace[n].placement), NUMBER(1e6 * pace[n].toggle[0]),
			       NUMBER(1e6 * pace[n].toggle[1]));
	fflush(stdout);
	/* For the time left that the progress shows. */
	s->budget = seconds_now() - s->begin + seconds;
	return 0;
}
