/* SPDX-License-Identifier: MIT */
#include "bench/record/bench_find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_words.h"

static bool is_word_of(const char *text, const char *words)
{
	size_t length = strlen(text);

	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");

		if (word == length && strncmp(at, text, length) == 0)
			return true;
		at += word;
	}
	return false;
}

static bool has_value(const struct bench_row *row, const char *key, const char *value)
{
	const char *text = bench_row_text(row, key);
	char *end;
	double number = strtod(value, &end);

	if (text)
		return strcmp(text, value) == 0;
	return *value && !*end && bench_row_number(row, key) == number;
}

static bool has_key(const struct bench_row *row, const char *key)
{
	return bench_row_text(row, key) || !isnan(bench_row_number(row, key));
}

/* One "key=value" or "?key=value", of so many bytes. */
static bool meets(const struct bench_row *row, const char *param, size_t length)
{
	char word[BENCH_KEY + BENCH_TEXT + 2], *key = word, *value;

	snprintf(word, sizeof(word), "%.*s", (int)length, param);
	value = strchr(word, '=');
	if (!value)
		return false;
	*value++ = '\0';
	if (*key == '?' && !has_key(row, ++key))
		return true;
	return has_value(row, key, value);
}

static bool meets_all(const struct bench_row *row, const char *params)
{
	params += strspn(params, " ");
	while (*params) {
		size_t length = strcspn(params, " ");

		if (!meets(row, params, length))
			return false;
		params += length;
		params += strspn(params, " ");
	}
	return true;
}

bool bench_is(const struct bench_row *row, const char *name, const char *measure,
	      const char *params)
{
	return (!name || is_word_of(row->name, name)) &&
	       (!measure || is_word_of(row->measure, measure)) &&
	       (!params || meets_all(row, params));
}

const struct bench_row *bench_next(const struct bench_result *result, const char *name,
				   const char *measure, const char *params, unsigned *i)
{
	while (result && *i < result->rows) {
		const struct bench_row *row = &result->row[(*i)++];

		if (row_measured(row) && bench_is(row, name, measure, params))
			return row;
	}
	return NULL;
}

const struct bench_result *bench_of(const struct bench_result *results, size_t count,
				    const char *benchmark)
{
	while (count--)
		if (strcmp(results[count].benchmark, benchmark) == 0)
			return &results[count];
	return NULL;
}

static struct bench_value whole(struct bench_value v)
{
	if (!isfinite(v.low))
		v.low = v.median;
	if (!isfinite(v.high))
		v.high = v.median;
	return v;
}

static struct bench_value over(struct bench_value a, struct bench_value b)
{
	a = whole(a);
	b = whole(b);
	return (struct bench_value){ a.median / b.median, a.low / b.high, a.high / b.low };
}

struct bench_value row_over(const struct bench_row *a, const struct bench_row *b)
{
	bool same = a->against[0] && strcmp(a->against, b->against) == 0 &&
		    isfinite(a->ratio.median) && isfinite(b->ratio.median);

	return same ? over(a->ratio, b->ratio) : over(a->value, b->value);
}
