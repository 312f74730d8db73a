/* SPDX-License-Identifier: MIT */
/* An experiment's cells one by one into its journal, and what that tells. */
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/statistics/sums.h"
#include "results/figures/figure.h"
#include "results/journal/journal.h"
#include "stress/base/clock.h"
#include "stress/base/exit_status.h"
#include "stress/base/number.h"
#include "stress/run/gap.h"
#include "stress/witness/witness.h"

#define EVENTS_PRINTED 40 /* tears */

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

char *tell_duration(double seconds, char *buf, size_t size)
{
	uint64_t minutes = (uint64_t)(seconds / 60 + 0.5), hours = minutes / 60;

	if (seconds < 90)
		snprintf(buf, size, "%.0f s", ceil(seconds));
	else if (hours < 1)
		snprintf(buf, size, "%" PRIu64 " min", minutes);
	else if (hours < 24)
		snprintf(buf, size, "%" PRIu64 " h %" PRIu64 " min", hours, minutes % 60);
	else
		snprintf(buf, size, "%" PRIu64 " d %" PRIu64 " h", hours / 24, hours % 24);
	return buf;
}

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
	printf("The paper's grid: %zu cell%s of %" PRIu64 " toggle%s", count, S(count),
	       e->cells.at[0].cell.toggles, S(e->cells.at[0].cell.toggles));
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

/* --- Stage by stage -------------------------------------------------------------------------- */

struct stage_sum stage_sum(const char *stage, enum distance at, const struct journal_data *data)
{
	struct stage_sum sum = { 0 };

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_result *r = &data->records[i].result;
		uint64_t median = r->latency.median;

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
		if (median && (sum.latency[0] == 0 || median < sum.latency[0]))
			sum.latency[0] = median;
		if (median > sum.latency[1])
			sum.latency[1] = median;
	}
	sum.band = bound_band(sum.all, sum.toggles, CONFIDENCE);
	return sum;
}

static void print_stage(const char *name, const char *stage, const struct journal_data *data)
{
	bool both = stage_sum(stage, DISTANCE_NEAR, data).cells &&
		    stage_sum(stage, DISTANCE_FAR, data).cells;

	for (int i = 0; i < (both ? 3 : 1); i++) {
		enum distance at = i == 0 ? DISTANCES : (enum distance)(i - 1);
		struct stage_sum sum = stage_sum(stage, at, data);

		printf("%-13s %-7s %5zu %10s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 "  %s (%s to %s)",
		       i == 0 ? name : "", i == 0 ? "all" : distance_name(at), sum.cells,
		       NUMBER(sum.toggles), sum.tears[TEAR_OLD_FRONT], sum.tears[TEAR_NEW_FRONT],
		       sum.tears[TEAR_OTHER], NUMBER(sum.band.rate), NUMBER(sum.band.lower),
		       NUMBER(sum.band.upper));
		if (sum.latency[1])
			printf("  %" PRIu64 " to %" PRIu64, sum.latency[0], sum.latency[1]);
		putchar('\n');
	}
}

/* Returns how many tears there are now. */
static unsigned print_events(const char *name, const char *stage, const struct journal_data *data,
			     unsigned events)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_result *r = &data->records[i].result;

		if (strcmp(data->records[i].stage, stage) != 0)
			continue;
		for (const struct tear_event *e = r->event; e < r->event + r->events; e++) {
			if (events == 0)
				puts("Tears, in ticks: since INT3, since the end of the patch, "
				     "latency of the stores, waits, their longest steps");
			if (events++ >= EVENTS_PRINTED)
				continue;
			printf("%-13s %-9s %8" PRId64 " %9" PRId64 "  %" PRIu64 "/%" PRIu64
			       "/%" PRIu64 "  %" PRIu64 "/%" PRIu64 "  %" PRIu64 "/%" PRIu64 "\n",
			       name, tear_kind_name(e->kind), e->after_int3, e->after_front,
			       e->latency[0], e->latency[1], e->latency[2], e->waited[0],
			       e->waited[1], e->step[0], e->step[1]);
		}
	}
	return events;
}

static uint64_t number_of(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

/* The runs of the gap oracle across such a boundary, added up. */
static void print_gaps(const char *name, enum crossing crossing, const json_t *lines)
{
	uint64_t runs = 0, stores = 0, count[GAP_KINDS] = { 0 };
	json_int_t longest[GAP_KINDS] = { 0 };
	const json_t *line, *kind;
	size_t i, j;

	json_array_foreach(lines, i, line)
	{
		const char *across = json_text_of(json_object_get(line, "cell"), "crossing");

		if (strcmp(json_text_of(line, "type"), "gaps") != 0 ||
		    crossing_parse(across) != (int)crossing)
			continue;
		runs++;
		stores += number_of(line, "stores");
		json_array_foreach(json_object_get(line, "kinds"), j, kind)
		{
			const char *its = json_string_value(json_object_get(kind, "kind"));
			json_int_t first = json_integer_value(
				json_array_get(json_object_get(kind, "tail"), 0));

			for (int k = 0; its && k < GAP_KINDS; k++) {
				if (strcmp(its, gap_kind_name((enum gap_kind)k)) != 0)
					continue;
				count[k] += number_of(kind, "count");
				if (first > longest[k])
					longest[k] = first;
			}
		}
	}
	printf("%-13s %" PRIu64 " run%s, %s stores", name, runs, S(runs), NUMBER(stores));
	for (int k = 0; k < GAP_KINDS; k++) {
		printf("; %s %" PRIu64, gap_kind_name((enum gap_kind)k), count[k]);
		if (count[k])
			printf(", the longest %" JSON_INTEGER_FORMAT " ticks", longest[k]);
	}
	putchar('\n');
}

/* Is it the first line of its name that runs in this machine? */
static bool begins_stage(const struct experiment *e, const struct listed *l)
{
	for (const struct listed *k = e->cells.at; k < l; k++)
		if (!k->left_out && k->gaps == l->gaps && strcmp(k->name, l->name) == 0)
			return false;
	return !l->left_out;
}

static void tell_stages(const struct experiment *e, const struct journal_data *data)
{
	const struct listed *end = e->cells.at + e->cells.count;
	char stage[sizeof(data->records->stage)];
	unsigned events = 0;

	printf("%-13s %-7s %5s %10s %6s %6s %6s  %s  %s\n", "arm", "CPUs", "cells", "toggles",
	       "old-f", "new-f", "other", "tears per toggle (95 %)", "latency");
	for (const struct listed *l = e->cells.at; l < end; l++)
		if (!l->gaps && begins_stage(e, l))
			print_stage(l->name[0] ? l->name : e->name, experiment_stage(e, l, stage),
				    data);
	printf("near, far: half a round trip of a cache line took less than %d ticks, or more\n",
	       DISTANCE_TICKS);
	for (const struct listed *l = e->cells.at; l < end; l++)
		if (!l->gaps && begins_stage(e, l))
			events = print_events(l->name[0] ? l->name : e->name,
					      experiment_stage(e, l, stage), data, events);
	if (events > EVENTS_PRINTED)
		printf("%u more are in the journal\n", events - EVENTS_PRINTED);
	for (const struct listed *l = e->cells.at; l < end; l++)
		if (l->gaps && begins_stage(e, l))
			print_gaps(l->name[0] ? l->name : e->name, l->cell.crossing, data->others);
}

/* --- The paper's grid ------------------------------------------------------------------------ */

/* The runs with so many executors so placed; of all with 0. */
static void print_runs(const struct experiment *e, const struct journal_data *data,
		       unsigned executors, enum placement placement)
{
	uint64_t highest = 0, above = 0;
	size_t runs = 0, failed = 0;
	char what[64] = "all";

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < data->count; i++) {
			const struct cell_record *r = &data->records[i];

			if (strcmp(r->stage, e->name) != 0 || !figure9_takes(r, ORACLE_CRASH) ||
			    (executors &&
			     (r->cell.executors != executors || r->cell.placement != placement)))
				continue;
			if (pass && (!failed || r->cell.waits.first > highest))
				above += r->result.toggles;
			if (pass)
				continue;
			runs++;
			failed += r->result.outcome == OUTCOME_CRASH;
			if (r->result.outcome == OUTCOME_CRASH && r->cell.waits.first > highest)
				highest = r->cell.waits.first;
		}
	}
	if (executors)
		snprintf(what, sizeof(what), "N %u, %s", executors, placement_name(placement));
	printf("  %-24s %zu of %zu runs failed", what, failed, runs);
	if (failed)
		printf(", the last at %" PRIu64 " ticks", highest);
	if (above)
		printf("; %s in %s toggles: p < %s", failed ? "none above" : "none", NUMBER(above),
		       NUMBER(bound_upper(0, above, CONFIDENCE)));
	putchar('\n');
}

/* A grid of which cells are missing is inconclusive. */
static int tell_paper(const struct experiment *e, const struct journal_data *data)
{
	size_t count = experiment_count(e);
	struct there there;
	char why[256] = "";

	if (experiment_look(e, data, NULL, &there) < 0)
		return EXIT_INTERNAL;
	printf("The paper's grid: %zu cell%s, %zu there, %zu missing\n", count, S(count),
	       count - there.missing, there.missing);
	if (there.doubled)
		printf("  %zu run%s of cells that were there already count%s as well\n",
		       there.doubled, S(there.doubled), there.doubled == 1 ? "s" : "");
	if (there.other)
		printf("  %zu run%s belong%s to another grid: other toggles, rest or seed\n",
		       there.other, S(there.other), there.other == 1 ? "s" : "");
	print_runs(e, data, 0, PLACEMENT_SPREAD);
	for (unsigned n = 1; n <= EXECUTORS_MOST; n++)
		for (size_t i = 0; i < e->cells.count; i++)
			if (e->cells.at[i].cell.executors == n) {
				print_runs(e, data, n, e->cells.at[i].cell.placement);
				break;
			}
	if (e->figure && figure9_write(data, ORACLE_CRASH, e->figure, why, sizeof(why)) == 0)
		printf("Figure:  %s.svg, %s.png (data: %s.dat)\n", e->figure, e->figure, e->figure);
	else if (e->figure)
		error(0, 0, "no figure: %s", why);
	return there.missing ? EXIT_INCONCLUSIVE : EXIT_PASS;
}

/* --- What the journals hold ------------------------------------------------------------------ */

static int read_journal(const char *path, struct journal_data *data)
{
	size_t skipped = data->skipped;
	int ret = journal_read(path, data);

	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read journal %s", path);
	if (data->skipped > skipped)
		error(0, 0, "%s: %zu unreadable line%s skipped", path, data->skipped - skipped,
		      S(data->skipped - skipped));
	return EXIT_PASS;
}

/* Returns an exit status. */
static int tell_outcome(const struct experiment *e, const struct journal_data *data)
{
	if (e->kind == EXPERIMENT_PAPER)
		return tell_paper(e, data);
	tell_stages(e, data);
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
		status = tell_outcome(e, &data);
	}
	journal_free(&data);
	cells_free(&e->cells);
	return status;
}
