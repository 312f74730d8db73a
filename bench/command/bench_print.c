/* SPDX-License-Identifier: MIT */
#include "bench/command/bench_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_words.h"

#define LABEL_WIDTH 28
#define LABEL_MAX   1024
#define TEXT_MAX    64

/* For three digits; a zero has none. */
static int decimals(double a)
{
	static const double below[] = { 99.95, 9.995, 0.9995 };
	int count = 0;

	while (a > 0 && count < 3 && a < below[count])
		count++;
	return count;
}

char *bench_figures(double x, char *buf, size_t size)
{
	static const char letters[] = { '\0', 'k', 'M', 'G', 'T', 'P' };
	double a = fabs(x);
	size_t letter = 0;

	if (isnan(x)) {
		snprintf(buf, size, "-");
		return buf;
	}
	for (; a >= (letter ? 999.5 : 9999.5) && letter + 1 < sizeof(letters) && isfinite(a);
	     letter++)
		a /= 1000;
	snprintf(buf, size, "%.*f%.1s", decimals(a), copysign(a, x), &letters[letter]);
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

static bool has_param(const struct bench_row *row, const struct bench_param *param)
{
	for (unsigned i = 0; i < row->params; i++)
		if (same_param(&row->param[i], param))
			return true;
	return false;
}

static bool all_have_param(const struct group *g, const struct bench_param *param)
{
	for (size_t i = 0; i < g->rows; i++)
		if (!has_param(g->row[i], param))
			return false;
	return true;
}

static bool all_have_measure(const struct group *g)
{
	for (size_t i = 1; i < g->rows; i++)
		if (strcmp(g->row[i]->measure, g->row[0]->measure) != 0)
			return false;
	return true;
}

/* A text to which words are added, cut to size. */
struct words {
	char text[LABEL_MAX];
	size_t length;
};

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct words *w, const char *format, ...)
{
	size_t left = sizeof(w->text) - w->length;
	va_list ap;
	int wrote;

	va_start(ap, format);
	wrote = vsnprintf(w->text + w->length, left, format, ap);
	va_end(ap);
	if (wrote > 0)
		w->length += (size_t)wrote < left ? (size_t)wrote : left - 1;
}

/* Counts and rates are whole; the digits of a long one are hard to count. */
static void add_number(struct words *w, const char *key, double x)
{
	if (x >= 1e9 && fmod(x, 1e8) == 0)
		add(w, " %s=%.10gG", key, x / 1e9);
	else if (x >= 1e6 && fmod(x, 1e5) == 0)
		add(w, " %s=%.10gM", key, x / 1e6);
	else if (x >= 1e4 && fmod(x, 100) == 0)
		add(w, " %s=%.10gk", key, x / 1e3);
	else
		add(w, " %s=%.10g", key, x);
}

static void add_param(struct words *w, const struct bench_param *param, bool brief)
{
	const char *text = param->text;
	bool tells = text[strcspn(text, "|abcdefghijklmnopqrstuvwxyz")];

	if (!text[0])
		add_number(w, param->key, param->number);
	else if (brief && tells)
		add(w, " %s", text);
	else
		add(w, " %s=%s", param->key, text);
}

static void begin(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void begin(struct words *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(w->text, sizeof(w->text), format, ap);
	va_end(ap);
	w->length = strlen(w->text);
}

/* What all rows of the group are. */
static void heading_of(const struct group *g, struct words *w)
{
	const struct bench_row *row = g->row[0];

	begin(w, "%s%s", row->name, row->peer ? " (peer)" : "");
	if (all_have_measure(g))
		add(w, " %s", row->measure);
	for (unsigned i = 0; i < row->params; i++)
		if (all_have_param(g, &row->param[i]))
			add_param(w, &row->param[i], false);
}

/* What only this row of the group is, by names that tell themselves apart without a key. */
static void label_of(const struct group *g, const struct bench_row *row, struct words *w)
{
	begin(w, " ");
	if (!all_have_measure(g))
		add(w, " %s", row->measure);
	for (unsigned i = 0; i < row->params; i++)
		if (!all_have_param(g, &row->param[i]))
			add_param(w, &row->param[i], true);
}

/* --- A row ---------------------------------------------------------------------------------- */

static bool has_interval(const struct bench_value *v)
{
	return !isnan(v->low) && !isnan(v->high);
}

static const char *interval_of(const struct bench_value *v, char text[TEXT_MAX])
{
	char low[TEXT_MAX / 4], high[TEXT_MAX / 4];

	text[0] = '\0';
	if (has_interval(v))
		snprintf(text, TEXT_MAX, "[%s,%s]", bench_figures(v->low, low, sizeof(low)),
			 bench_figures(v->high, high, sizeof(high)));
	return text;
}

static const char *range_of(double from, double to, char text[TEXT_MAX])
{
	char low[TEXT_MAX / 4], high[TEXT_MAX / 4];

	snprintf(text, TEXT_MAX, "%s..%s", bench_figures(from, low, sizeof(low)),
		 bench_figures(to, high, sizeof(high)));
	return text;
}

static const char *count_of(uint64_t count, char text[TEXT_MAX])
{
	if (count >= 10000)
		return bench_figures((double)count, text, TEXT_MAX);
	snprintf(text, TEXT_MAX, "%" PRIu64, count);
	return text;
}

/* Where there is no difference the noise tells how large a one could have been seen. */
static void print_ratio(FILE *out, const struct bench_row *row)
{
	char median[TEXT_MAX], interval[TEXT_MAX];

	if (!row->against[0])
		return;
	bench_figures(row->ratio.median, median, sizeof(median));
	interval_of(&row->ratio, interval);
	fprintf(out, " %s%s%s", bench_row_same(row) ? "no difference" : median,
		interval[0] ? " " : "", interval);
}

static void print_figures(FILE *out, const struct bench_row *row)
{
	char median[TEXT_MAX], interval[TEXT_MAX], range[TEXT_MAX], most[TEXT_MAX], count[TEXT_MAX];

	fprintf(out, " %5s %13s %12s %5s %5s",
		bench_figures(row->value.median, median, sizeof(median)),
		interval_of(&row->value, interval), range_of(row->p5, row->p99, range),
		bench_figures(row->most, most, sizeof(most)), count_of(row->outliers, count));
	print_ratio(out, row);
	fputc('\n', out);
}

/* That executors were at work is for who reads the JSON. */
static bool is_told(const struct bench_extra *extra)
{
	return strcmp(extra->key, "executed") != 0;
}

static unsigned extras_told(const struct bench_row *row)
{
	unsigned told = 0;

	for (unsigned i = 0; i < row->extras; i++)
		told += is_told(&row->extra[i]);
	return told;
}

static void print_extras(FILE *out, const struct bench_row *row)
{
	const char *before = ":";
	char text[TEXT_MAX];

	for (unsigned i = 0; i < row->extras; i++) {
		if (!is_told(&row->extra[i]))
			continue;
		fprintf(out, "%s %s %s", before, row->extra[i].key,
			bench_figures(row->extra[i].number, text, sizeof(text)));
		before = ",";
	}
}

/* What has no room beside the figures has a line above them. */
static void print_row(FILE *out, const struct words *label, const struct bench_row *row)
{
	if (label->length > LABEL_WIDTH || extras_told(row)) {
		fputs(label->text, out);
		print_extras(out, row);
		fprintf(out, "\n%*s", LABEL_WIDTH, "");
	} else {
		fprintf(out, "%-*s", LABEL_WIDTH, label->text);
	}
	print_figures(out, row);
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

static void print_head(FILE *out, const struct bench_row *row)
{
	fprintf(out, "\n%-*s %5s %13s %12s %5s %5s", LABEL_WIDTH, row->unit, "median", "[95 %]",
		"p5..p99", "most", "outl.");
	if (row->against[0])
		fprintf(out, " ratio to %s [95 %%]", row->against);
	fputc('\n', out);
}

static void print_group(FILE *out, const struct group *g)
{
	struct words words;

	heading_of(g, &words);
	if (g->rows == 1) {
		print_row(out, &words, g->row[0]);
		return;
	}
	fprintf(out, "%s\n", words.text);
	for (size_t i = 0; i < g->rows; i++) {
		label_of(g, g->row[i], &words);
		print_row(out, &words, g->row[i]);
	}
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

static void print_measured(FILE *out, const struct bench_row **row, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct group g = group_at(row + i, count - i, is_of_group);

		if (i == 0 || !is_alike(row[i - 1], row[i]))
			print_head(out, row[i]);
		print_group(out, &g);
		i += g.rows;
	}
}

static bool is_skipped_alike(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->why, b->why) == 0;
}

static void print_skipped(FILE *out, const struct bench_row **row, size_t count)
{
	if (count)
		fprintf(out, "\nskipped\n");
	for (size_t i = 0; i < count;) {
		struct group g = group_at(row + i, count - i, is_skipped_alike);
		struct words words;

		heading_of(&g, &words);
		if (g.rows > 1)
			add(&words, " (%zu rows)", g.rows);
		fprintf(out, "  %s: %s\n", words.text, row[i]->why);
		i += g.rows;
	}
}

/* --- Above and below it --------------------------------------------------------------------- */

/* "1-3, 8" */
static void print_cpus(FILE *out, const unsigned *cpu, unsigned count)
{
	for (unsigned i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && cpu[end] == cpu[end - 1] + 1;)
			end++;
		fprintf(out, "%s%u", i ? ", " : "", cpu[i]);
		if (end - i > 1)
			fprintf(out, "-%u", cpu[end - 1]);
	}
}

static void print_seating(FILE *out, const struct seating *s)
{
	fprintf(out, "patcher on CPU %u", s->patcher);
	if (s->executors)
		fprintf(out, ", executor%s on ", s->executors == 1 ? "" : "s");
	print_cpus(out, s->executor, s->executors);
	fputc('\n', out);
}

static void print_waits(FILE *out, const struct bench_result *r)
{
	bool assumed = strcmp(r->waits_from, "assumed") == 0;

	if (!r->first_wait) {
		fprintf(out, "policy wait: not to be had here\n");
		return;
	}
	fprintf(out, "policy wait: %" PRIu64 " and %" PRIu64 " ticks", r->first_wait,
		r->second_wait);
	if (r->stretch)
		fprintf(out, ", or %" PRIu64 " times what the stores take", r->stretch);
	fprintf(out, "%s\n",
		assumed ? "\nThese waits are assumed, to tell costs. Nothing is claimed about "
			  "tears at them."
			: ", from machine.conf");
}

static void print_distance(FILE *out, const struct bench_value *d)
{
	char median[TEXT_MAX], low[TEXT_MAX], high[TEXT_MAX];

	if (isnan(d->median))
		return;
	fprintf(out, "a line takes %s ticks from one to the other (%s to %s)\n",
		bench_figures(d->median, median, sizeof(median)),
		bench_figures(d->low, low, sizeof(low)),
		bench_figures(d->high, high, sizeof(high)));
}

static void print_top(FILE *out, const struct bench_result *r)
{
	fprintf(out, "%s: %u round%s in %.0f s, seed %" PRIu64 "\n", r->benchmark, r->rounds,
		r->rounds == 1 ? "" : "s", r->seconds, r->seed);
	print_seating(out, &r->seating);
	print_distance(out, &r->distance);
	print_waits(out, r);
}

static void print_count(FILE *out, uint64_t count, const char *what)
{
	if (count == WITNESS_UNKNOWN)
		fprintf(out, "%s unknown, ", what);
	else
		fprintf(out, "%s %" PRIu64 ", ", what, count);
}

static void print_measure(FILE *out, double x, const char *format)
{
	if (x < 0)
		fputs("unknown", out);
	else
		fprintf(out, format, x);
}

static void print_witness(FILE *out, const struct witness *w)
{
	fputs("\nmeanwhile: ", out);
	print_count(out, w->involuntary, "involuntary switches");
	fputs("steal ", out);
	print_measure(out, 100 * w->steal, "%.2f %%");
	fputs(", runnable at the end ", out);
	print_measure(out, w->load, "%.0f");
	fputc('\n', out);
}

void bench_print(const struct bench_result *result, FILE *out)
{
	const struct bench_row **row = calloc(result->rows + 1, sizeof(const struct bench_row *));
	size_t measured = 0, skipped;

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
	print_measured(out, row, measured);
	print_skipped(out, row + measured, skipped - measured);
	print_witness(out, &result->witness);
	free(row);
}
