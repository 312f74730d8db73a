/* SPDX-License-Identifier: MIT */
/* An experiment's cells one by one into its journal, and what that tells. */
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/number.h"
#include "calibrate/experiment/experiment.h"
#include "calibrate/statistics/sums.h"
#include "results/journal/journal.h"
#include "stress/run/gap.h"
#include "stress/witness/witness.h"

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
	ret = session_written(s, body ? journal_write_line(s->journal, "gaps", body) : -ENOMEM);
	json_decref(body);
	if (ret < 0)
		return ret;
	return *s->stop ? -EINTR : result.outcome == OUTCOME_DONE;
}

/* 0: all of it has an answer; 1: some cell hung, was killed or left out. */
static int run_cells(struct experiment *e, struct session *s)
{
	size_t left, count = e->cells.count * e->repetitions, done = 0;
	bool unanswered = false;
	const struct cell_record *record;
	char stage[sizeof(record->stage)];
	double used;
	int ret = 0;

	for (size_t i = e->shard.number - 1; ret >= 0 && i < count; i += e->shard.of) {
		struct listed *l = experiment_line(e, i);
		const char *name = l->name[0] ? l->name : e->name;
		struct cell cell;
		unsigned run = experiment_cell(e, i, &cell);

		/* For the time left that the progress shows: the others take as long. */
		s->budget = done ? s->used + (seconds_now() - s->begin) *
						     (1 + (double)((count - i) / e->shard.of) /
								  (double)done)
				 : 0;
		used = s->used;
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
		done += !(s->used > used);
		if (ret >= 0 || ret == -EINTR || ret == -EIO || ret == -ENOMEM)
			continue;
		progress_end(&s->progress);
		error(0, -ret, "%s not run here", stage);
		unanswered = true;
		/* What this machine cannot run once it can never run. */
		left = 0;
		for (struct listed *k = e->cells.at; k < e->cells.at + e->cells.count; k++) {
			k->left_out |= is_same_cell(k, l);
			left += !k->left_out;
		}
		ret = left ? 0 : -ENOENT;
	}
	progress_end(&s->progress);
	return ret < 0 ? ret : unanswered;
}

/* --- Stage by stage -------------------------------------------------------------------------- */

struct stage_sum stage_sum(const char *stage, enum distance at, const struct journal_data *data)
{
	struct stage_sum sum = { 0 };

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_result *r = &data->records[i].result;

		if (strcmp(data->records[i].stage, stage) != 0)
			continue;
		/* Threads on one CPU have no distance, and the dead tell nothing. */
		if (at != DISTANCES && witness_distance(&r->witness) != at)
			continue;
		sum.cells++;
		sum.toggles += r->toggles;
		for (int kind = 0; kind < TEAR_KINDS; kind++)
			sum.tears[kind] += r->tears[kind];
		sum.all += cell_result_tears(r);
	}
	sum.lower = bound_lower(sum.all, sum.toggles, bound_confidence_each(CONFIDENCE, 2));
	sum.upper = bound_upper(sum.all, sum.toggles, bound_confidence_each(CONFIDENCE, 2));
	return sum;
}

static void print_stage(const char *name, const char *stage, const struct journal_data *data)
{
	bool both = stage_sum(stage, DISTANCE_NEAR, data).cells &&
		    stage_sum(stage, DISTANCE_FAR, data).cells;

	for (int i = 0; i < (both ? 3 : 1); i++) {
		enum distance at = i == 0 ? DISTANCES : (enum distance)(i - 1);
		struct stage_sum sum = stage_sum(stage, at, data);

		printf("%-13s %-7s %5zu %10s %6" PRIu64 " %6" PRIu64 " %6" PRIu64
		       "  %s (%s to %s)\n",
		       i == 0 ? name : "", i == 0 ? "all" : distance_name(at), sum.cells,
		       NUMBER(sum.toggles), sum.tears[TEAR_OLD_FRONT], sum.tears[TEAR_NEW_FRONT],
		       sum.tears[TEAR_OTHER],
		       NUMBER(sum.toggles ? (double)sum.all / (double)sum.toggles : 0),
		       NUMBER(sum.lower), NUMBER(sum.upper));
	}
}

static void tell_stages(const struct experiment *e, const struct journal_data *data)
{
	char stage[sizeof(data->records->stage)];
	const struct listed *l, *k;

	printf("%-13s %-7s %5s %10s %6s %6s %6s  %s\n", "name", "CPUs", "cells", "toggles", "old-f",
	       "new-f", "other", "tears per toggle (95 %)");
	for (l = e->cells.at; l < e->cells.at + e->cells.count; l++) {
		/* The first line of its name that runs in this machine tells of all. */
		for (k = e->cells.at; k < l; k++)
			if (!k->left_out && !k->gaps && strcmp(k->name, l->name) == 0)
				break;
		if (k == l && !l->left_out && !l->gaps)
			print_stage(l->name[0] ? l->name : e->name, experiment_stage(e, l, stage),
				    data);
	}
	printf("near, far: half a round trip of a cache line took less than %d ticks, or more\n"
	       "tmax report makes a page of the journal: each tear, fetch gaps, figures\n",
	       DISTANCE_TICKS);
}

int experiment_run(struct experiment *e, struct session *s)
{
	struct journal_data data = { 0 }, *known = &s->known;
	size_t i, kept = 0;
	int ret, read, status = EXIT_PASS;

	/* A session would take a cell that hung for an answer. */
	for (i = 0; i < known->count; i++)
		if (has_answer(&known->records[i]))
			known->records[kept++] = known->records[i];
	known->count = kept;
	ret = run_cells(e, s);
	/* Also what other runs have put there: a list may take several. */
	read = journal_read(e->journal, &data);
	if (read == 0)
		tell_stages(e, &data);
	else
		status = complain(EXIT_MISSING, read, "cannot read journal %s", e->journal);
	if (data.skipped)
		error(0, 0, "%s: %zu unreadable line%s skipped", e->journal, data.skipped,
		      S(data.skipped));
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
	return status;
}
