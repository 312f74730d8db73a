/* SPDX-License-Identifier: MIT */
#include "bench/method/result.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct bench_row *bench_result_add(struct bench_result *result)
{
	if (ARRAY_ADD(result->row, result->rows, (struct bench_row){ 0 }) < 0)
		return NULL;
	return &result->row[result->rows - 1];
}

void bench_result_free(struct bench_result *result)
{
	free(result->row);
	*result = (struct bench_result){ 0 };
}

static void copy_text(char *to, size_t size, const char *from)
{
	assert(strlen(from) < size);
	snprintf(to, size, "%s", from);
}

void bench_row_name(struct bench_row *row, const char *name, const char *measure, const char *unit)
{
	copy_text(row->name, sizeof(row->name), name);
	copy_text(row->measure, sizeof(row->measure), measure);
	copy_text(row->unit, sizeof(row->unit), unit);
}

static void add_param(struct bench_param *param, const char *key, double number, const char *text)
{
	copy_text(param->key, sizeof(param->key), key);
	copy_text(param->text, sizeof(param->text), text);
	param->number = number;
}

void bench_row_param(struct bench_row *row, const char *key, double number)
{
	assert(row->params < BENCH_PARAMS);
	add_param(&row->param[row->params++], key, number, "");
}

void bench_row_param_text(struct bench_row *row, const char *key, const char *text)
{
	assert(*text && row->params < BENCH_PARAMS);
	add_param(&row->param[row->params++], key, NAN, text);
}

void bench_row_extra(struct bench_row *row, const char *key, double number)
{
	assert(row->extras < BENCH_EXTRAS);
	add_param(&row->extra[row->extras++], key, number, "");
}

void bench_row_skip(struct bench_row *row, const char *format, ...)
{
	const struct bench_value none = { NAN, NAN, NAN };
	va_list ap;

	row->value = row->base = row->ratio = none;
	row->least = row->p5 = row->p25 = row->p75 = row->p95 = row->p99 = row->most = NAN;
	row->samples = row->pairs = row->outliers = 0;
	va_start(ap, format);
	vsnprintf(row->why, sizeof(row->why), format, ap);
	va_end(ap);
	for (char *c = row->why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static const struct bench_param *find_param(const struct bench_param *list, unsigned count,
					    const char *key)
{
	for (; count--; list++)
		if (strcmp(list->key, key) == 0)
			return list;
	return NULL;
}

double bench_row_number(const struct bench_row *row, const char *key)
{
	const struct bench_param *param = find_param(row->param, row->params, key);

	return param && !param->text[0] ? param->number : NAN;
}

const char *bench_row_text(const struct bench_row *row, const char *key)
{
	const struct bench_param *param = find_param(row->param, row->params, key);

	return param && param->text[0] ? param->text : NULL;
}

double bench_row_extra_of(const struct bench_row *row, const char *key)
{
	const struct bench_param *extra = find_param(row->extra, row->extras, key);

	return extra ? extra->number : NAN;
}

bool bench_row_same(const struct bench_row *row)
{
	return !(row->ratio.low > 1 || row->ratio.high < 1);
}
