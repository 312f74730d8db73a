/* SPDX-License-Identifier: MIT */
/*
 * Rows as lines of a dot plot: a panel per unit, a heading per name, a line per case, and on
 * it a dot per measure.
 */
#include <string.h>

#include "bench/figures/bench_figure.h"
#include "bench/record/bench_words.h"

#define PLACES 4   /* of measures and of units; more share the last place */
#define BESIDE 0.5 /* of a line, from the first to the last measure */

/* A dot plot. stream may be NULL: then lines are only counted. */
struct sheet {
	FILE *stream;
	const struct bench_result *result;
	char measure[PLACES][WORDS_ROOM], unit[PLACES][WORDS_ROOM];
	unsigned measures, units;
	unsigned panel, line;
};

/* In the order in which they came. */
static unsigned place_of(char (*list)[WORDS_ROOM], unsigned *count, const char *text)
{
	int slot = words_slot(list, count, PLACES, text);

	return slot < 0 ? PLACES - 1 : (unsigned)slot;
}

static struct sheet sheet_of(const struct bench_result *result, FILE *stream)
{
	struct sheet s = { .stream = stream, .result = result };

	for (unsigned i = 0; i < result->rows; i++)
		if (row_measured(&result->row[i])) {
			place_of(s.measure, &s.measures, result->row[i].measure);
			place_of(s.unit, &s.units, result->row[i].unit);
		}
	return s;
}

/* --- Which rows stand together ---------------------------------------------------- */

static bool same_group(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0;
}

/* Is it the first of its group, or of its case? */
static bool is_first(const struct bench_result *result, unsigned at,
		     bool (*same)(const struct bench_row *, const struct bench_row *))
{
	for (unsigned i = 0; i < at; i++)
		if (row_measured(&result->row[i]) && same(&result->row[at], &result->row[i]))
			return false;
	return true;
}

/* --- Lines ------------------------------------------------------------------------- */

static void put_label(struct sheet *s, bool heading, const char *label)
{
	if (s->stream)
		fprintf(s->stream, "L %u %u %d \"%s\"\n", s->panel, s->line, heading, label);
	s->line++;
}

/* Measures of one case lie side by side on its line. */
static void put_dots(struct sheet *s, const struct bench_row *first)
{
	const struct bench_row *end = s->result->row + s->result->rows;
	unsigned n = 0, of = 0;

	for (const struct bench_row *row = first; row < end; row++)
		of += row_measured(row) && rows_same_case(first, row);
	for (const struct bench_row *row = first; row < end; row++) {
		double median = row->value.median, base = row->against[0] ? row->base.median : 0;
		double beside = of > 1 ? BESIDE * (n / (of - 1.0) - 0.5) : 0;

		if (!row_measured(row) || !rows_same_case(first, row))
			continue;
		fprintf(s->stream, "D %u %.3f %u %d %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", s->panel,
			s->line - 1 + beside, place_of(s->measure, &s->measures, row->measure),
			row->peer, median, finite_or(row->value.low, median),
			finite_or(row->value.high, median), finite_or(row->p5, median),
			finite_or(row->p99, median), finite_or(row->most, median),
			finite_or(base, 0));
		n++;
	}
}

/* A heading, and a line per case; one line where there is one case only. */
static void put_group(struct sheet *s, unsigned first)
{
	const struct bench_row *of = &s->result->row[first];
	char label[WORDS_ROOM];
	unsigned cases = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		if (pass && cases > 1)
			put_label(s, true, words_plain(of->name, label, sizeof(label)));
		for (unsigned i = first; i < s->result->rows; i++) {
			const struct bench_row *row = &s->result->row[i];

			if (!row_measured(row) || !same_group(of, row) ||
			    !is_first(s->result, i, rows_same_case))
				continue;
			if (pass == 0) {
				cases++;
				continue;
			}
			(cases == 1 ? words_of_row : words_of_params)(row, NULL, label,
								      sizeof(label));
			put_label(s, false, label);
			if (s->stream)
				put_dots(s, row);
		}
	}
}

/* Groups come as they came: in the order of the rows. Returns how many lines there are. */
static unsigned put_panel(struct sheet *s, unsigned panel)
{
	s->panel = panel;
	s->line = 0;
	for (unsigned i = 0; i < s->result->rows; i++) {
		const struct bench_row *row = &s->result->row[i];

		if (row_measured(row) && is_first(s->result, i, same_group) &&
		    place_of(s->unit, &s->units, row->unit) == panel)
			put_group(s, i);
	}
	return s->line;
}

void bench_rows_print(FILE *stream, const void *arg)
{
	struct sheet s = sheet_of(arg, stream);

	fputs("# L panel line heading label\n"
	      "# D panel line measure peer median low high p5 p99 most baseline: 0 for none\n",
	      stream);
	for (unsigned panel = 0; panel < s.units; panel++)
		put_panel(&s, panel);
}

/* 0 if there is nothing to draw; LINES of each panel, UNITS and MEASURES, each word in quotes. */
unsigned bench_rows_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
{
	struct sheet s = sheet_of(result, NULL);
	size_t length = 0;

	args[0][0] = '\0';
	for (unsigned panel = 0; panel < s.units; panel++)
		length += (size_t)snprintf(args[0] + length, BENCH_ARGS_SIZE - length, "%s%u",
					   panel ? " " : "", put_panel(&s, panel));
	words_quoted(s.unit, s.units, args[1], BENCH_ARGS_SIZE);
	words_quoted(s.measure, s.measures, args[2], BENCH_ARGS_SIZE);
	return s.units ? 3 : 0;
}
