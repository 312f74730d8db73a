/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/tail_run.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "results/journal/gap_record.h"
#include "stress/run/gap.h"

#define EVENTS_PRINTED 40

int tail_fifo(void)
{
	struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };

	return sched_setscheduler(0, SCHED_FIFO, &lowest) ? -errno : 0;
}

/* --- Running ----------------------------------------------------------------------- */

/* How far the plan has got. */
struct course {
	struct session *session;
	struct tail_plan *plan;
	const struct seat *seat;
	uint64_t done[TAIL_ARMS_MAX]; /* cells of each arm */
	uint64_t turn;		      /* cells of all */
};

static bool is_known_gap(const struct session *s, const struct cell *cell)
{
	const json_t *line, *of;
	size_t i;

	json_array_foreach(s->known.others, i, line)
	{
		const char *type = json_string_value(json_object_get(line, "type"));

		of = json_object_get(line, "cell");
		if (type && strcmp(type, "gaps") == 0 &&
		    (uint64_t)json_integer_value(json_object_get(of, "seed")) == cell->seed)
			return true;
	}
	return false;
}

static int keep_gaps(struct session *s, const struct cell *cell, const struct gap_result *result)
{
	json_t *body = gap_to_json(cell, result);
	int ret = body ? journal_write_line(s->journal, "gaps", body) : -ENOMEM;

	json_decref(body);
	if (ret == 0)
		return 0;
	progress_end(&s->progress);
	error(0, -ret, "cannot write the journal");
	return -EIO;
}

static int run_gaps(struct session *s, const struct cell *cell)
{
	struct run_options how = { .topology = s->topology, .stop = s->stop };
	static struct gap_result result;
	int ret;

	if (is_known_gap(s, cell)) {
		s->used += cell->seconds;
		return 0;
	}
	progress_begin_cell(&s->progress, cell, session_left(s));
	ret = gap_run(cell, &how, &result);
	if (ret < 0)
		return ret;
	if (result.outcome == OUTCOME_ERROR)
		return result.error;
	ret = keep_gaps(s, cell, &result);
	return ret == 0 && *s->stop ? -EINTR : ret;
}

static int run_turn(struct course *c, unsigned arm)
{
	const struct tail_arm *a = &c->plan->arm[arm];
	const struct cell_record *record;
	char stage[sizeof(record->stage)];
	struct cell cell;

	tail_cell(c->plan, arm, c->seat, c->session->seed, c->turn, &cell);
	progress_stage(&c->session->progress, a->name);
	if (a->gaps)
		return run_gaps(c->session, &cell);
	return session_run(c->session, tail_stage(c->plan, arm, stage, sizeof(stage)),
			   (unsigned)c->turn, &cell, &record);
}

/* An arm that this machine cannot run once it can never run. */
static void drop(struct course *c, unsigned arm, int ret)
{
	struct tail_plan *plan = c->plan;

	progress_end(&c->session->progress);
	error(0, -ret, "arm %s not run here", plan->arm[arm].name);
	plan->arms--;
	for (unsigned i = arm; i < plan->arms; i++) {
		plan->arm[i] = plan->arm[i + 1];
		c->done[i] = c->done[i + 1];
	}
}

static bool ends_all(int error)
{
	return error == -EINTR || error == -EIO || error == -ENOMEM;
}

int tail_run(struct session *s, struct tail_plan *plan, const struct seat *seat)
{
	struct course c = { .session = s, .plan = plan, .seat = seat };
	int ret = 0;

	while (ret == 0 && plan->arms && session_left(s) > 0) {
		unsigned arm = tail_next(plan, c.done);

		ret = run_turn(&c, arm);
		c.turn++;
		if (ret == 0)
			c.done[arm]++;
		if (ret < 0 && !ends_all(ret)) {
			drop(&c, arm, ret);
			ret = plan->arms ? 0 : -ENOENT;
		}
	}
	progress_end(&s->progress);
	return ret;
}

/* --- The table ----------------------------------------------------------------------- */

static void print_sum(const char *name, const char *regime, const struct tail_sum *sum)
{
	printf("%-13s %-7s %5zu %10.3g %6" PRIu64 " %6" PRIu64 " %6" PRIu64 "  %.2g (%.2g to %.2g)",
	       name, regime, sum->cells, (double)sum->toggles, sum->tears[TEAR_OLD_FRONT],
	       sum->tears[TEAR_NEW_FRONT], sum->tears[TEAR_OTHER], sum->band.rate, sum->band.lower,
	       sum->band.upper);
	if (sum->latency[1])
		printf("  %" PRIu64 " to %" PRIu64, sum->latency[0], sum->latency[1]);
	putchar('\n');
}

static void print_arm(const struct tail_plan *plan, unsigned arm, const struct cell_record *records,
		      size_t count)
{
	struct tail_sum all, near, far;

	tail_sum(&all, plan, arm, TAIL_ALL, records, count);
	tail_sum(&near, plan, arm, TAIL_NEAR, records, count);
	tail_sum(&far, plan, arm, TAIL_DISTANT, records, count);
	print_sum(plan->arm[arm].name, "all", &all);
	if (!near.cells || !far.cells)
		return;
	print_sum("", "near", &near);
	print_sum("", "far", &far);
}

static void print_event(const char *arm, const struct tear_event *e)
{
	printf("%-13s %-9s %8" PRId64 " %9" PRId64 "  %" PRIu64 "/%" PRIu64 "/%" PRIu64 "  %" PRIu64
	       "/%" PRIu64 "  %" PRIu64 "/%" PRIu64 "\n",
	       arm, tear_kind_name(e->kind), e->after_int3, e->after_front, e->latency[0],
	       e->latency[1], e->latency[2], e->waited[0], e->waited[1], e->step[0], e->step[1]);
}

static void print_arm_events(const struct tail_plan *plan, unsigned arm,
			     const struct cell_record *records, size_t count, unsigned *events)
{
	char stage[sizeof(records->stage)];

	tail_stage(plan, arm, stage, sizeof(stage));
	for (size_t i = 0; i < count; i++) {
		const struct cell_result *r = &records[i].result;

		if (strcmp(records[i].stage, stage) != 0)
			continue;
		for (unsigned e = 0; e < r->events; e++, ++*events) {
			if (*events == 0)
				puts("Tears, in ticks: since INT3, since the end of the patch, "
				     "latency of the stores, waits, their longest steps");
			if (*events < EVENTS_PRINTED)
				print_event(plan->arm[arm].name, &r->event[e]);
		}
	}
}

static void print_events(const struct tail_plan *plan, const struct cell_record *records,
			 size_t count)
{
	unsigned events = 0;

	for (unsigned arm = 0; arm < plan->arms; arm++)
		print_arm_events(plan, arm, records, count, &events);
	if (events > EVENTS_PRINTED)
		printf("%u more are in the journal\n", events - EVENTS_PRINTED);
}

/* --- Gaps ------------------------------------------------------------------------------ */

struct gap_sum {
	size_t runs;
	uint64_t stores;
	uint64_t count[GAP_KINDS];
	uint64_t longest[GAP_KINDS];
};

static uint64_t number_in(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

static void add_kind(struct gap_sum *sum, const json_t *kind)
{
	const char *name = json_string_value(json_object_get(kind, "kind"));
	json_int_t longest = json_integer_value(json_array_get(json_object_get(kind, "tail"), 0));

	for (int k = 0; name && k < GAP_KINDS; k++) {
		if (strcmp(name, gap_kind_name((enum gap_kind)k)) != 0)
			continue;
		sum->count[k] += number_in(kind, "count");
		if (longest > 0 && (uint64_t)longest > sum->longest[k])
			sum->longest[k] = (uint64_t)longest;
	}
}

static void add_gaps(struct gap_sum *sum, const json_t *line, enum crossing crossing)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	const char *name =
		json_string_value(json_object_get(json_object_get(line, "cell"), "crossing"));
	const json_t *kind;
	size_t i;

	if (!type || strcmp(type, "gaps") != 0 || !name || crossing_parse(name) != (int)crossing)
		return;
	sum->runs++;
	sum->stores += number_in(line, "stores");
	json_array_foreach(json_object_get(line, "kinds"), i, kind) add_kind(sum, kind);
}

static void print_gaps(const struct tail_arm *arm, const json_t *lines)
{
	struct gap_sum sum = { 0 };
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line) add_gaps(&sum, line, arm->crossing);
	printf("%-13s %zu runs, %.3g stores", arm->name, sum.runs, (double)sum.stores);
	for (int k = 0; k < GAP_KINDS; k++) {
		printf("; %s %" PRIu64, gap_kind_name((enum gap_kind)k), sum.count[k]);
		if (sum.count[k])
			printf(", the longest %" PRIu64 " ticks", sum.longest[k]);
	}
	putchar('\n');
}

/* --- Together ---------------------------------------------------------------------------- */

void tail_tell(const struct tail_plan *plan, const struct journal_data *data)
{
	printf("%-13s %-7s %5s %10s %6s %6s %6s  %s  %s\n", "arm", "CPUs", "cells", "toggles",
	       "old-f", "new-f", "other", "tears per toggle (95 %)", "latency");
	for (unsigned arm = 0; arm < plan->arms; arm++)
		if (!plan->arm[arm].gaps)
			print_arm(plan, arm, data->records, data->count);
	printf("near, far: half a round trip of a cache line took less than %d ticks, or more\n",
	       TAIL_FAR);
	print_events(plan, data->records, data->count);
	for (unsigned arm = 0; arm < plan->arms; arm++)
		if (plan->arm[arm].gaps)
			print_gaps(&plan->arm[arm], data->others);
}
