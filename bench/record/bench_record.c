/* SPDX-License-Identifier: MIT */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "bench/record/bench_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/journal/fields.h"
#include "results/journal/journal.h"

/* clang-format off */
static const struct field of_value[] = {
	PRESENT(struct bench_value, "median", median),
	PRESENT(struct bench_value, "low", low),
	PRESENT(struct bench_value, "high", high),
	END
};

static const struct field of_result[] = {
	TEXT(struct bench_result, "benchmark", benchmark, 1),
	BOUNDED(struct bench_result, "seed", seed, NUMBER_SEED, 0, INT64_MAX),
	BOUNDED(struct bench_result, "rounds", rounds, NUMBER_UNSIGNED, 0, UINT32_MAX),
	PRESENT(struct bench_result, "seconds", seconds),
	COUNT(struct bench_result, "first_wait", waits.first),
	COUNT(struct bench_result, "second_wait", waits.second),
	COUNT(struct bench_result, "stretch", waits.stretch),
	TEXT(struct bench_result, "waits_from", waits_from, 1),
	TABLE(struct bench_result, "distance", distance, true, of_value),
	NAME(struct bench_result, "placement", seating.placement, PLACEMENT_COUNT, placement_name,
	     placement_parse),
	OTHER(struct bench_result, "cpus", seating, NUMBER_CPUS, false),
	TABLE(struct bench_result, "witness", witness, false, witness_fields),
	END
};

static const struct field of_row[] = {
	TEXT(struct bench_row, "name", name, 1),
	TEXT(struct bench_row, "measure", measure, 1),
	TEXT(struct bench_row, "unit", unit, 1),
	OTHER(struct bench_row, "peer", peer, NUMBER_FLAG, false),
	END
};

/* Of a row that was not skipped. */
static const struct field figures[] = {
	COUNT(struct bench_row, "samples", samples),
	COUNT(struct bench_row, "pairs", pairs),
	PRESENT(struct bench_row, "least", least),
	PRESENT(struct bench_row, "p5", p5),
	PRESENT(struct bench_row, "p25", p25),
	PRESENT(struct bench_row, "p75", p75),
	PRESENT(struct bench_row, "p95", p95),
	PRESENT(struct bench_row, "p99", p99),
	PRESENT(struct bench_row, "most", most),
	COUNT(struct bench_row, "outliers", outliers),
	TEXT(struct bench_row, "against", against, 0),
	TABLE(struct bench_row, "value", value, true, of_value),
	TABLE(struct bench_row, "base", base, true, of_value),
	TABLE(struct bench_row, "ratio", ratio, true, of_value),
	END
};
/* clang-format on */

static const char *const waits[] = { "none", "config", "assumed", NULL };

/* What is not known is left out. A key that is there already would be lost. */
static int put_params(json_t *object, const char *name, const struct bench_param *param,
		      unsigned count)
{
	json_t *list = json_object();
	int rc = json_object_set_new(object, name, list);

	for (; count-- && !rc; param++) {
		json_t *value =
			param->text[0] ? json_string(param->text) : real_to_json(param->number);

		if (!value)
			continue;
		rc = json_object_get(list, param->key) ? -EINVAL : 0;
		rc |= json_object_set_new(list, param->key, value);
	}
	return rc;
}

/* A row that was skipped has params and the reason. */
static int put_row(json_t *object, const struct bench_row *row)
{
	int rc = json_object_update_new(object, table_to_json(of_row, row));

	rc |= put_params(object, "params", row->param, row->params);
	if (!row->samples)
		return rc | json_object_set_new(
				    object, "skipped",
				    json_string(row->why[0] ? row->why : "no reason was given"));
	rc |= json_object_update_new(object, table_to_json(figures, row));
	return rc | put_params(object, "extras", row->extra, row->extras);
}

static int copy_text(const char *text, char *to, size_t size)
{
	return text && *text ? text_take(text, to, size) : -EINVAL;
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
	const json_t *skipped = json_object_get(object, "skipped");

	if (table_from_json(object, of_row, row) ||
	    get_params(object, "params", row->param, &row->params, BENCH_PARAMS, true))
		return -EINVAL;
	if (skipped) {
		bench_row_skip(row, "%s", "");
		return copy_text(json_string_value(skipped), row->why, sizeof(row->why));
	}
	if (table_from_json(object, figures, row) || !row->samples ||
	    get_params(object, "extras", row->extra, &row->extras, BENCH_EXTRAS, false))
		return -EINVAL;
	return 0;
}

/* All that bench_to_json() writes. */
static int body_from_json(const json_t *line, struct bench_result *result)
{
	const json_t *list = json_object_get(line, "rows");
	int rc = table_from_json(line, of_result, result);

	if (rc || !benchmark_named(result->benchmark) || !word_listed(result->waits_from, waits) ||
	    !(result->seconds >= 0) || !json_is_array(list))
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		struct bench_row *row = bench_result_add(result);

		rc = row ? row_from_json(json_array_get(list, i), row) : -ENOMEM;
	}
	return rc;
}

int bench_from_json(const json_t *line, struct bench_result *result)
{
	int rc;

	memset(result, 0, sizeof(*result));
	if (strcmp(json_text_of(line, "type"), "bench") != 0 ||
	    json_integer_value(json_object_get(line, "schema")) != JOURNAL_SCHEMA ||
	    copy_text(json_string_value(json_object_get(line, "date")), result->date,
		      sizeof(result->date)))
		return -EINVAL;
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
	int rc;

	if (!named.waits_from[0])
		strcpy(named.waits_from, waits[0]);
	rc = json_object_update_new(line, table_to_json(of_result, &named));
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
