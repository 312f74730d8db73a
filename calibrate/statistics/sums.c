/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static uint64_t exposed_toggles(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;

	if (r->outcome == OUTCOME_KILLED || r->outcome == OUTCOME_HANG)
		return 0;
	return r->exposed == CELL_UNKNOWN ? 0 : r->exposed;
}

static uint64_t torn_toggles(const struct cell_result *r)
{
	uint64_t tears = cell_result_tears(r);

	return r->torn != CELL_UNKNOWN && r->torn < tears ? r->torn : tears;
}

struct count count_of_record(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	double rests = (double)record->cell.rest * (double)r->toggles;
	double busy = (double)r->ticks - rests, toggles;
	struct count count = {
		.slices = 1,
		.toggles = exposed_toggles(record),
		.tears = torn_toggles(r),
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

static bool is_like(const struct sum *a, const struct sum *b)
{
	return a->kind == b->kind && rung_same(&a->rung, &b->rung) && a->crossing == b->crossing &&
	       a->placement == b->placement && a->executors == b->executors;
}

static struct sum *find_sum(const struct sums *sums, const struct sum *like)
{
	for (size_t i = 0; i < sums->count; i++)
		if (is_like(&sums->sum[i], like))
			return &sums->sum[i];
	return NULL;
}

const struct sum *sums_find(const struct sums *sums, const struct sum *like)
{
	return find_sum(sums, like);
}

static struct sum *make_sum(struct sums *sums, const struct sum *like)
{
	struct sum *sum;

	if (sums->count == sums->room) {
		size_t room = sums->room ? 2 * sums->room : 64;
		struct sum *more = realloc(sums->sum, room * sizeof(*more));

		if (!more)
			return NULL;
		sums->sum = more;
		sums->room = room;
	}
	sum = &sums->sum[sums->count++];
	*sum = *like;
	sum->count = (struct count){ 0 };
	return sum;
}

int sums_add(struct sums *sums, const struct sum *what)
{
	struct sum *sum = find_sum(sums, what);

	if (!sum)
		sum = make_sum(sums, what);
	if (!sum)
		return -ENOMEM;
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

	if (kind < 0 || record->result.outcome == OUTCOME_ERROR)
		return 0;
	sum.kind = (enum sum_kind)kind;
	if (kind == SUM_WAIT)
		sum.rung = rung_of(cell);
	return sums_add(sums, &sum);
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

static json_t *sum_to_json(const struct sum *s)
{
	const struct count *c = &s->count;

	return json_pack(
		"{s:s, s:I, s:I, s:I, s:s, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I}",
		"kind", kinds[s->kind], "first", (json_int_t)s->rung.first, "second",
		(json_int_t)s->rung.second, "stretch", (json_int_t)s->rung.stretch, "crossing",
		crossing_name(s->crossing), "placement", placement_name(s->placement), "executors",
		(int)s->executors, "slices", (json_int_t)c->slices, "toggles",
		(json_int_t)c->toggles, "tears", (json_int_t)c->tears, "unevenness", c->unevenness,
		"squares", c->squares, "ticks", c->ticks, "worst_tears", (json_int_t)c->worst_tears,
		"worst_toggles", (json_int_t)c->worst_toggles);
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

static bool take_u64(const json_t *object, const char *name, uint64_t max, uint64_t *value)
{
	const json_t *number = json_object_get(object, name);

	if (!json_is_integer(number) || json_integer_value(number) < 0)
		return false;
	*value = (uint64_t)json_integer_value(number);
	return *value <= max;
}

static bool take_real(const json_t *object, const char *name, double *value)
{
	const json_t *number = json_object_get(object, name);

	*value = json_number_value(number);
	return json_is_number(number) && *value >= 0 && *value <= REAL_MAX;
}

static bool take_name(const json_t *object, const char *name, int (*parse)(const char *),
		      int *value)
{
	const char *text = json_string_value(json_object_get(object, name));

	*value = text ? parse(text) : -EINVAL;
	return *value >= 0;
}

static int kind_parse(const char *name)
{
	for (int kind = 0; kind < SUM_KINDS; kind++)
		if (strcmp(kinds[kind], name) == 0)
			return kind;
	return -EINVAL;
}

static bool take_count(const json_t *object, struct count *c)
{
	return take_u64(object, "slices", INT64_MAX, &c->slices) &&
	       take_u64(object, "toggles", INT64_MAX, &c->toggles) &&
	       take_u64(object, "tears", INT64_MAX, &c->tears) &&
	       take_real(object, "unevenness", &c->unevenness) &&
	       take_real(object, "squares", &c->squares) && take_real(object, "ticks", &c->ticks) &&
	       take_u64(object, "worst_tears", INT64_MAX, &c->worst_tears) &&
	       take_u64(object, "worst_toggles", INT64_MAX, &c->worst_toggles) &&
	       c->worst_tears <= c->tears && c->worst_toggles <= c->toggles &&
	       (c->tears <= c->toggles || c->toggles == 0);
}

static bool take_sum(const json_t *object, struct sum *sum)
{
	int kind, crossing, placement;
	uint64_t executors;

	*sum = (struct sum){ 0 };
	if (!take_name(object, "kind", kind_parse, &kind) ||
	    !take_name(object, "crossing", crossing_parse, &crossing) ||
	    !take_name(object, "placement", placement_parse, &placement) ||
	    !take_u64(object, "executors", PLACEMENT_EXECUTORS_MAX, &executors) ||
	    !take_u64(object, "first", CELL_WAIT_MAX, &sum->rung.first) ||
	    !take_u64(object, "second", CELL_WAIT_MAX, &sum->rung.second) ||
	    !take_u64(object, "stretch", CELL_STRETCH_MAX, &sum->rung.stretch))
		return false;
	sum->kind = (enum sum_kind)kind;
	sum->crossing = (enum crossing)crossing;
	sum->placement = (enum placement)placement;
	sum->executors = (unsigned)executors;
	return take_count(object, &sum->count);
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
		if (!take_sum(object, &sum))
			return -EINVAL;
		if (sums_add(sums, &sum) < 0)
			return -ENOMEM;
	}
	return 0;
}
