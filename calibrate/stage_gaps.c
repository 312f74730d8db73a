/* SPDX-License-Identifier: MIT */
/*
 * Gaps: the distribution of the fetch gap itself, and a fit of its tail. Where
 * the fit is accepted it proposes the waits that the campaign begins with.
 *
 * Everything is taken from the journal's lines, measured just now or by the run
 * that is resumed: both take the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/bound.h"
#include "calibrate/search_state.h"
#include "calibrate/tail_fit.h"
#include "patchcore/wait.h"
#include "results/gap_record.h"
#include "stress/clock.h"
#include "stress/gap.h"

#define ALL_SPLITS_FROM 1.0  /* seconds a run; below, split 3 alone */
#define CLOCK_SECONDS	0.02 /* to tell how fast the TSC runs */

static const enum crossing crossings[CLAIMS] = { CROSSING_LINE, CROSSING_PAGE };

static double ticks_per_second(void)
{
	double begin = seconds_now(), now;
	uint64_t ticks = ticks_now();

	do
		now = seconds_now();
	while (now - begin < CLOCK_SECONDS);
	return (double)(ticks_now() - ticks) / (now - begin);
}

/* --- The runs --- */

static json_t *find_known(const struct session *session, const char *command)
{
	json_t *line;
	size_t i;

	json_array_foreach(session->known.others, i, line)
	{
		const char *type = json_string_value(json_object_get(line, "type"));
		const char *of = json_string_value(json_object_get(line, "command"));

		if (type && of && strcmp(type, "gaps") == 0 && strcmp(of, command) == 0)
			return json_incref(line);
	}
	return NULL;
}

/* NULL with *ret 0: the run gave no answer, which is no reason to end the search. */
static json_t *measure(struct search *s, const struct cell *cell, int *ret)
{
	struct gap_result *result = malloc(sizeof(*result));
	struct run_options how = { .topology = s->session->topology, .stop = s->session->stop };
	json_t *body = NULL;

	*ret = result ? gap_run(cell, &how, result) : -ENOMEM;
	if (*ret == 0 && result->outcome == OUTCOME_DONE)
		body = gap_to_json(cell, result);
	free(result);
	if (*s->session->stop)
		*ret = -EINTR;
	if (body && *ret == 0 && s->session->journal)
		*ret = journal_write_line(s->session->journal, "gaps", body) < 0 ? -EIO : 0;
	return body;
}

static json_t *run_or_recall(struct search *s, const struct cell *cell, int *ret)
{
	char command[1024];
	json_t *known;

	*ret = 0;
	gap_command(cell, command, sizeof(command));
	known = find_known(s->session, command);
	if (known) {
		s->session->used += json_number_value(json_object_get(known, "seconds"));
		return known;
	}
	return measure(s, cell, ret);
}

/* --- The fits --- */

/* The numbers of an array, to be freed. */
static double *numbers_of(const json_t *array)
{
	size_t count = json_array_size(array);
	double *numbers = calloc(count ? count : 1, sizeof(*numbers));

	for (size_t i = 0; numbers && i < count; i++)
		numbers[i] = json_number_value(json_array_get(array, i));
	return numbers;
}

/*
 * Ticks that the run took. Its seconds are those of the stamped stores alone, which
 * take turns with others; the times of the gaps go through both.
 */
static double duration_of(const json_t *line, const double *time, size_t count)
{
	double duration = json_number_value(json_object_get(line, "seconds")) * ticks_per_second();

	for (size_t i = 0; i < count; i++)
		if (time[i] >= duration)
			duration = time[i] + 1;
	return duration;
}

static void propose(struct search *s, unsigned claim, bool first, double level)
{
	uint64_t *wait = first ? &s->proposed[claim].first : &s->proposed[claim].second;

	if (level > (double)*wait)
		*wait = (uint64_t)level;
}

static int write_fit(struct search *s, const struct tail_fit *fit, const struct cell *cell,
		     const char *kind)
{
	char names[PROVOKERS_MAX];
	struct tail_origin origin = {
		.source = "gaps",
		.crossing = crossing_name(cell->crossing),
		.kind = kind,
		.provokers = provokers_name(cell->provokers, names),
	};
	json_t *body = tail_fit_to_json(fit, &origin);
	int ret = 0;

	if (body && s->session->journal)
		ret = journal_write_line(s->session->journal, "tail", body) < 0 ? -EIO : 0;
	json_decref(body);
	return ret;
}

/* What the target asks for is published; what the promise asks for is tried. */
static int fit_sample(struct search *s, unsigned claim, const struct cell *cell, const char *kind,
		      struct tail_sample *sample)
{
	struct tail_fit fit;
	int ret = 0;

	sample->target_p = s->plan->target_p;
	if (tail_fit(sample, &fit) == 0)
		ret = write_fit(s, &fit, cell, kind);
	if (ret < 0)
		return ret;
	sample->target_p = s->plan->promise;
	if (tail_fit(sample, &fit) == 0 && fit.accepted)
		propose(s, claim, strcmp(kind, gap_kind_name(GAP_OLD_FRONT)) == 0, fit.level_upper);
	return 0;
}

static int fit_kind(struct search *s, unsigned claim, const struct cell *cell, const json_t *line,
		    const json_t *kind)
{
	const json_t *tail = json_object_get(kind, "tail");
	const char *name = json_string_value(json_object_get(kind, "kind"));
	double *gap = numbers_of(tail), *time = numbers_of(json_object_get(kind, "tail_times"));
	size_t count = json_array_size(tail);
	struct tail_sample sample = {
		.gap = gap,
		.time = time,
		.count = count,
		.stores = (uint64_t)json_integer_value(json_object_get(line, "stores")),
		.confidence = CONFIDENCE,
		.seed = cell->seed,
	};
	int ret = 0;

	if (gap && time && name && count) {
		sample.duration = duration_of(line, time, count);
		sample.granule = tail_granule(gap, count);
		ret = fit_sample(s, claim, cell, name, &sample);
	}
	free(gap);
	free(time);
	return ret;
}

static int gaps_of(struct search *s, unsigned claim, const struct arm *arm, unsigned split,
		   double seconds)
{
	const json_t *kind;
	struct cell cell;
	json_t *line;
	size_t i;
	int ret;

	if (session_left(s->session) < CELL_MIN)
		return 0;
	gap_defaults(&cell);
	cell.placement = s->plan->seat[0].placement;
	cell.executors = s->plan->seat[0].executors;
	cell.crossing = crossings[claim];
	cell.split = split;
	cell.seconds = seconds;
	cell.seed = (s->session->seed + claim) & INT64_MAX;
	/* What sites are beside the loop the gap oracle has no place for. */
	cell.provokers = arm->provokers & ~(1u << PROVOKER_SITES);
	cell.loop = arm->loop;
	line = run_or_recall(s, &cell, &ret);
	if (ret == 0)
		json_array_foreach(json_object_get(line, "kinds"), i, kind) ret =
			ret < 0 ? ret : fit_kind(s, claim, &cell, line, kind);
	json_decref(line);
	return ret;
}

int stage_gaps(struct search *s)
{
	/* None, and the worst if there is one. */
	unsigned arms = s->arms > 1 ? 2 : 1;
	double seconds = s->plan->budget * s->plan->fetch_gaps / (CLAIMS * arms * 3);
	bool all_splits = seconds >= ALL_SPLITS_FROM;
	int ret = 0;

	progress_stage(&s->session->progress, "gaps");
	if (!all_splits)
		seconds *= 3;
	for (unsigned claim = 0; claim < CLAIMS; claim++)
		for (unsigned a = 0; a < arms; a++)
			for (unsigned split = 2; split <= 4 && ret == 0; split++)
				if (all_splits || split == 3)
					ret = gaps_of(s, claim, &s->arm[a], split, seconds);
	return ret;
}
