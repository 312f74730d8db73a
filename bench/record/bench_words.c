/* SPDX-License-Identifier: MIT */
#include "bench/record/bench_record.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of ASCII alone, whichever the locale. */
char *words_plain(const char *text, char *buf, size_t size)
{
	size_t i = 0;

	for (; text[i] && i + 1 < size; i++) {
		bool plain = (text[i] & 0x80) == 0 &&
			     (isalnum((unsigned char)text[i]) || strchr(" ,.:|=+/()-_%", text[i]));

		buf[i] = text[i];
		if (!plain)
			buf[i] = '?';
	}
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

char *words_of_params(const struct bench_row *row, const char *const without[], char *buf,
		      size_t size)
{
	/* Values that speak for themselves. */
	static const char *const bare[] = { "policy", "mapping", "cache", "mode", "verdict", NULL };
	char raw[WORDS_ROOM] = "", one[BENCH_KEY + BENCH_TEXT + 16];
	size_t length = 0;

	for (unsigned i = 0; i < row->params; i++) {
		const char *key = row->param[i].key, *text = row->param[i].text;
		double number = row->param[i].number;
		size_t all = strlen(key);
		bool plural = all && key[all - 1] == 's';
		int stem = (int)(all - (plural && (number == 1 || number == 0)));

		if (word_listed(key, without))
			continue;
		/* "1|4" of a split, "2 executors", "no executor", "batch of 10". */
		if (strcmp(key, "split") == 0 && strcmp(text, "0") == 0)
			snprintf(one, sizeof(one), "inside 8 bytes");
		else if (text[0])
			snprintf(one, sizeof(one), "%s%s%s", word_listed(key, bare) ? "" : key,
				 word_listed(key, bare) ? "" : " ", text);
		else if (strcmp(key, "batch") == 0)
			snprintf(one, sizeof(one), "batch of %.10g", number);
		else if (strcmp(key, "rate") == 0)
			snprintf(one, sizeof(one), "%.10g toggles/s", number);
		else if (number == 0)
			snprintf(one, sizeof(one), "no %.*s", stem, key);
		else
			snprintf(one, sizeof(one), "%.10g %.*s", number, stem, key);
		if (one[0] && length < sizeof(raw))
			length += (size_t)snprintf(raw + length, sizeof(raw) - length, "%s%s",
						   length ? ", " : "", one);
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
		snprintf(buf + length, size - length, "%s%s", length ? ": " : "", params);
	return buf;
}

int words_slot(struct words *words, unsigned most, const char *text)
{
	for (unsigned i = 0; i < words->count; i++)
		if (strcmp(words->text[i], text) == 0)
			return (int)i;
	if (words->count == most)
		return -1;
	strcpy(words->text[words->count], text);
	return (int)words->count++;
}

void words_quoted(const struct words *words, char *text, size_t size)
{
	char word[WORDS_ROOM];
	size_t length = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < words->count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s\"%s\"", i ? " " : "",
					   words_plain(words->text[i], word, sizeof(word)));
}

static void put_count(FILE *out, const char *what, uint64_t count)
{
	fprintf(out, "%s ", what);
	if (count == WITNESS_UNKNOWN)
		fputs("unknown", out);
	else
		fprintf(out, "%" PRIu64, count);
}

char *words_of_result(const struct bench_result *r, uint64_t tsc_khz)
{
	const struct seating *seating = &r->seating;
	const struct bench_value *distance = &r->distance;
	const struct witness *w = &r->witness;
	const unsigned *cpu = seating->executor;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s: %u round%s in %.0f s, ended %s, seed %" PRIu64 "\n", r->benchmark,
		r->rounds, S(r->rounds), r->seconds, r->date, r->seed);
	fprintf(out, "patcher on CPU %u", seating->patcher);
	if (seating->executors)
		fprintf(out, ", executor%s on ", S(seating->executors));
	/* "1-3, 8" */
	for (unsigned i = 0, end; i < seating->executors; i = end) {
		for (end = i + 1; end < seating->executors && cpu[end] == cpu[end - 1] + 1;)
			end++;
		fprintf(out, "%s%u", i ? ", " : "", cpu[i]);
		if (end - i > 1)
			fprintf(out, "-%u", cpu[end - 1]);
	}
	if (!isnan(distance->median))
		fprintf(out, "\na line takes %s from one to the other (%s to %s)",
			TICKS(distance->median, tsc_khz), TICKS(distance->low, tsc_khz),
			TICKS(distance->high, tsc_khz));
	if (r->waits.first)
		fprintf(out, "\npolicy wait: %s and %s", TICKS(r->waits.first, tsc_khz),
			TICKS(r->waits.second, tsc_khz));
	else
		fputs("\npolicy wait: not to be had here", out);
	if (r->waits.first && r->waits.stretch)
		fprintf(out, ", or %" PRIu64 " times what the stores take", r->waits.stretch);
	if (r->waits.first && strcmp(r->waits_from, "assumed") == 0)
		fputs("\nThese waits are assumed, to tell costs. Nothing is claimed about tears at "
		      "them.",
		      out);
	else if (r->waits.first)
		fputs(", from machine.conf", out);
	put_count(out, "\nmeanwhile: involuntary switches", w->involuntary);
	put_count(out, ", interrupts", w->interrupts);
	fprintf(out, ", steal %s%s, runnable at the end %s\n",
		w->steal < 0 ? "unknown" : NUMBER(100 * w->steal), w->steal < 0 ? "" : " %",
		w->load < 0 ? "unknown" : NUMBER(w->load));
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void bench_ticks_to_times(struct bench_result *result, uint64_t tsc_khz)
{
	static const char *const times[] = { "over_empty", "over_low", "over_high",
					     "over_base",  "typical",  "worst",
					     "idle_worst", "pass",     NULL };
	double us = 1000 / (double)tsc_khz, most = 0;
	struct bench_row *row, *end = result->row + result->rows;

	for (row = result->row; row < end; row++)
		if (strcmp(row->unit, "ticks") == 0)
			most = fmax(most, row->value.median * us);
	for (row = result->row; tsc_khz && row < end; row++) {
		double *const numbers[] = { &row->least,      &row->p5,		  &row->p25,
					    &row->p75,	      &row->p95,	  &row->p99,
					    &row->most,	      &row->value.median, &row->value.low,
					    &row->value.high, &row->base.median };
		double by = most < 1 ? 1000 * us : us;

		if (strcmp(row->unit, "ticks") != 0)
			continue;
		strcpy(row->unit, most < 1 ? "ns" : "us");
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			*numbers[i] *= by;
		for (unsigned i = 0; i < row->extras; i++)
			row->extra[i].number *= word_listed(row->extra[i].key, times) ? by : 1;
	}
}

bool row_measured(const struct bench_row *row)
{
	return row->samples && isfinite(row->value.median);
}

double finite_or(double value, double otherwise)
{
	return isfinite(value) ? value : otherwise;
}

double bench_rounded(double value)
{
	return fabs(value) >= 100 ? round(value) : value;
}

static bool same_param(const struct bench_param *a, const struct bench_param *b)
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
