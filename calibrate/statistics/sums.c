/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "stress/witness/witness.h"

#define REAL_MAX 1e40 /* more is no measurement */

int sum_kind_of(const struct cell *cell)
{
	if (cell->oracle != ORACLE_COUNT || provokers_have(cell->provokers, PROVOKER_COLD))
		return -1;
	switch (cell->protocol) {
	case PROTOCOL_WAIT:
		if (cell->rest == CELL_RESTED)
			return cell->provokers ? SUM_RESTED : SUM_RESTED_ALONE;
		if (cell->rest > CELL_HOT)
			return -1;
		return cell->provokers ? SUM_WAIT : SUM_ALONE;
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
	to->are_runs |= what->are_runs;
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
	count.worst_tears = count.tears;
	count.worst_toggles = count.toggles;
	count.are_runs = true;
	return count;
}

/* torn: how many of them are known to have. */
static struct count count_of_torn(const struct cell_record *record, uint64_t torn)
{
	const struct cell_result *r = &record->result;
	bool cut = r->outcome == OUTCOME_KILLED || r->outcome == OUTCOME_HANG;
	double rests = (double)record->cell.rest * (double)r->toggles;
	double busy = (double)r->ticks - rests, toggles;
	/* If it is unknown how many could tear, none is claimed. */
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
	for (size_t i = 0; i < sums->count; i++) {
		struct sum *s = &sums->sum[i];

		if (s->kind == like->kind && waits_same(&s->rung, &like->rung) &&
		    s->crossing == like->crossing && s->placement == like->placement &&
		    s->executors == like->executors)
			return s;
	}
	return NULL;
}

int sums_add(struct sums *sums, const struct sum *what)
{
	struct sum *sum = sums_find(sums, what);

	if (!sum) {
		if (ARRAY_ADD(sums->sum, sums->count, *what) < 0)
			return -ENOMEM;
		sum = &sums->sum[sums->count - 1];
		sum->count = (struct count){ 0 };
		memset(sum->at, 0, sizeof(sum->at));
	}
	count_add(&sum->count, &what->count);
	for (int d = 0; d < DISTANCES; d++)
		count_add(&sum->at[d], &what->at[d]);
	return 0;
}

int sums_add_record(struct sums *sums, const struct cell_record *record)
{
	const struct cell *cell = &record->cell;
	const struct cell_result *result = &record->result;
	enum distance distance = witness_distance(&result->witness);
	bool is_inside = cell->crossing == CROSSING_INSIDE;
	int kind = sum_kind_of(cell), ret = 0;

	if (kind < 0 || result->outcome == OUTCOME_ERROR)
		return 0;
	for (unsigned i = 0; i < (is_inside ? CELL_INSIDE : 1) && ret == 0; i++) {
		struct sum sum = {
			.kind = (enum sum_kind)kind,
			.crossing = is_inside ? (enum crossing)(CROSSING_8 + i) : cell->crossing,
			.placement = cell->placement,
			.executors = cell->executors,
			.count = is_inside ? count_of_torn(record, result->torn_inside[i])
					   : count_of_record(record),
		};

		if (sum_is_wait(&sum))
			sum.rung = cell->waits;
		if (distance < DISTANCES)
			sum.at[distance] = sum.count;
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
	[SUM_ALONE] = "alone",
	[SUM_RESTED] = "rested",
	[SUM_RESTED_ALONE] = "rested-alone",
};

static const char *name_sum_kind(enum sum_kind kind)
{
	return kinds[kind];
}

static int parse_sum_kind(const char *name)
{
	for (int kind = 0; kind < SUM_KINDS; kind++)
		if (strcmp(kinds[kind], name) == 0)
			return kind;
	return -EINVAL;
}

/* clang-format off */
const struct field sum_fields[] = {
	NAME(struct sum, "kind", kind, SUM_KINDS, name_sum_kind, parse_sum_kind),
	NAME(struct sum, "crossing", crossing, CROSSING_COUNT, crossing_name, crossing_parse),
	NAME(struct sum, "placement", placement, PLACEMENT_COUNT, placement_name, placement_parse),
	BOUNDED(struct sum, "executors", executors, NUMBER_UNSIGNED, 0, PLACEMENT_EXECUTORS_MAX),
	BOUNDED(struct sum, "first", rung.first, NUMBER_COUNT, 0, CELL_WAIT_MAX),
	BOUNDED(struct sum, "second", rung.second, NUMBER_COUNT, 0, CELL_WAIT_MAX),
	BOUNDED(struct sum, "stretch", rung.stretch, NUMBER_COUNT, 0, CELL_STRETCH_MAX),
	END
};

const struct field count_fields[] = {
	COUNT(struct count, "slices", slices),
	COUNT(struct count, "toggles", toggles),
	COUNT(struct count, "tears", tears),
	REAL(struct count, "unevenness", unevenness),
	REAL(struct count, "squares", squares),
	REAL(struct count, "ticks", ticks),
	COUNT(struct count, "worst_tears", worst_tears),
	COUNT(struct count, "worst_toggles", worst_toggles),
	END
};
/* clang-format on */

static const char *const distances[DISTANCES] = { "near", "far" };

/* Near and far are told where there is something to tell: old stores have neither. */
static json_t *sum_to_json(const struct sum *sum)
{
	json_t *object = table_to_json(sum_fields, sum);
	json_t *count = table_to_json(count_fields, &sum->count);
	int ret = json_object_update(object, count);

	json_decref(count);
	for (int d = 0; d < DISTANCES && ret == 0; d++)
		if (sum->at[d].slices)
			ret = json_object_set_new(object, distances[d],
						  table_to_json(count_fields, &sum->at[d]));
	if (ret == 0)
		return object;
	json_decref(object);
	return NULL;
}

json_t *sums_to_json(const struct sums *sums)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < sums->count; i++) {
		if (json_array_append_new(array, sum_to_json(&sums->sum[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static bool count_from_json(const json_t *object, struct count *c)
{
	return table_from_json(object, count_fields, c) == 0 && c->unevenness <= REAL_MAX &&
	       c->squares <= REAL_MAX && c->ticks <= REAL_MAX && c->worst_tears <= c->tears &&
	       c->worst_toggles <= c->toggles && (c->tears <= c->toggles || c->toggles == 0);
}

static bool sum_from_json(const json_t *object, struct sum *sum)
{
	struct count left;

	*sum = (struct sum){ 0 };
	if (table_from_json(object, sum_fields, sum) < 0 || !count_from_json(object, &sum->count))
		return false;
	left = sum->count;
	for (int d = 0; d < DISTANCES; d++) {
		const json_t *at = json_object_get(object, distances[d]);
		const struct count *c = &sum->at[d];

		if (at && !count_from_json(at, &sum->at[d]))
			return false;
		/* No more is near and far than there is at all. */
		if (c->slices > left.slices || c->toggles > left.toggles || c->tears > left.tears)
			return false;
		left.slices -= c->slices;
		left.toggles -= c->toggles;
		left.tears -= c->tears;
	}
	return true;
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
