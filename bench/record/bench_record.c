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
#include "results/journal/json_text.h"

#define EXACT 0x1p53 /* whole numbers up to here are told as such */

/* A number of a row, and where it is. */
struct real {
	const char *name;
	size_t offset;
};

#define REAL(member)                                                                               \
	{                                                                                          \
#member, offsetof(struct bench_row, member)                                        \
	}
static const struct real reals[] = { REAL(least), REAL(p5),  REAL(p25), REAL(p75),
				     REAL(p95),	  REAL(p99), REAL(most) };
static const struct real values[] = { REAL(value), REAL(base), REAL(ratio) };
#undef REAL

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const benchmarks[] = { "toggle", "latency", "throughput", "scaling",
					  "latent", "stall",   "invoke",     NULL };
static const char *const waits[] = { "none", "config", "assumed", NULL };

/* --- Writing -------------------------------------------------------------------------------- */

static json_t *real_to_json(double x)
{
	if (isinf(x))
		return json_string(x > 0 ? "inf" : "-inf");
	if (x == floor(x) && fabs(x) < EXACT)
		return json_integer((json_int_t)x);
	return json_real(x);
}

/* What is not known is left out. A key that is there already would be lost. */
static int put_real(json_t *object, const char *key, double x)
{
	if (isnan(x))
		return 0;
	if (json_object_get(object, key))
		return -EINVAL;
	return json_object_set_new(object, key, real_to_json(x));
}

static int put_text(json_t *object, const char *key, const char *text)
{
	if (json_object_get(object, key))
		return -EINVAL;
	return json_object_set_new(object, key, json_string(text));
}

static int put_count(json_t *object, const char *key, uint64_t count)
{
	if (count > INT64_MAX)
		return -EINVAL;
	return json_object_set_new(object, key, json_integer((json_int_t)count));
}

static int put_value(json_t *object, const char *key, const struct bench_value *v)
{
	json_t *value;

	if (isnan(v->median) && isnan(v->low) && isnan(v->high))
		return 0;
	value = json_object();
	if (!value || put_real(value, "median", v->median) || put_real(value, "low", v->low) ||
	    put_real(value, "high", v->high)) {
		json_decref(value);
		return -EINVAL;
	}
	return json_object_set_new(object, key, value);
}

static int put_params(json_t *object, const struct bench_row *row)
{
	json_t *params = json_object();
	int rc = json_object_set_new(object, "params", params);

	for (unsigned i = 0; i < row->params && !rc; i++) {
		const struct bench_param *param = &row->param[i];

		if (param->text[0])
			rc = put_text(params, param->key, param->text);
		else
			rc = put_real(params, param->key, param->number);
	}
	return rc;
}

static int put_extras(json_t *object, const struct bench_row *row)
{
	json_t *extras = json_object();
	int rc = json_object_set_new(object, "extras", extras);

	for (unsigned i = 0; i < row->extras && !rc; i++)
		rc = put_real(extras, row->extra[i].key, row->extra[i].number);
	return rc;
}

static json_t *bin_to_json(const struct bench_bin *bin)
{
	if (isnan(bin->low) || isnan(bin->high) || bin->count > INT64_MAX)
		return NULL;
	return json_pack("[o, o, I]", real_to_json(bin->low), real_to_json(bin->high),
			 (json_int_t)bin->count);
}

static int put_histogram(json_t *object, const struct bench_row *row)
{
	json_t *list;
	int rc;

	if (!row->bins)
		return 0;
	list = json_array();
	rc = json_object_set_new(object, "histogram", list);
	for (unsigned i = 0; i < row->bins && !rc; i++)
		rc = json_array_append_new(list, bin_to_json(&row->bin[i]));
	return rc;
}

static int put_figures(json_t *object, const struct bench_row *row)
{
	const char *base = (const char *)row;
	int rc = put_count(object, "samples", row->samples);

	if (!rc)
		rc = put_count(object, "pairs", row->pairs);
	for (size_t i = 0; i < COUNT(reals) && !rc; i++)
		rc = put_real(object, reals[i].name, *(const double *)(base + reals[i].offset));
	if (!rc)
		rc = put_count(object, "outliers", row->outliers);
	if (!rc && row->against[0])
		rc = put_text(object, "against", row->against);
	for (size_t i = 0; i < COUNT(values) && !rc; i++)
		rc = put_value(object, values[i].name,
			       (const struct bench_value *)(base + values[i].offset));
	if (!rc)
		rc = put_extras(object, row);
	return rc ? rc : put_histogram(object, row);
}

static json_t *row_to_json(const struct bench_row *row)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:b}", "name", row->name, "measure",
				   row->measure, "unit", row->unit, "peer", row->peer);
	int rc = object ? put_params(object, row) : -EINVAL;

	if (!rc && row->samples)
		rc = put_figures(object, row);
	else if (!rc)
		rc = put_text(object, "skipped", row->why[0] ? row->why : "no reason was given");
	if (!rc)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *rows_to_json(const struct bench_result *result)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < result->rows; i++) {
		if (json_array_append_new(list, row_to_json(&result->row[i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
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

static int put_borrowed(json_t *line, const struct bench_result *result)
{
	json_t *cell = cell_line(result);
	int rc = json_object_set(line, "placement",
				 json_object_get(json_object_get(cell, "cell"), "placement"));

	if (!rc)
		rc = json_object_set(line, "cpus", json_object_get(cell, "cpus"));
	if (!rc)
		rc = json_object_set(line, "witness", json_object_get(cell, "witness"));
	json_decref(cell);
	return rc;
}

static int put_all(json_t *line, const struct bench_result *result)
{
	int rc = put_count(line, "seed", result->seed);

	if (!rc)
		rc = put_count(line, "rounds", result->rounds);
	if (!rc)
		rc = put_real(line, "seconds", result->seconds);
	if (!rc)
		rc = put_borrowed(line, result);
	if (!rc)
		rc = put_count(line, "first_wait", result->first_wait);
	if (!rc)
		rc = put_count(line, "second_wait", result->second_wait);
	if (!rc)
		rc = put_count(line, "stretch", result->stretch);
	if (!rc)
		rc = put_text(line, "waits_from",
			      result->waits_from[0] ? result->waits_from : waits[0]);
	if (!rc)
		rc = put_value(line, "distance", &result->distance);
	return rc ? rc : json_object_set_new(line, "rows", rows_to_json(result));
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

static int get_real(const json_t *object, const char *key, double *x)
{
	const json_t *json = json_object_get(object, key);

	*x = NAN;
	return json ? real_from_json(json, x) : 0;
}

static int get_count(const json_t *object, const char *key, uint64_t max, uint64_t *count)
{
	const json_t *json = json_object_get(object, key);

	*count = (uint64_t)json_integer_value(json);
	return json_is_integer(json) && json_integer_value(json) >= 0 && *count <= max ? 0
										       : -EINVAL;
}

static int copy_text(const char *text, char *to, size_t size)
{
	return text && *text ? text_take(text, to, size) : -EINVAL;
}

static int get_text(const json_t *object, const char *key, char *to, size_t size)
{
	return copy_text(json_string_value(json_object_get(object, key)), to, size);
}

static int get_value(const json_t *object, const char *key, struct bench_value *v)
{
	const json_t *value = json_object_get(object, key);

	*v = (struct bench_value){ NAN, NAN, NAN };
	if (!value)
		return 0;
	if (!json_is_object(value) || get_real(value, "median", &v->median) ||
	    get_real(value, "low", &v->low) || get_real(value, "high", &v->high))
		return -EINVAL;
	return 0;
}

static int param_from_json(const char *key, const json_t *json, struct bench_param *param)
{
	if (copy_text(key, param->key, sizeof(param->key)))
		return -EINVAL;
	if (real_from_json(json, &param->number) == 0)
		return 0;
	param->number = NAN;
	return copy_text(json_string_value(json), param->text, sizeof(param->text));
}

static int get_params(const json_t *object, struct bench_row *row)
{
	json_t *params = json_object_get(object, "params"), *json;
	const char *key;

	if (!json_is_object(params) || json_object_size(params) > BENCH_PARAMS)
		return -EINVAL;
	json_object_foreach(
		params, key,
		json) if (param_from_json(key, json, &row->param[row->params++])) return -EINVAL;
	return 0;
}

static int get_extras(const json_t *object, struct bench_row *row)
{
	json_t *extras = json_object_get(object, "extras"), *json;
	const char *key;

	if (!json_is_object(extras) || json_object_size(extras) > BENCH_EXTRAS)
		return -EINVAL;
	json_object_foreach(extras, key, json)
	{
		struct bench_extra *extra = &row->extra[row->extras++];

		if (copy_text(key, extra->key, sizeof(extra->key)) ||
		    real_from_json(json, &extra->number))
			return -EINVAL;
	}
	return 0;
}

static int bin_from_json(const json_t *json, struct bench_bin *bin)
{
	const json_t *count = json_array_get(json, 2);

	if (json_array_size(json) != 3 || !json_is_integer(count) ||
	    json_integer_value(count) < 0 || real_from_json(json_array_get(json, 0), &bin->low) ||
	    real_from_json(json_array_get(json, 1), &bin->high) || !(bin->low < bin->high))
		return -EINVAL;
	bin->count = (uint64_t)json_integer_value(count);
	return 0;
}

static int get_histogram(const json_t *object, struct bench_row *row)
{
	const json_t *list = json_object_get(object, "histogram");
	size_t count = json_array_size(list);

	if (!list)
		return 0;
	if (!json_is_array(list) || !count || count > BENCH_HIST_MAX)
		return -EINVAL;
	row->bin = calloc(count, sizeof(*row->bin));
	if (!row->bin)
		return -ENOMEM;
	row->bins = (unsigned)count;
	for (size_t i = 0; i < count; i++)
		if (bin_from_json(json_array_get(list, i), &row->bin[i]))
			return -EINVAL;
	return 0;
}

static int get_figures(const json_t *object, struct bench_row *row)
{
	char *base = (char *)row;

	if (get_count(object, "samples", INT64_MAX, &row->samples) || !row->samples ||
	    get_count(object, "pairs", INT64_MAX, &row->pairs) ||
	    get_count(object, "outliers", INT64_MAX, &row->outliers))
		return -EINVAL;
	for (size_t i = 0; i < COUNT(reals); i++)
		if (get_real(object, reals[i].name, (double *)(base + reals[i].offset)))
			return -EINVAL;
	for (size_t i = 0; i < COUNT(values); i++)
		if (get_value(object, values[i].name,
			      (struct bench_value *)(base + values[i].offset)))
			return -EINVAL;
	if (json_object_get(object, "against") &&
	    get_text(object, "against", row->against, sizeof(row->against)))
		return -EINVAL;
	return get_extras(object, row) ? -EINVAL : get_histogram(object, row);
}

static int get_skipped(const json_t *object, struct bench_row *row)
{
	char why[BENCH_WHY];
	int rc = get_text(object, "skipped", why, sizeof(why));

	if (!rc)
		bench_row_skip(row, "%s", why);
	return rc;
}

static int row_from_json(const json_t *object, struct bench_row *row)
{
	const json_t *peer = json_object_get(object, "peer");

	if (!json_is_boolean(peer) || get_text(object, "name", row->name, sizeof(row->name)) ||
	    get_text(object, "measure", row->measure, sizeof(row->measure)) ||
	    get_text(object, "unit", row->unit, sizeof(row->unit)) || get_params(object, row))
		return -EINVAL;
	row->peer = json_is_true(peer);
	return json_object_get(object, "skipped") ? get_skipped(object, row)
						  : get_figures(object, row);
}

static int get_rows(const json_t *line, struct bench_result *result)
{
	const json_t *list = json_object_get(line, "rows");
	int rc = json_is_array(list) ? 0 : -EINVAL;

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		struct bench_row *row = bench_result_add(result);

		rc = row ? row_from_json(json_array_get(list, i), row) : -ENOMEM;
	}
	return rc;
}

static int get_borrowed(const json_t *line, struct bench_result *result)
{
	const struct bench_result nothing = { .seating.placement = PLACEMENT_SPREAD };
	json_t *cell = cell_line(&nothing);
	struct cell_record record;
	int rc = -EINVAL;

	if (!cell)
		return -ENOMEM;
	if (!json_object_set(cell, "cpus", json_object_get(line, "cpus")) &&
	    !json_object_set(cell, "witness", json_object_get(line, "witness")) &&
	    !json_object_set(json_object_get(cell, "cell"), "placement",
			     json_object_get(line, "placement")))
		rc = record_from_json(cell, &record);
	json_decref(cell);
	if (rc)
		return rc;
	result->seating = record.result.seating;
	result->witness = record.result.witness;
	return 0;
}

static int get_rest(const json_t *line, struct bench_result *result)
{
	uint64_t rounds;

	if (get_count(line, "seed", INT64_MAX, &result->seed) ||
	    get_count(line, "rounds", UINT32_MAX, &rounds) ||
	    get_real(line, "seconds", &result->seconds) || !(result->seconds >= 0) ||
	    get_count(line, "first_wait", INT64_MAX, &result->first_wait) ||
	    get_count(line, "second_wait", INT64_MAX, &result->second_wait) ||
	    get_count(line, "stretch", INT64_MAX, &result->stretch) ||
	    get_text(line, "waits_from", result->waits_from, sizeof(result->waits_from)) ||
	    get_value(line, "distance", &result->distance))
		return -EINVAL;
	result->rounds = (unsigned)rounds;
	return word_listed(result->waits_from, waits) ? 0 : -EINVAL;
}

/* All that bench_to_json() writes. */
static int body_from_json(const json_t *line, struct bench_result *result)
{
	int rc = get_text(line, "benchmark", result->benchmark, sizeof(result->benchmark));

	if (rc || !word_listed(result->benchmark, benchmarks))
		return -EINVAL;
	rc = get_rest(line, result);
	if (!rc)
		rc = get_borrowed(line, result);
	return rc ? rc : get_rows(line, result);
}

static bool is_bench(const json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	json_int_t schema = json_integer_value(json_object_get(line, "schema"));

	return type && strcmp(type, "bench") == 0 && schema == JOURNAL_SCHEMA;
}

int bench_from_json(const json_t *line, struct bench_result *result)
{
	int rc = -EINVAL;

	memset(result, 0, sizeof(*result));
	if (is_bench(line))
		rc = get_text(line, "date", result->date, sizeof(result->date));
	if (!rc)
		rc = body_from_json(line, result);
	if (rc)
		bench_result_free(result);
	return rc;
}

/* What could not be read back must not be written. */
static bool reads_back(const json_t *body)
{
	struct bench_result back = { 0 };
	int rc = body_from_json(body, &back);

	bench_result_free(&back);
	return rc == 0;
}

json_t *bench_to_json(const struct bench_result *result)
{
	json_t *body =
		json_pack("{s:s, s:s}", "tool", PACKAGE_STRING, "benchmark", result->benchmark);

	if (body && put_all(body, result) == 0 && reads_back(body))
		return body;
	json_decref(body);
	return NULL;
}
