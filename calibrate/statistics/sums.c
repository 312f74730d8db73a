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

static struct count count_of_torn(const struct cell_record *record, uint64_t torn)
{
	const struct cell_result *r = &record->result;
	double rests = (double)record->cell.rest * (double)r->toggles;
	double busy = (double)r->ticks - rests, toggles;
	struct count count = {
		.slices = 1,
		.toggles = exposed_toggles(record),
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
	return count_of_torn(record, torn_toggles(&record->result));
}

static bool is_like(const struct sum *a, const struct sum *b)
{
	return a->kind == b->kind && waits_same(&a->rung, &b->rung) && a->crossing == b->crossing &&
	       a->placement == b->placement && a->executors == b->executors;
}

struct sum *sums_find(const struct sums *sums, const struct sum *like)
{
	for (size_t i = 0; i < sums->count; i++)
		if (is_like(&sums->sum[i], like))
			return &sums->sum[i];
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

#define AT(member) offsetof(struct sum, member)

/* The numbers of a sum; those without a limit are real. Both directions go by this. */
static const struct {
	const char *name;
	size_t at;
	uint64_t max;
} numbers[] = {
	{ "first", AT(rung.first), CELL_WAIT_MAX },
	{ "second", AT(rung.second), CELL_WAIT_MAX },
	{ "stretch", AT(rung.stretch), CELL_STRETCH_MAX },
	{ "slices", AT(count.slices), INT64_MAX },
	{ "toggles", AT(count.toggles), INT64_MAX },
	{ "tears", AT(count.tears), INT64_MAX },
	{ "unevenness", AT(count.unevenness), 0 },
	{ "squares", AT(count.squares), 0 },
	{ "ticks", AT(count.ticks), 0 },
	{ "worst_tears", AT(count.worst_tears), INT64_MAX },
	{ "worst_toggles", AT(count.worst_toggles), INT64_MAX },
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

const char *sum_kind_name(enum sum_kind kind)
{
	return kinds[kind];
}

static json_t *sum_to_json(const struct sum *s)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:i}", "kind", kinds[s->kind], "crossing",
				   crossing_name(s->crossing), "placement",
				   placement_name(s->placement), "executors", (int)s->executors);

	for (size_t i = 0; object && i < NUMBERS; i++) {
		const void *at = (const char *)s + numbers[i].at;

		json_object_set_new(object, numbers[i].name,
				    numbers[i].max
					    ? json_integer((json_int_t) * (const uint64_t *)at)
					    : json_real(*(const double *)at));
	}
	return object;
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

static bool take_name(const json_t *object, const char *name, int (*parse)(const char *),
		      int *value)
{
	const char *text = json_string_value(json_object_get(object, name));

	*value = text ? parse(text) : -EINVAL;
	return *value >= 0;
}

int sum_kind_parse(const char *name)
{
	for (int kind = 0; kind < SUM_KINDS; kind++)
		if (strcmp(kinds[kind], name) == 0)
			return kind;
	return -EINVAL;
}

static bool number_from_json(const json_t *number, uint64_t max, void *at)
{
	if (!max) {
		double real = json_number_value(number);

		*(double *)at = real;
		return json_is_number(number) && real >= 0 && real <= REAL_MAX;
	}
	*(uint64_t *)at = (uint64_t)json_integer_value(number);
	return json_is_integer(number) && *(uint64_t *)at <= max;
}

static bool sum_from_json(const json_t *object, struct sum *sum)
{
	const struct count *c = &sum->count;
	int kind, crossing, placement;
	uint64_t executors;

	*sum = (struct sum){ 0 };
	if (!take_name(object, "kind", sum_kind_parse, &kind) ||
	    !take_name(object, "crossing", crossing_parse, &crossing) ||
	    !take_name(object, "placement", placement_parse, &placement) ||
	    !number_from_json(json_object_get(object, "executors"), PLACEMENT_EXECUTORS_MAX,
			      &executors))
		return false;
	sum->kind = (enum sum_kind)kind;
	sum->crossing = (enum crossing)crossing;
	sum->placement = (enum placement)placement;
	sum->executors = (unsigned)executors;
	for (size_t i = 0; i < NUMBERS; i++)
		if (!number_from_json(json_object_get(object, numbers[i].name), numbers[i].max,
				      (char *)sum + numbers[i].at))
			return false;
	return c->worst_tears <= c->tears && c->worst_toggles <= c->toggles &&
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
