/* SPDX-License-Identifier: MIT */
#include "bench/method/result.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_row *bench_result_add(struct bench_result *result)
{
	struct bench_row *row = reallocarray(result->row, result->rows + 1, sizeof(*row));

	if (!row)
		return NULL;
	result->row = row;
	row += result->rows++;
	memset(row, 0, sizeof(*row));
	return row;
}

void bench_result_free(struct bench_result *result)
{
	for (unsigned i = 0; i < result->rows; i++)
		free(result->row[i].bin);
	free(result->row);
	*result = (struct bench_result){ 0 };
}

static void copy(char *to, size_t size, const char *from)
{
	assert(strlen(from) < size);
	snprintf(to, size, "%s", from);
}

void bench_row_name(struct bench_row *row, const char *name, const char *measure, const char *unit)
{
	copy(row->name, sizeof(row->name), name);
	copy(row->measure, sizeof(row->measure), measure);
	copy(row->unit, sizeof(row->unit), unit);
}

static struct bench_param *add_param(struct bench_row *row, const char *key)
{
	struct bench_param *param = &row->param[row->params];

	assert(row->params < BENCH_PARAMS);
	row->params++;
	copy(param->key, sizeof(param->key), key);
	return param;
}

void bench_row_param(struct bench_row *row, const char *key, double number)
{
	struct bench_param *param = add_param(row, key);

	param->text[0] = '\0';
	param->number = number;
}

void bench_row_param_text(struct bench_row *row, const char *key, const char *text)
{
	struct bench_param *param = add_param(row, key);

	assert(*text);
	copy(param->text, sizeof(param->text), text);
	param->number = NAN;
}

void bench_row_extra(struct bench_row *row, const char *key, double number)
{
	struct bench_extra *extra = &row->extra[row->extras];

	assert(row->extras < BENCH_EXTRAS);
	row->extras++;
	copy(extra->key, sizeof(extra->key), key);
	extra->number = number;
}

void bench_row_skip(struct bench_row *row, const char *format, ...)
{
	const struct bench_value none = { NAN, NAN, NAN };
	va_list ap;

	row->value = row->base = row->ratio = none;
	row->least = row->p5 = row->p25 = row->p75 = row->p95 = row->p99 = row->most = NAN;
	row->samples = row->pairs = row->outliers = 0;
	free(row->bin);
	row->bin = NULL;
	row->bins = 0;
	va_start(ap, format);
	vsnprintf(row->why, sizeof(row->why), format, ap);
	va_end(ap);
	for (char *c = row->why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static const struct bench_param *find_param(const struct bench_row *row, const char *key)
{
	for (unsigned i = 0; i < row->params; i++)
		if (strcmp(row->param[i].key, key) == 0)
			return &row->param[i];
	return NULL;
}

double bench_row_number(const struct bench_row *row, const char *key)
{
	const struct bench_param *param = find_param(row, key);

	return param && !param->text[0] ? param->number : NAN;
}

const char *bench_row_text(const struct bench_row *row, const char *key)
{
	const struct bench_param *param = find_param(row, key);

	return param && param->text[0] ? param->text : NULL;
}

double bench_row_extra_of(const struct bench_row *row, const char *key)
{
	for (unsigned i = 0; i < row->extras; i++)
		if (strcmp(row->extra[i].key, key) == 0)
			return row->extra[i].number;
	return NAN;
}

char *bench_row_label(const struct bench_row *row, char *buf, size_t size)
{
	int length = snprintf(buf, size, "%s", row->name);

	for (unsigned i = 0; i < row->params && length >= 0 && (size_t)length < size; i++) {
		const struct bench_param *param = &row->param[i];
		char *at = buf + length;
		size_t left = size - (size_t)length;

		if (param->text[0])
			length += snprintf(at, left, " %s=%s", param->key, param->text);
		else
			length += snprintf(at, left, " %s=%.10g", param->key, param->number);
	}
	return buf;
}

bool bench_row_same(const struct bench_row *row)
{
	return !(row->ratio.low > 1 || row->ratio.high < 1);
}
