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
		if (done)
			s->budget = s->used + (seconds_now() - s->begin) *
						      (1 + (double)((count - i) / e->shard.of) /
								   (double)done);
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
