/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/journal/fields.h"

#define REAL_MAX 1e40 /* more is no measurement */

int sum_kind_of(const struct cell *cell)
{
	if (cell->oracle != ORACLE_COUNT)
		return -1;
	switch (cell->protocol) {
	case PROTOCOL_WAIT:
		return SUM_WAIT;
	case PROTOCOL_MEMBARRIER:
		return SUM_MEMBARRIER;
	case PROTOCOL_ATOMIC:
		return SUM_STORE;
	default:
		return -1;
	}
}

static double rate_of(uint64_t tears, uint64_t toggles)
{
	return toggles ? (double)tears / (double)toggles : tears ? INFINITY : 0;
}

void count_add(struct count *to, const struct count *what)
{
	if (rate_of(what->worst_tears, what->worst_toggles) >
	    rate_of(to->worst_tears, to->worst_toggles)) {
		to->worst_tears = what->worst_tears;
		to->worst_toggles = what->worst_toggles;
	}
	to->slices += what->slices;
	to->toggles += what->toggles;
	to->tears += what->tears;
	to->unevenness += what->unevenness;
	to->squares += what->squares;
	to->ticks += what->ticks;
}

/* Pearson's chi-square of the slices against one rate for all, by its degrees of freedom. */
double count_dispersion(const struct count *count)
{
	double tears = (double)count->tears, chi;

	if (count->slices < 2 || count->tears == 0 || count->toggles == 0)
		return 1;
	chi = count->unevenness * (double)count->toggles / tears - tears;
	return fmax(1, chi / (double)(count->slices - 1));
}

double count_units(const struct count *count)
{
	double toggles = (double)count->toggles;

	return count->squares > 0 ? toggles * toggles / count->squares : 0;
}

struct count count_as_unit(struct count count)
{
	double toggles = (double)count.toggles, tears = (double)count.tears;

	count.slices = count.slices > 0;
	count.unevenness = count.toggles ? tears * tears / toggles : 0;
	count.squares = toggles * toggles;
	return count;
}

/*
 * Toggles that could tear: an executor had run what they replaced. If that is unknown, none is
 * claimed.
 */
static struct count count_of_torn(const struct cell_record *record, uint64_t torn)
{
	const struct cell_result *r = &record->result;
	bool cut = r->outcome == OUTCOME_KILLED || r->outcome == OUTCOME_HANG;
	double rests = (double)record->cell.rest * (double)r->toggles;
	double busy = (double)r->ticks - rests, toggles;
	struct count count = {
		.slices = 1,
		.toggles = cut || r->exposed == CELL_UNKNOWN ? 0 : r->exposed,
		.tears = torn,
	};

	toggles = (double)count.toggles;
	if (count.tears > count.toggles && count.toggles)
		count.tears = count.toggles;
	if (count.toggles)
		count.unevenness = (double)count.tears * (double)count.tears / toggles;
	count.squares = toggles * toggles;
	/* As long as one that was exposed took, by the average of all. */
	if (r->toggles && busy > 0)
		count.ticks = busy / (double)r->toggles * toggles;
	count.worst_tears = count.tears;
	count.worst_toggles = count.toggles;
	return count;
}

struct count count_of_record(const struct cell_record *record)
{
	uint64_t tears = cell_result_tears(&record->result), torn = record->result.torn;

	return count_of_torn(record, torn != CELL_UNKNOWN && torn < tears ? torn : tears);
}

struct sum *sums_find(const struct sums *sums, const struct sum *like)
{
	for (struct sum *s = sums->sum; s < sums->sum + sums->count; s++)
		if (s->kind == like->kind && waits_same(&s->rung, &like->rung) &&
		    s->crossing == like->crossing && s->placement == like->placement &&
		    s->executors == like->executors)
			return s;
	return NULL;
}

int sums_add(struct sums *sums, const struct sum *what)
{
	struct sum *sum = sums_find(sums, what);

	if (!sum && sums->count == sums->room) {
		size_t room = sums->room ? 2 * sums->room : 64;
		struct sum *more = realloc(sums->sum, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		sums->sum = more;
		sums->room = room;
	}
	if (!sum) {
		sum = &sums->sum[sums->count++];
		*sum = *what;
		sum->count = (struct count){ 0 };
	}
	count_add(&sum->count, &what->count);
	return 0;
}

int sums_add_record(struct sums *sums, const struct cell_record *record)
{
	const struct cell *cell = &record->cell;
	int kind = sum_kind_of(cell);
	struct sum sum = {
		.crossing = cell->crossing,
		.placement = cell->placement,
		.executors = cell->executors,
		.count = count_of_record(record),
	};
	int ret = 0;

	if (kind < 0 || record->result.outcome == OUTCOME_ERROR)
		return 0;
	sum.kind = (enum sum_kind)kind;
	if (kind == SUM_WAIT)
		sum.rung = cell->waits;
	if (cell->crossing != CROSSING_INSIDE)
		return sums_add(sums, &sum);
	for (unsigned i = 0; i < CELL_INSIDE && ret == 0; i++) {
		sum.crossing = (enum crossing)(CROSSING_8 + i);
		sum.count = count_of_torn(record, record->result.torn_inside[i]);
		ret = sums_add(sums, &sum);
	}
	return ret;
}

int sums_add_all(struct sums *sums, const struct sums *others)
{
	int ret = 0;

	for (size_t i = 0; i < others->count && ret == 0; i++)
		ret = sums_add(sums, &others->sum[i]);
	return ret;
}

void sums_free(struct sums *sums)
{
	free(sums->sum);
	*sums = (struct sums){ 0 };
}

/* --- JSON ------------------------------------------------------------------------------------- */

static const char *const kinds[SUM_KINDS] = {
	[SUM_WAIT] = "wait",
	[SUM_MEMBARRIER] = "membarrier",
	[SUM_STORE] = "store",
	[SUM_GAP] = "gap",
};

/* clang-format off */
static const struct field sum_fields[] = {
	NAME(struct sum, "kind", kind, SUM_KINDS, sum_kind_name, sum_kind_parse),
	NAME(struct sum, "crossing", crossing, CROSSING_COUNT, crossing_name, crossing_parse),
	NAME(struct sum, "placement", placement, PLACEMENT_COUNT, placement_name, placement_parse),
	BOUNDED(struct sum, "executors", executors, 1, NUMBER_UNSIGNED, 0, PLACEMENT_EXECUTORS_MAX),
	BOUNDED(struct sum, "first", rung.first, 1, NUMBER_COUNT, 0, CELL_WAIT_MAX),
	BOUNDED(struct sum, "second", rung.second, 1, NUMBER_COUNT, 0, CELL_WAIT_MAX),
	BOUNDED(struct sum, "stretch", rung.stretch, 1, NUMBER_COUNT, 0, CELL_STRETCH_MAX),
	COUNT(struct sum, "slices", count.slices, 1),
	COUNT(struct sum, "toggles", count.toggles, 1),
	COUNT(struct sum, "tears", count.tears, 1),
	REAL(struct sum, "unevenness", count.unevenness, 1),
	REAL(struct sum, "squares", count.squares, 1),
	REAL(struct sum, "ticks", count.ticks, 1),
	COUNT(struct sum, "worst_tears", count.worst_tears, 1),
	COUNT(struct sum, "worst_toggles", count.worst_toggles, 1),
	END
};
/* clang-format on */

const char *sum_kind_name(enum sum_kind kind)
{
	return kinds[kind];
}

json_t *sums_to_json(const struct sums *sums)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < sums->count; i++) {
		if (json_array_append_new(array, table_to_json(sum_fields, &sums->sum[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

int sum_kind_parse(const char *name)
{
	for (int kind = 0; kind < SUM_KINDS; kind++)
		if (strcmp(kinds[kind], name) == 0)
			return kind;
	return -EINVAL;
}

static bool sum_from_json(const json_t *object, struct sum *sum)
{
	const struct count *c = &sum->count;

	*sum = (struct sum){ 0 };
	return table_from_json(object, JOURNAL_SCHEMA, sum_fields, sum) == 0 &&
	       c->unevenness <= REAL_MAX && c->squares <= REAL_MAX && c->ticks <= REAL_MAX &&
	       c->worst_tears <= c->tears && c->worst_toggles <= c->toggles &&
	       (c->tears <= c->toggles || c->toggles == 0);
}

int sums_from_json(const json_t *array, struct sums *sums)
{
	const json_t *object;
	struct sum sum;
	size_t i;

	if (!json_is_array(array))
		return -EINVAL;
	json_array_foreach((json_t *)(uintptr_t)array, i, object)
	{
		if (!sum_from_json(object, &sum))
			return -EINVAL;
		if (sums_add(sums, &sum) < 0)
			return -ENOMEM;
	}
	return 0;
}
