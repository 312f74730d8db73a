/* SPDX-License-Identifier: MIT */
#include "bench/command/bench_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_words.h"

#define LABEL_WIDTH 28
#define TEXT_MAX    24

char *bench_figures(double x, char *buf, size_t size)
{
	static const char letters[] = { '\0', 'k', 'M', 'G', 'T', 'P' };
	static const double below[] = { 99.95, 9.995, 0.9995 };
	double a = fabs(x);
	size_t letter = 0;
	int decimals = 0;

	if (isnan(x)) {
		snprintf(buf, size, "-");
		return buf;
	}
	for (; a >= (letter ? 999.5 : 9999.5) && letter + 1 < sizeof(letters) && isfinite(a);
	     letter++)
		a /= 1000;
	/* For three digits; a zero has none. */
	while (a > 0 && decimals < 3 && a < below[decimals])
		decimals++;
	snprintf(buf, size, "%.*f%.1s", decimals, copysign(a, x), &letters[letter]);
	if (a > 0 && a < 0.00995)
		snprintf(buf, size, "%.2g", x);
	return buf;
}

/* --- What rows have in common --------------------------------------------------------------- */

/* Rows that follow one another, of one name. */
struct group {
	const struct bench_row **row;
	size_t rows;
};

/* NULL: have all the same measure? */
static bool all_have(const struct group *g, const struct bench_param *param)
{
	for (size_t i = 0; i < g->rows; i++) {
		const struct bench_row *row = g->row[i];
		unsigned k = 0;

		while (param && k < row->params && !same_param(&row->param[k], param))
			k++;
		if (param ? k == row->params : strcmp(row->measure, g->row[0]->measure) != 0)
			return false;
	}
	return true;
}

/*
 * Numbers are counts and rates, so whole; the digits of a long one are hard to count. These two
 * return how much they have printed.
 */
static int print_param(FILE *out, const struct bench_param *param, bool brief)
{
	const char *text = param->text;
	bool tells = text[strcspn(text, "|abcdefghijklmnopqrstuvwxyz")];
	double x = param->number;

	if (text[0])
		return brief && tells ? fprintf(out, " %s", text)
				      : fprintf(out, " %s=%s", param->key, text);
	if (x >= 1e9 && fmod(x, 1e8) == 0)
		return fprintf(out, " %s=%.10gG", param->key, x / 1e9);
	if (x >= 1e6 && fmod(x, 1e5) == 0)
		return fprintf(out, " %s=%.10gM", param->key, x / 1e6);
	if (x >= 1e4 && fmod(x, 100) == 0)
		return fprintf(out, " %s=%.10gk", param->key, x / 1e3);
	return fprintf(out, " %s=%.10g", param->key, x);
}

/*
 * What all rows of the group are; or what only one of them is, by names that tell themselves
 * apart without a key.
 */
static int print_label(FILE *out, const struct group *g, const struct bench_row *only)
{
	const struct bench_row *row = only ? only : g->row[0];
	int length = only ? fprintf(out, " ")
			  : fprintf(out, "%s%s", row->name, row->peer ? " (peer)" : "");

	if (all_have(g, NULL) == !only)
		length += fprintf(out, " %s", row->measure);
	for (unsigned i = 0; i < row->params; i++)
		if (all_have(g, &row->param[i]) == !only)
			length += print_param(out, &row->param[i], only);
	return length;
}

/* --- A row ---------------------------------------------------------------------------------- */

#define FIGURES(x) bench_figures(x, (char[TEXT_MAX]){ 0 }, TEXT_MAX)

static const char *interval_of(const struct bench_value *v, char text[2 * TEXT_MAX])
{
	text[0] = '\0';
	if (!isnan(v->low) && !isnan(v->high))
		snprintf(text, 2 * TEXT_MAX, "[%s,%s]", FIGURES(v->low), FIGURES(v->high));
	return text;
}

/* Behind a label of that length. What has no room beside the figures has a line above them. */
static void print_row(FILE *out, int label, const struct bench_row *row)
{
	char interval[2 * TEXT_MAX], range[2 * TEXT_MAX], count[TEXT_MAX];
	bool told = false;

	for (unsigned i = 0; i < row->extras; i++) {
		/* That executors were at work is for readers of the JSON. */
		if (strcmp(row->extra[i].key, "executed") == 0)
			continue;
		fprintf(out, "%s %s %s", told ? "," : ":", row->extra[i].key,
			FIGURES(row->extra[i].number));
		told = true;
	}
	if (told || label > LABEL_WIDTH)
		fprintf(out, "\n%*s", LABEL_WIDTH, "");
	else
		fprintf(out, "%*s", LABEL_WIDTH - label, "");
	snprintf(range, sizeof(range), "%s..%s", FIGURES(row->p5), FIGURES(row->p99));
	snprintf(count, sizeof(count), "%" PRIu64, row->outliers);
	fprintf(out, " %5s %13s %12s %5s %5s", FIGURES(row->value.median),
		interval_of(&row->value, interval), range, FIGURES(row->most),
		row->outliers >= 10000 ? FIGURES((double)row->outliers) : count);
	/* Where there is no difference the noise tells how large a one could have been seen. */
	interval_of(&row->ratio, interval);
	if (row->against[0])
		fprintf(out, " %s%s%s",
			bench_row_same(row) ? "no difference" : FIGURES(row->ratio.median),
			interval[0] ? " " : "", interval);
	fputc('\n', out);
}

/* --- The table ------------------------------------------------------------------------------ */

static bool is_alike(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->unit, b->unit) == 0 && strcmp(a->against, b->against) == 0;
}

static bool is_of_group(const struct bench_row *a, const struct bench_row *b)
{
	return is_alike(a, b) && a->peer == b->peer && strcmp(a->name, b->name) == 0;
}

/* How many of the rows from here on belong together. */
static struct group group_at(const struct bench_row **row, size_t left,
			     bool (*together)(const struct bench_row *, const struct bench_row *))
{
	struct group g = { row, 1 };

	while (g.rows < left && together(row[0], row[g.rows]))
		g.rows++;
	return g;
}

static bool is_skipped_alike(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->why, b->why) == 0;
}

static void print_top(FILE *out, const struct bench_result *r)
{
	const struct seating *seating = &r->seating;
	const struct bench_value *distance = &r->distance;
	const unsigned *cpu = seating->executor;
	bool assumed = strcmp(r->waits_from, "assumed") == 0;

	fprintf(out, "%s: %u round%s in %.0f s, seed %" PRIu64 "\n", r->benchmark, r->rounds,
		r->rounds == 1 ? "" : "s", r->seconds, r->seed);
	fprintf(out, "patcher on CPU %u", seating->patcher);
	if (seating->executors)
		fprintf(out, ", executor%s on ", seating->executors == 1 ? "" : "s");
	/* "1-3, 8" */
	for (unsigned i = 0, end; i < seating->executors; i = end) {
		for (end = i + 1; end < seating->executors && cpu[end] == cpu[end - 1] + 1;)
			end++;
		fprintf(out, "%s%u", i ? ", " : "", cpu[i]);
		if (end - i > 1)
			fprintf(out, "-%u", cpu[end - 1]);
	}
	fputc('\n', out);
	if (!isnan(distance->median))
		fprintf(out, "a line takes %s ticks from one to the other (%s to %s)\n",
			FIGURES(distance->median), FIGURES(distance->low), FIGURES(distance->high));
	if (!r->waits.first) {
		fprintf(out, "policy wait: not to be had here\n");
		return;
	}
	fprintf(out, "policy wait: %" PRIu64 " and %" PRIu64 " ticks", r->waits.first,
		r->waits.second);
	if (r->waits.stretch)
		fprintf(out, ", or %" PRIu64 " times what the stores take", r->waits.stretch);
	fprintf(out, "%s\n",
		assumed ? "\nThese waits are assumed, to tell costs. Nothing is claimed about "
			  "tears at them."
			: ", from machine.conf");
}

void bench_print(const struct bench_result *result, FILE *out)
{
	const struct bench_row **row = calloc(result->rows + 1, sizeof(const struct bench_row *));
	const struct witness *w = &result->witness;
	size_t measured = 0, skipped;
	struct group g;

	if (!row) {
		fprintf(out, "%s: out of memory\n", result->benchmark);
		return;
	}
	for (unsigned i = 0; i < result->rows; i++)
		if (result->row[i].samples)
			row[measured++] = &result->row[i];
	skipped = measured;
	for (unsigned i = 0; i < result->rows; i++)
		if (!result->row[i].samples)
			row[skipped++] = &result->row[i];
	print_top(out, result);
	if (!measured)
		fprintf(out, "\nnothing was measured\n");
	for (size_t i = 0; i < measured; i += g.rows) {
		int label;

		g = group_at(row + i, measured - i, is_of_group);
		if (i == 0 || !is_alike(row[i - 1], row[i])) {
			fprintf(out, "\n%-*s %5s %13s %12s %5s %5s", LABEL_WIDTH, row[i]->unit,
				"median", "[95 %]", "p5..p99", "most", "outl.");
			if (row[i]->against[0])
				fprintf(out, " ratio to %s [95 %%]", row[i]->against);
			fputc('\n', out);
		}
		label = print_label(out, &g, NULL);
		if (g.rows > 1)
			fputc('\n', out);
		for (size_t k = 0; k < g.rows; k++)
			print_row(out, g.rows > 1 ? print_label(out, &g, row[i + k]) : label,
				  row[i + k]);
	}
	if (skipped > measured)
		fprintf(out, "\nskipped\n");
	for (size_t i = measured; i < skipped; i += g.rows) {
		g = group_at(row + i, skipped - i, is_skipped_alike);
		fputs("  ", out);
		print_label(out, &g, NULL);
		if (g.rows > 1)
			fprintf(out, " (%zu rows)", g.rows);
		fprintf(out, ": %s\n", row[i]->why);
	}
	fputs("\nmeanwhile: involuntary switches ", out);
	if (w->involuntary == WITNESS_UNKNOWN)
		fputs("unknown", out);
	else
		fprintf(out, "%" PRIu64, w->involuntary);
	fprintf(out, w->steal < 0 ? ", steal unknown" : ", steal %.2f %%", 100 * w->steal);
	fprintf(out,
		w->load < 0 ? ", runnable at the end unknown\n" : ", runnable at the end %.0f\n",
		w->load);
	free(row);
}
