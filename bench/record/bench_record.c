/* SPDX-License-Identifier: MIT */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "bench/record/bench_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_words.h"
#include "results/journal/journal.h"

#define EXACT 0x1p53 /* whole numbers up to here are told as such */

/* A member of a result or a row that stands in JSON under its own name. */
struct field {
	const char *name;
	enum {
		TEXT,	   /* never empty */
		SOME_TEXT, /* left out where it is */
		COUNT,
		SEED,
		REAL,  /* left out where it is NAN */
		VALUE, /* the same */
	} kind;
	size_t offset, size;
};

#define NAMED(name, type, kind, member)                                                            \
	{                                                                                          \
		name, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)      \
	}
#define FIELD(type, kind, member) NAMED(#member, type, kind, member)
#define COUNTED(array)		  array, sizeof(array) / sizeof((array)[0])

static const struct field of_result[] = {
	FIELD(bench_result, TEXT, benchmark),
	FIELD(bench_result, SEED, seed),
	FIELD(bench_result, COUNT, rounds),
	FIELD(bench_result, REAL, seconds),
	NAMED("first_wait", bench_result, COUNT, waits.first),
	NAMED("second_wait", bench_result, COUNT, waits.second),
	NAMED("stretch", bench_result, COUNT, waits.stretch),
	FIELD(bench_result, TEXT, waits_from),
	FIELD(bench_result, VALUE, distance),
};

static const struct field of_row[] = {
	FIELD(bench_row, TEXT, name),
	FIELD(bench_row, TEXT, measure),
	FIELD(bench_row, TEXT, unit),
};

/* Of a row that was not skipped. */
static const struct field figures[] = {
	FIELD(bench_row, COUNT, samples),     FIELD(bench_row, COUNT, pairs),
	FIELD(bench_row, REAL, least),	      FIELD(bench_row, REAL, p5),
	FIELD(bench_row, REAL, p25),	      FIELD(bench_row, REAL, p75),
	FIELD(bench_row, REAL, p95),	      FIELD(bench_row, REAL, p99),
	FIELD(bench_row, REAL, most),	      FIELD(bench_row, COUNT, outliers),
	FIELD(bench_row, SOME_TEXT, against), FIELD(bench_row, VALUE, value),
	FIELD(bench_row, VALUE, base),	      FIELD(bench_row, VALUE, ratio),
};

static const struct field of_value[] = {
	FIELD(bench_value, REAL, median),
	FIELD(bench_value, REAL, low),
	FIELD(bench_value, REAL, high),
};

static const char *const benchmarks[] = { "toggle", "latency", "throughput", "scaling", "latent",
					  "stall",  "invoke",  "probes",     NULL };
static const char *const waits[] = { "none", "config", "assumed", NULL };

/* --- Writing -------------------------------------------------------------------------------- */

/* NULL: it is not told. */
static json_t *real_to_json(double x)
{
	if (isnan(x))
		return NULL;
	if (isinf(x))
		return json_string(x > 0 ? "inf" : "-inf");
	if (x == floor(x) && fabs(x) < EXACT)
		return json_integer((json_int_t)x);
	return json_real(x);
}

/* What is not known, NULL, is left out. A key that is there already would be lost. */
static int put_new(json_t *object, const char *key, json_t *value)
{
	if (value && json_object_get(object, key)) {
		json_decref(value);
		return -EINVAL;
	}
	return value ? json_object_set_new(object, key, value) : 0;
}

/* What is empty or not known is left out; where it has to be there, reading it back finds that out.
 */
static int put_fields(json_t *object, const void *from, const struct field *field, size_t count)
{
	int rc = 0;

	for (; count-- && !rc; field++) {
		const void *at = (const char *)from + field->offset;
		json_t *value = NULL;

		switch (field->kind) {
		case COUNT:
			value = json_integer(field->size == sizeof(unsigned)
						     ? *(const unsigned *)at
						     : (json_int_t) * (const uint64_t *)at);
			break;
		case SEED:
			value = seed_to_json(*(const uint64_t *)at);
			break;
		case REAL:
			value = real_to_json(*(const double *)at);
			break;
		case VALUE:
			value = json_object();
			rc = put_fields(value, at, COUNTED(of_value));
			if (!rc && json_object_size(value) > 0)
				break;
			json_decref(value);
			value = NULL;
			break;
		default:
			value = *(const char *)at ? json_string(at) : NULL;
		}
		rc |= put_new(object, field->name, value);
	}
	return rc;
}

/* Params or extras. */
static int put_params(json_t *object, const char *name, const struct bench_param *param,
		      unsigned count)
{
	json_t *list = json_object();
	int rc = json_object_set_new(object, name, list);

	for (; count-- && !rc; param++)
		rc = put_new(list, param->key,
			     param->text[0] ? json_string(param->text)
					    : real_to_json(param->number));
	return rc;
}

/* A row that was skipped has params and the reason. */
static int put_row(json_t *object, const struct bench_row *row)
{
	json_t *histogram;
	int rc = put_fields(object, row, COUNTED(of_row));

	rc |= json_object_set_new(object, "peer", json_boolean(row->peer));
	rc |= put_params(object, "params", row->param, row->params);
	if (!row->samples)
		return rc | put_new(object, "skipped",
				    json_string(row->why[0] ? row->why : "no reason was given"));
	rc |= put_fields(object, row, COUNTED(figures));
	rc |= put_params(object, "extras", row->extra, row->extras);
	if (rc || !row->bins)
		return rc;
	histogram = json_array();
	rc = json_object_set_new(object, "histogram", histogram);
	for (unsigned i = 0; i < row->bins && !rc; i++)
		rc = json_array_append_new(histogram,
					   json_pack("[o, o, I]", real_to_json(row->bin[i].low),
						     real_to_json(row->bin[i].high),
						     (json_int_t)row->bin[i].count));
	return rc;
}

/*
 * Placement, CPUs and witness look as they do in a "cell" line: so one is made, and these
 * are taken out of it, or put into it.
 */
static json_t *cell_line(const struct bench_result *result)
{
	struct cell_record record = { .stage = "bench", .key = "bench" };

	cell_defaults(&record.cell);
	record.cell.placement = result->seating.placement;
	record.result.seating = result->seating;
	record.result.witness = result->witness;
	return record_to_json(&record);
}

/* --- Reading -------------------------------------------------------------------------------- */

static int real_from_json(const json_t *json, double *x)
{
	const char *text = json_string_value(json);

	if (text && strcmp(text, "inf") == 0)
		*x = INFINITY;
	else if (text && strcmp(text, "-inf") == 0)
		*x = -INFINITY;
	else if (json_is_number(json))
		*x = json_number_value(json);
	else
		return -EINVAL;
	return 0;
}

static int count_from_json(const json_t *json, uint64_t most, uint64_t *count)
{
	*count = (uint64_t)json_integer_value(json);
	return json_is_integer(json) && *count <= most ? 0 : -EINVAL;
}

static int copy_text(const char *text, char *to, size_t size)
{
	return text && *text ? text_take(text, to, size) : -EINVAL;
}

static int get_fields(const json_t *object, void *to, const struct field *field, size_t count)
{
	for (const struct field *end = field + count; field < end; field++) {
		const json_t *json = json_object_get(object, field->name);
		void *at = (char *)to + field->offset;
		uint64_t number;
		int rc = 0;

		switch (field->kind) {
		case TEXT:
		case SOME_TEXT:
			if (json || field->kind == TEXT)
				rc = copy_text(json_string_value(json), at, field->size);
			break;
		case COUNT:
			if (field->size == sizeof(unsigned)) {
				rc = count_from_json(json, UINT32_MAX, &number);
				*(unsigned *)at = (unsigned)number;
			} else {
				rc = count_from_json(json, INT64_MAX, at);
			}
			break;
		case SEED:
			rc = seed_from_json(json, at);
			break;
		case REAL:
			*(double *)at = NAN;
			if (json)
				rc = real_from_json(json, at);
			break;
		case VALUE:
			*(struct bench_value *)at = (struct bench_value){ NAN, NAN, NAN };
			if (json)
				rc = json_is_object(json) ? get_fields(json, at, COUNTED(of_value))
							  : -EINVAL;
		}
		if (rc)
			return -EINVAL;
	}
	return 0;
}

/* Params, or extras, which have no texts. */
static int get_params(const json_t *object, const char *name, struct bench_param *param,
		      unsigned *count, size_t most, bool texts)
{
	json_t *list = json_object_get(object, name), *json;
	const char *key;

	if (!json_is_object(list) || json_object_size(list) > most)
		return -EINVAL;
	json_object_foreach(list, key, json)
	{
		if (copy_text(key, param->key, sizeof(param->key)))
			return -EINVAL;
		if (real_from_json(json, &param->number)) {
			param->number = NAN;
			if (!texts ||
			    copy_text(json_string_value(json), param->text, sizeof(param->text)))
				return -EINVAL;
		}
		param++;
		++*count;
	}
	return 0;
}

static int row_from_json(const json_t *object, struct bench_row *row)
{
	const json_t *peer = json_object_get(object, "peer");
	const json_t *skipped = json_object_get(object, "skipped");
	const json_t *list = json_object_get(object, "histogram"), *json;
	size_t count = json_array_size(list), i;
	char why[BENCH_WHY];

	if (!json_is_boolean(peer) || get_fields(object, row, COUNTED(of_row)) ||
	    get_params(object, "params", row->param, &row->params, BENCH_PARAMS, true))
		return -EINVAL;
	row->peer = json_is_true(peer);
	if (skipped) {
		if (copy_text(json_string_value(skipped), why, sizeof(why)))
			return -EINVAL;
		bench_row_skip(row, "%s", why);
		return 0;
	}
	if (get_fields(object, row, COUNTED(figures)) || !row->samples ||
	    get_params(object, "extras", row->extra, &row->extras, BENCH_EXTRAS, false))
		return -EINVAL;
	if (!list)
		return 0;
	if (!json_is_array(list) || !count || count > BENCH_HIST_MAX)
		return -EINVAL;
	row->bin = calloc(count, sizeof(*row->bin));
	if (!row->bin)
		return -ENOMEM;
	row->bins = (unsigned)count;
	json_array_foreach(list, i, json)
	{
		struct bench_bin *bin = &row->bin[i];

		if (json_array_size(json) != 3 ||
		    real_from_json(json_array_get(json, 0), &bin->low) ||
		    real_from_json(json_array_get(json, 1), &bin->high) ||
		    !(bin->low < bin->high) ||
		    count_from_json(json_array_get(json, 2), INT64_MAX, &bin->count))
			return -EINVAL;
	}
	return 0;
}

/* All that bench_to_json() writes. */
static int body_from_json(const json_t *line, struct bench_result *result)
{
	const struct bench_result nothing = { .seating.placement = PLACEMENT_SPREAD };
	const json_t *list = json_object_get(line, "rows");
	int rc = get_fields(line, result, COUNTED(of_result));
	struct cell_record record;
	json_t *cell;

	if (rc || !word_listed(result->benchmark, benchmarks) ||
	    !word_listed(result->waits_from, waits) || !(result->seconds >= 0) ||
	    !json_is_array(list))
		return -EINVAL;
	cell = cell_line(&nothing);
	if (!cell)
		return -ENOMEM;
	rc = -EINVAL;
	if (!json_object_set(cell, "cpus", json_object_get(line, "cpus")) &&
	    !json_object_set(cell, "witness", json_object_get(line, "witness")) &&
	    !json_object_set(json_object_get(cell, "cell"), "placement",
			     json_object_get(line, "placement")))
		rc = record_from_json(cell, &record);
	json_decref(cell);
	if (!rc) {
		result->seating = record.result.seating;
		result->witness = record.result.witness;
	}
	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		struct bench_row *row = bench_result_add(result);

		rc = row ? row_from_json(json_array_get(list, i), row) : -ENOMEM;
	}
	return rc;
}

int bench_from_json(const json_t *line, struct bench_result *result)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	int rc = -EINVAL;

	memset(result, 0, sizeof(*result));
	if (type && strcmp(type, "bench") == 0 &&
	    json_integer_value(json_object_get(line, "schema")) == JOURNAL_SCHEMA)
		rc = copy_text(json_string_value(json_object_get(line, "date")), result->date,
			       sizeof(result->date));
	if (!rc)
		rc = body_from_json(line, result);
	if (rc)
		bench_result_free(result);
	return rc;
}

/* What could not be read back is not written. */
json_t *bench_to_json(const struct bench_result *result)
{
	json_t *line = json_pack("{s:s}", "tool", PACKAGE_STRING), *rows = json_array();
	struct bench_result named = *result, back = { 0 };
	json_t *cell = cell_line(result);
	int rc;

	if (!named.waits_from[0])
		strcpy(named.waits_from, waits[0]);
	rc = put_fields(line, &named, COUNTED(of_result));
	rc |= json_object_set(line, "placement",
			      json_object_get(json_object_get(cell, "cell"), "placement"));
	rc |= json_object_set(line, "cpus", json_object_get(cell, "cpus"));
	rc |= json_object_set(line, "witness", json_object_get(cell, "witness"));
	json_decref(cell);
	rc |= json_object_set_new(line, "rows", rows);
	for (unsigned i = 0; i < result->rows && !rc; i++) {
		json_t *object = json_object();

		rc = json_array_append_new(rows, object) | put_row(object, &result->row[i]);
	}
	if (!rc)
		rc = body_from_json(line, &back);
	bench_result_free(&back);
	if (!rc)
		return line;
	json_decref(line);
	return NULL;
}
