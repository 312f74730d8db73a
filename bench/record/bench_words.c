/* SPDX-License-Identifier: MIT */
#include "bench/record/bench_words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(char c)
{
	return isalnum((unsigned char)c) || (c && strchr(" ,.:|=+/()-_%", c));
}

/* Of ASCII alone, whatever the locale says of the rest. */
char *words_plain(const char *text, char *buf, size_t size)
{
	size_t i = 0;

	for (; text[i] && i + 1 < size; i++)
		buf[i] = (text[i] & 0x80) == 0 && is_plain(text[i]) ? text[i] : '?';
	buf[i] = '\0';
	return buf;
}

bool word_listed(const char *word, const char *const list[])
{
	for (; list && *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

static void text_words(const struct bench_param *param, char *buf, size_t size)
{
	/* Values that speak for themselves. */
	static const char *const bare[] = { "policy", "mapping", "cache", "mode", NULL };

	if (strcmp(param->key, "split") == 0 && strcmp(param->text, "0") == 0)
		snprintf(buf, size, "inside 8 bytes");
	else if (word_listed(param->key, bare))
		snprintf(buf, size, "%s", param->text);
	else
		snprintf(buf, size, "%s %s", param->key, param->text);
}

/* "no executor", "1 executor", "2 executors". */
static void count_words(const struct bench_param *param, char *buf, size_t size)
{
	size_t length = strlen(param->key);
	bool plural = length && param->key[length - 1] == 's';
	bool one = param->number == 1 || param->number == 0;
	int cut = (int)(length - (plural && one));

	if (param->number == 0)
		snprintf(buf, size, "no %.*s", cut, param->key);
	else
		snprintf(buf, size, "%.10g %.*s", param->number, cut, param->key);
}

static void number_words(const struct bench_param *param, char *buf, size_t size)
{
	/* There or not, and no number of anything. */
	static const char *const flags[] = { "oversubscribed", "one-site", NULL };

	if (strcmp(param->key, "batch") == 0)
		snprintf(buf, size, "batch of %.10g", param->number);
	else if (strcmp(param->key, "rate") == 0)
		snprintf(buf, size, "%.10g toggles/s", param->number);
	else if (word_listed(param->key, flags))
		snprintf(buf, size, "%s", param->number == 0 ? "" : param->key);
	else
		count_words(param, buf, size);
}

/* Counts on past the end of a buffer that is full, as snprintf() does. */
static size_t append(char *buf, size_t size, size_t length, const char *between, const char *more)
{
	if (length < size)
		snprintf(buf + length, size - length, "%s%s", length ? between : "", more);
	return length + (length ? strlen(between) : 0) + strlen(more);
}

char *words_of_params(const struct bench_row *row, const char *const without[], char *buf,
		      size_t size)
{
	char raw[WORDS_ROOM] = "", one[BENCH_KEY + BENCH_TEXT + 16];
	size_t length = 0;

	for (unsigned i = 0; i < row->params; i++) {
		const struct bench_param *param = &row->param[i];

		if (word_listed(param->key, without))
			continue;
		if (param->text[0])
			text_words(param, one, sizeof(one));
		else
			number_words(param, one, sizeof(one));
		if (one[0])
			length = append(raw, sizeof(raw), length, ", ", one);
	}
	return words_plain(raw, buf, size);
}

char *words_of_row(const struct bench_row *row, const char *const without[], char *buf, size_t size)
{
	char params[WORDS_ROOM];
	size_t length;

	words_plain(row->name, buf, size);
	words_of_params(row, without, params, sizeof(params));
	length = strlen(buf);
	if (params[0])
		append(buf, size, length, ": ", params);
	return buf;
}

int words_slot(char (*list)[WORDS_ROOM], unsigned *count, unsigned most, const char *text)
{
	for (unsigned i = 0; i < *count; i++)
		if (strcmp(list[i], text) == 0)
			return (int)i;
	if (*count == most)
		return -1;
	strcpy(list[*count], text);
	return (int)(*count)++;
}

bool row_measured(const struct bench_row *row)
{
	return row->samples && isfinite(row->value.median);
}

double finite_or(double value, double otherwise)
{
	return isfinite(value) ? value : otherwise;
}

bool same_param(const struct bench_param *a, const struct bench_param *b)
{
	return strcmp(a->key, b->key) == 0 && strcmp(a->text, b->text) == 0 &&
	       (a->text[0] || a->number == b->number);
}

bool rows_same_case(const struct bench_row *a, const struct bench_row *b)
{
	if (strcmp(a->name, b->name) || strcmp(a->unit, b->unit) || a->params != b->params)
		return false;
	for (unsigned i = 0; i < a->params; i++)
		if (!same_param(&a->param[i], &b->param[i]))
			return false;
	return true;
}
