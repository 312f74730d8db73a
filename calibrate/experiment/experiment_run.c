/* SPDX-License-Identifier: MIT */
/* An experiment's cells one by one into its journal, and what that tells. */
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/program/exit_status.h"
#include "results/journal/journal.h"
#include "stress/base/clock.h"
#include "stress/base/number.h"
#include "stress/run/gap.h"

/* 1: it has an answer. */
static int run_gaps(struct session *s, const struct cell *cell)
{
	struct run_options how = { .topology = s->topology, .stop = s->stop };
	static struct gap_result result;
	const json_t *line;
	char command[512];
	json_t *body;
	size_t i;
	int ret;

	/* A run of the gap oracle is known by its command. */
	gap_command(cell, command, sizeof(command));
	json_array_foreach(s->known.others, i, line)
	{
		if (strcmp(json_text_of(line, "command"), command) == 0) {
			s->used += cell->seconds;
			return 1;
		}
	}
	progress_begin_cell(&s->progress, cell, session_left(s));
	ret = gap_run(cell, &how, &result);
	if (ret < 0)
		return ret;
	if (result.outcome == OUTCOME_ERROR)
		return result.error;
	body = gap_to_json(cell, &result);
	ret = body ? journal_write_line(s->journal, "gaps", body) : -ENOMEM;
	json_decref(body);
	if (ret < 0) {
		progress_end(&s->progress);
		error(0, -ret, "cannot write the journal");
		return -EIO;
	}
	return *s->stop ? -EINTR : result.outcome == OUTCOME_DONE;
}

/* 0: all of it has an answer; 1: some cell hung, was killed or left out. */
static int run_cells(struct experiment *e, struct session *s)
{
	bool ends = e->repetitions, unanswered = false;
	size_t left, count = ends ? experiment_count(e) : SIZE_MAX;
	const struct cell_record *record;
	char stage[sizeof(record->stage)];
	int ret = 0;

	for (size_t i = e->shard.number - 1; ret >= 0 && i < count; i += e->shard.of) {
		struct listed *l = experiment_line(e, i);
		const char *name = l->name[0] ? l->name : e->name;
		struct cell cell;
		unsigned run = experiment_cell(e, i, &cell);

		if (!ends && session_left(s) <= 0)
			break;
		experiment_stage(e, l, stage);
		if (!l->left_out && s->progress.stage != name)
			progress_stage(&s->progress, name);
		if (l->left_out)
			ret = 0;
		else if (l->gaps)
			ret = run_gaps(s, &cell);
		else if ((ret = session_run(s, stage, run, &cell, &record)) >= 0)
			ret = has_answer(record);
		unanswered |= ret == 0;
		if (ret >= 0 || ret == -EINTR || ret == -EIO || ret == -ENOMEM)
			continue;
		progress_end(&s->progress);
		error(0, -ret, "%s not run here", stage);
		unanswered = true;
		/* What this machine cannot run once it can never run. */
		left = 0;
		for (struct listed *k = e->cells.at; k < e->cells.at + e->cells.count; k++) {
			k->left_out |= same_cell(k, l);
			left += !k->left_out;
		}
		ret = left ? 0 : -ENOENT;
	}
	progress_end(&s->progress);
	return ret < 0 ? ret : ends && unanswered;
}

/* --- How long the paper's grid takes ---------------------------------------------------------- */

#define TIMING_SECONDS 0.5 /* of cells of both ends of the grid, before it begins */

double pace_seconds(const struct pace *pace, const struct cell *cell)
{
	double share = 0;

	if (pace->wait[1] > pace->wait[0])
		share = (double)(cell->waits.first - pace->wait[0]) /
			(double)(pace->wait[1] - pace->wait[0]);
	return pace->start + (double)cell->toggles * (pace->toggle[0] +
						      share * (pace->toggle[1] - pace->toggle[0]));
}

/* Of each number of executors, in their order. */
static int time_executors(const struct experiment *e, struct session *s, struct pace *pace)
{
	int ret = 0;

	progress_stage(&s->progress, TIMING_STAGE);
	for (unsigned n = 1; ret == 0 && n <= EXECUTORS_MOST; n++) {
		const struct listed *end[2] = { NULL, NULL };
		const struct cell_record *record;
		struct cell cell;
		double begin;

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
			/* By the oracle that survives its tears, so that it lasts. */
			cell.oracle = ORACLE_COUNT;
			cell.toggles = CELL_TOGGLES_MAX;
			cell.seconds = TIMING_SECONDS;
			begin = seconds_now();
			ret = session_run(s, TIMING_STAGE, 0, &cell, &record);
			if (ret < 0)
				break;
			if (record->result.toggles == 0)
				ret = -ETIME;
			pace[n].wait[i] = cell.waits.first;
			pace[n].toggle[i] = record->result.seconds / (double)record->result.toggles;
			pace[n].start =
				fmax(pace[n].start, seconds_now() - begin - record->result.seconds);
		}
	}
	progress_end(&s->progress);
	return ret;
}

/*
 * Times both ends of the paper's grid, says on stdout how long what is missing of it takes, and
 * makes that the session's budget. 0 or a negative errno.
 */
static int pace_grid(const struct experiment *e, struct session *s)
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

/* --- What the journals hold ------------------------------------------------------------------ */

static int read_journal(const char *path, struct journal_data *data)
{
	size_t skipped = data->skipped;
	int ret = journal_read(path, data);

	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read journal %s", path);
	if (data->skipped > skipped)
		error(0, 0, "%s: %zu unreadable lines skipped", path, data->skipped - skipped);
	return EXIT_PASS;
}

int experiment_run(struct experiment *e, struct session *s)
{
	struct journal_data data = { 0 }, *known = &s->known;
	size_t i, kept = 0;
	int status, ret;

	/* A session would take a cell that hung for an answer, and an old pace for today's. */
	for (i = 0; i < known->count; i++)
		if (has_answer(&known->records[i]) &&
		    strcmp(known->records[i].stage, TIMING_STAGE) != 0)
			known->records[kept++] = known->records[i];
	known->count = kept;
	ret = e->kind == EXPERIMENT_PAPER ? pace_grid(e, s) : 0;
	if (ret == 0)
		ret = run_cells(e, s);
	/* Also what other runs have put there: a grid may take several. */
	status = read_journal(e->journal, &data);
	if (status == EXIT_PASS)
		status = experiment_tell(e, &data);
	journal_free(&data);
	printf("Journal: %s\n", e->journal);
	puts("Config:  left as it is: this was an experiment, not a calibration");
	if (ret == -EINTR) {
		puts("Interrupted: the same command with --resume goes on from here");
		return EXIT_INTERRUPTED;
	}
	if (ret == -EIO)
		return EXIT_CANNOT_WRITE;
	if (ret > 0)
		return EXIT_INCONCLUSIVE;
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "the experiment broke off");
	/* Other shards are not this run's business. */
	return e->shard.of > 1 && status == EXIT_INCONCLUSIVE ? EXIT_PASS : status;
}

int experiment_merge(struct experiment *e, char *const *journals, int count)
{
	struct journal_data data = { 0 };
	int status = experiment_prepare(e, NULL, NULL);

	for (int i = 0; i < count && status == EXIT_PASS; i++)
		status = read_journal(journals[i], &data);
	if (status == EXIT_PASS && data.mixed) {
		error(0, 0, "these journals are of different machines");
		status = EXIT_USAGE;
	}
	if (status == EXIT_PASS) {
		/* The journals may come from a machine with other CPUs than this one. */
		for (size_t i = 0; i < data.count; i++) {
			const struct cell_record *r = &data.records[i];

			for (size_t k = 0; strcmp(r->stage, e->name) == 0 && k < e->cells.count;
			     k++)
				if (e->cells.at[k].cell.executors == r->cell.executors)
					e->cells.at[k].cell.placement = r->cell.placement;
		}
		status = experiment_tell(e, &data);
	}
	journal_free(&data);
	cells_free(&e->cells);
	return status;
}
