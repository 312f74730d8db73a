/* SPDX-License-Identifier: MIT */
/* What journals hold of an experiment, on stdout. */
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "calibrate/experiment/experiment.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/statistics/sums.h"
#include "results/figures/figure.h"
#include "results/journal/journal.h"
#include "stress/base/number.h"
#include "stress/run/gap.h"
#include "stress/witness/witness.h"

#define EVENTS_PRINTED 40

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
	printf("%-13s %" PRIu64 " runs, %s stores", name, runs, NUMBER(stores));
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
	printf("The paper's grid: %zu cells, %zu there, %zu missing\n", count,
	       count - there.missing, there.missing);
	if (there.doubled)
		printf("  %zu runs of cells that were there already count as well\n",
		       there.doubled);
	if (there.other)
		printf("  %zu runs belong to another grid: other toggles, rest or seed\n",
		       there.other);
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

int experiment_tell(const struct experiment *e, const struct journal_data *data)
{
	if (e->kind == EXPERIMENT_PAPER)
		return tell_paper(e, data);
	tell_stages(e, data);
	return EXIT_PASS;
}
