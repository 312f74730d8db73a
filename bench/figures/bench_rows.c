/* SPDX-License-Identifier: MIT */
/*
 * Rows as lines of a dot plot: a panel per unit, a heading per name, a line per case, and on
 * it a dot per measure.
 */
#include <string.h>

#include "bench/figures/bench_data.h"
#include "bench/record/bench_words.h"

#define MEASURES 4 /* apart from each other; more share the last place */
#define UNITS	 4
#define BESIDE	 0.5 /* of a line, from the first to the last measure */

struct names {
	const char *name[16];
	unsigned count;
};

/* The place of a name among those seen, in the order in which they came. */
static unsigned place_of(struct names *names, const char *name, unsigned most)
{
	unsigned i;

	for (i = 0; i < names->count; i++)
		if (strcmp(names->name[i], name) == 0)
			return i;
	if (names->count == most)
		return most - 1;
	names->name[names->count++] = name;
	return i;
}

static struct names measures_of(const struct bench_result *result)
{
	struct names names = { .count = 0 };

	for (unsigned i = 0; i < result->rows; i++)
		if (row_measured(&result->row[i]))
			place_of(&names, result->row[i].measure, MEASURES);
	return names;
}

static struct names units_of(const struct bench_result *result)
{
	struct names names = { .count = 0 };

	for (unsigned i = 0; i < result->rows; i++)
		if (row_measured(&result->row[i]))
			place_of(&names, result->row[i].unit, UNITS);
	return names;
}

/* --- Which rows stand together ---------------------------------------------------- */

static bool same_group(const struct bench_row *a, const struct bench_row *b)
{
	return row_measured(b) && strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0;
}

static bool is_first_of_group(const struct bench_result *result, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (same_group(&result->row[at], &result->row[i]))
			return false;
	return true;
}

static bool is_first_of_case(const struct bench_result *result, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (row_measured(&result->row[i]) &&
		    rows_same_case(&result->row[at], &result->row[i]))
			return false;
	return true;
}

static unsigned cases_of(const struct bench_result *result, unsigned first)
{
	unsigned count = 0;

	for (unsigned i = first; i < result->rows; i++)
		count += same_group(&result->row[first], &result->row[i]) &&
			 is_first_of_case(result, i);
	return count;
}

/* --- Lines ------------------------------------------------------------------------- */

/* stream may be NULL: then lines are only counted. */
struct sheet {
	FILE *stream;
	const struct bench_result *result;
	struct names measures;
	unsigned panel, line;
};

static void put_label(struct sheet *s, bool heading, const char *label)
{
	if (s->stream)
		fprintf(s->stream, "L %u %u %d \"%s\"\n", s->panel, s->line, heading, label);
	s->line++;
}

/* Measures of one case lie side by side on its line: this one is the nth of so many. */
static void put_dot(const struct sheet *s, const struct bench_row *row, unsigned n, unsigned of)
{
	double median = row->value.median, base = row->against[0] ? row->base.median : 0;
	double beside = of > 1 ? BESIDE * (n / (of - 1.0) - 0.5) : 0;
	struct names measures = s->measures;

	fprintf(s->stream, "D %u %.3f %u %d %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", s->panel,
		s->line - 1 + beside, place_of(&measures, row->measure, MEASURES), row->peer,
		median, finite_or(row->value.low, median), finite_or(row->value.high, median),
		finite_or(row->p5, median), finite_or(row->p99, median),
		finite_or(row->most, median), finite_or(base, 0));
}

static void put_dots(const struct sheet *s, const struct bench_row *first)
{
	const struct bench_row *end = s->result->row + s->result->rows;
	unsigned n = 0, of = 0;

	for (const struct bench_row *row = first; row < end; row++)
		of += row_measured(row) && rows_same_case(first, row);
	for (const struct bench_row *row = first; row < end; row++)
		if (row_measured(row) && rows_same_case(first, row))
			put_dot(s, row, n++, of);
}

static void put_case(struct sheet *s, unsigned first, bool alone)
{
	const struct bench_row *row = &s->result->row[first];
	char label[WORDS_ROOM];

	if (alone)
		words_of_row(row, NULL, label, sizeof(label));
	else
		words_of_params(row, NULL, label, sizeof(label));
	put_label(s, false, label);
	if (s->stream)
		put_dots(s, row);
}

static void put_group(struct sheet *s, unsigned first)
{
	const struct bench_row *row = &s->result->row[first];
	bool alone = cases_of(s->result, first) == 1;
	char label[WORDS_ROOM];

	if (!alone)
		put_label(s, true, words_plain(row->name, label, sizeof(label)));
	for (unsigned i = first; i < s->result->rows; i++)
		if (same_group(row, &s->result->row[i]) && is_first_of_case(s->result, i))
			put_case(s, i, alone);
}

/* Groups without a baseline among peers come as they came: in the order of the rows. */
static unsigned put_panel(struct sheet *s, unsigned panel)
{
	struct names units = units_of(s->result);

	s->panel = panel;
	s->line = 0;
	for (unsigned i = 0; i < s->result->rows; i++) {
		const struct bench_row *row = &s->result->row[i];

		if (row_measured(row) && is_first_of_group(s->result, i) &&
		    place_of(&units, row->unit, UNITS) == panel)
			put_group(s, i);
	}
	return s->line;
}

void bench_rows_print(FILE *stream, const void *arg)
{
	const struct bench_result *result = arg;
	struct sheet s = { .stream = stream, .result = result, .measures = measures_of(result) };
	struct names units = units_of(result);

	fputs("# L panel line heading label\n"
	      "# D panel line measure peer median low high p5 p99 most baseline: 0 for none\n",
	      stream);
	for (unsigned panel = 0; panel < units.count; panel++)
		put_panel(&s, panel);
}

static void list_names(const struct names *names, char *text)
{
	char name[BENCH_KEY];
	size_t length = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < names->count && length < BENCH_ARGS_SIZE; i++)
		length += (size_t)snprintf(text + length, BENCH_ARGS_SIZE - length, "%s\"%s\"",
					   i ? " " : "",
					   words_plain(names->name[i], name, sizeof(name)));
}

/* 0 if there is nothing to draw; LINES of each panel, UNITS and MEASURES, each word in quotes. */
unsigned bench_rows_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
{
	struct sheet s = { .result = result };
	struct names units = units_of(result), measures = measures_of(result);
	size_t length = 0;

	args[0][0] = '\0';
	for (unsigned panel = 0; panel < units.count; panel++)
		length += (size_t)snprintf(args[0] + length, BENCH_ARGS_SIZE - length, "%s%u",
					   panel ? " " : "", put_panel(&s, panel));
	list_names(&units, args[1]);
	list_names(&measures, args[2]);
	return units.count ? 3 : 0;
}
