/* SPDX-License-Identifier: MIT */
/* An experiment's cells one by one into its journal, and what that tells. */
#include <errno.h>
#include <error.h>
#include <string.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/program/exit_status.h"
#include "results/figures/figure.h"
#include "results/journal/journal.h"
#include "stress/run/gap.h"

/* A session would take a cell that hung for an answer, and an old pace for today's. */
static void forget_no_answers(struct journal_data *known)
{
	size_t kept = 0;

	for (size_t i = 0; i < known->count; i++)
		if (has_answer(&known->records[i]) &&
		    strcmp(known->records[i].stage, TIMING_STAGE) != 0)
			known->records[kept++] = known->records[i];
	known->count = kept;
}

/* A run of the gap oracle is known by its command. */
static bool is_known_gap(const struct session *s, const struct cell *cell)
{
	const json_t *line;
	char command[512];
	size_t i;

	gap_command(cell, command, sizeof(command));
	json_array_foreach(s->known.others, i, line)
	{
		const char *known = json_string_value(json_object_get(line, "command"));

		if (known && strcmp(known, command) == 0)
			return true;
	}
	return false;
}

/* 1: it has an answer. */
static int run_gaps(struct session *s, const struct cell *cell)
{
	struct run_options how = { .topology = s->topology, .stop = s->stop };
	static struct gap_result result;
	json_t *body;
	int ret;

	if (is_known_gap(s, cell)) {
		s->used += cell->seconds;
		return 1;
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

/* 1: it has an answer. */
static int run_cell(const struct experiment *e, struct session *s, size_t i)
{
	const struct listed *l = experiment_line(e, i);
	const char *name = l->name[0] ? l->name : e->name;
	const struct cell_record *record;
	char stage[sizeof(record->stage)];
	struct cell cell;
	unsigned run = experiment_cell(e, i, &cell);
	int ret;

	if (s->progress.stage != name)
		progress_stage(&s->progress, name);
	if (l->gaps)
		return run_gaps(s, &cell);
	ret = session_run(s, experiment_stage(e, l, stage), run, &cell, &record);
	return ret < 0 ? ret : has_answer(record);
}

/* What this machine cannot run once it can never run. 0, or -ENOENT: nothing else is left. */
static int leave_out(struct cells *cells, const struct listed *which)
{
	size_t left = 0;

	for (struct listed *l = cells->at; l < cells->at + cells->count; l++) {
		l->left_out |= same_cell(l, which);
		left += !l->left_out;
	}
	return left ? 0 : -ENOENT;
}

/* 0: all of it has an answer; 1: some cell hung, was killed or left out. */
static int run_cells(struct experiment *e, struct session *s)
{
	bool ends = e->repetitions, unanswered = false;
	size_t count = ends ? experiment_count(e) : SIZE_MAX;
	char stage[sizeof(((struct cell_record *)0)->stage)];
	int ret = 0;

	for (size_t i = e->shard.number - 1; ret >= 0 && i < count; i += e->shard.of) {
		struct listed *l = experiment_line(e, i);

		if (!ends && session_left(s) <= 0)
			break;
		ret = l->left_out ? 0 : run_cell(e, s, i);
		unanswered |= ret == 0;
		if (ret >= 0 || ret == -EINTR || ret == -EIO || ret == -ENOMEM)
			continue;
		progress_end(&s->progress);
		error(0, -ret, "%s not run here", experiment_stage(e, l, stage));
		unanswered = true;
		ret = leave_out(&e->cells, l);
	}
	progress_end(&s->progress);
	return ret < 0 ? ret : ends && unanswered;
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

static int tell_outcome(const struct experiment *e, const struct journal_data *data)
{
	char why[256] = "";
	int missing;

	if (e->kind != EXPERIMENT_PAPER) {
		tell_stages(e, data);
		return EXIT_PASS;
	}
	missing = tell_paper(e, data);
	if (e->figure && figure9_write_oracle(data, ORACLE_CRASH, e->figure, why, sizeof(why)) == 0)
		printf("Figure:  %s.svg, %s.png (data: %s.dat)\n", e->figure, e->figure, e->figure);
	else if (e->figure)
		error(0, 0, "no figure: %s", why);
	if (missing < 0)
		return EXIT_INTERNAL;
	return missing ? EXIT_INCONCLUSIVE : EXIT_PASS;
}

int experiment_run(struct experiment *e, struct session *s)
{
	struct journal_data data = { 0 };
	int status, ret;

	forget_no_answers(&s->known);
	ret = e->kind == EXPERIMENT_PAPER ? pace_grid(e, s) : 0;
	if (ret == 0)
		ret = run_cells(e, s);
	/* Also what other runs have put there: a grid may take several. */
	status = read_journal(e->journal, &data);
	if (status == EXIT_PASS)
		status = tell_outcome(e, &data);
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

/* The journals may come from a machine with other CPUs than this one. */
static void seat_as_recorded(struct experiment *e, const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		for (size_t k = 0; strcmp(r->stage, e->name) == 0 && k < e->cells.count; k++)
			if (e->cells.at[k].cell.executors == r->cell.executors)
				e->cells.at[k].cell.placement = r->cell.placement;
	}
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
		seat_as_recorded(e, &data);
		status = tell_outcome(e, &data);
	}
	journal_free(&data);
	cells_free(&e->cells);
	return status;
}
