/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/experiment.h"

#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/experiment/paper_run.h"
#include "calibrate/experiment/tail_run.h"
#include "calibrate/program/exit_status.h"
#include "results/figures/figure.h"

enum experiment_kind experiment_find(const char *plan)
{
	if (strcmp(plan, "paper") == 0)
		return EXPERIMENT_PAPER;
	return strcmp(plan, "tail") == 0 ? EXPERIMENT_TAIL : EXPERIMENT_NONE;
}

const char *experiment_name(const struct experiment *e)
{
	return e->kind == EXPERIMENT_PAPER ? "paper" : tail_name(&e->tail);
}

int experiment_prepare(struct experiment *e, hwloc_topology_t topology, double budget)
{
	char reason[160];
	int ret;

	if (e->kind == EXPERIMENT_TAIL) {
		tail_plan_make(&e->tail, budget, e->fifo);
		ret = e->fifo ? tail_fifo() : 0;
		if (ret == 0)
			return EXIT_PASS;
		error(0, -ret, "no real-time priority for this user");
		return EXIT_MISSING;
	}
	if (paper_seat(&e->paper, topology, reason, sizeof(reason)) == 0)
		return EXIT_PASS;
	error(0, 0, "%s", reason);
	return EXIT_MISSING;
}

/* --- What the journals hold --------------------------------------------------------- */

static int read_journal(const char *path, struct journal_data *data)
{
	size_t skipped = data->skipped;
	int ret = journal_read(path, data);

	if (ret < 0) {
		error(0, -ret, "cannot read journal %s", path);
		return EXIT_MISSING;
	}
	if (data->skipped > skipped)
		error(0, 0, "%s: %zu unreadable lines skipped", path, data->skipped - skipped);
	return EXIT_PASS;
}

static void draw_figure(const struct experiment *e, const struct journal_data *data)
{
	char why[256] = "";

	if (!e->figure)
		return;
	if (figure9_write_oracle(data, ORACLE_CRASH, e->figure, why, sizeof(why)) == 0)
		printf("Figure:  %s.svg, %s.png (data: %s.dat)\n", e->figure, e->figure, e->figure);
	else
		error(0, 0, "no figure: %s", why);
}

static int tell_outcome(const struct experiment *e, const struct journal_data *data)
{
	int missing;

	if (e->kind == EXPERIMENT_TAIL) {
		tail_tell(&e->tail, data);
		return EXIT_PASS;
	}
	missing = paper_tell(&e->paper, data);
	draw_figure(e, data);
	if (missing < 0)
		return EXIT_INTERNAL;
	return missing ? EXIT_INCONCLUSIVE : EXIT_PASS;
}

/* Also what other runs have put there: a grid may take several. */
static int tell_journal(const struct experiment *e)
{
	struct journal_data data = { 0 };
	int status = read_journal(e->journal, &data);

	if (status == EXIT_PASS)
		status = tell_outcome(e, &data);
	journal_free(&data);
	printf("Journal: %s\n", e->journal);
	puts("Config:  left as it is: this was an experiment, not a calibration");
	return status;
}

/* --- Running -------------------------------------------------------------------------- */

static int run_cells(struct experiment *e, struct session *s, const struct plan *plan)
{
	if (e->kind == EXPERIMENT_TAIL)
		return tail_run(s, &e->tail, &plan->seat[0]);
	return paper_run(s, &e->paper, &e->shard);
}

int experiment_run(struct experiment *e, struct session *s, const struct plan *plan)
{
	int status, ret = run_cells(e, s, plan);

	status = tell_journal(e);
	if (ret == -EINTR) {
		puts("Interrupted: the same command with --resume goes on from here");
		return EXIT_INTERRUPTED;
	}
	if (ret == -EIO)
		return EXIT_CANNOT_WRITE;
	if (ret > 0)
		return EXIT_INCONCLUSIVE;
	if (ret < 0) {
		error(0, -ret, "the experiment broke off");
		return EXIT_MISSING;
	}
	/* Other shards are not this run's business. */
	return e->shard.of > 1 && status == EXIT_INCONCLUSIVE ? EXIT_PASS : status;
}

int experiment_merge(struct experiment *e, char *const *journals, int count)
{
	struct journal_data data = { 0 };
	int status = EXIT_PASS;

	for (int i = 0; i < count && status == EXIT_PASS; i++)
		status = read_journal(journals[i], &data);
	if (status == EXIT_PASS && data.mixed) {
		error(0, 0, "these journals are of different machines");
		status = EXIT_USAGE;
	}
	if (status == EXIT_PASS) {
		paper_seat_as(&e->paper, &data);
		status = tell_outcome(e, &data);
	}
	journal_free(&data);
	return status;
}
