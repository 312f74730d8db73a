/* SPDX-License-Identifier: MIT */
/*
 * The four ways to draw a benchmark: rows, histograms, rates and growth.
 */
#include "bench/record/bench_figure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/benchmarks.h"
#include "bench/record/bench_words.h"

/* Behind the numbers that are in the list, a space apart. */
static void add_number(char list[BENCH_ARGS_SIZE], double number)
{
	size_t length = strlen(list);

	snprintf(list + length, BENCH_ARGS_SIZE - length, "%s%.0f", length ? " " : "", number);
}

/* An end that is not known is where the median is. */
static void put_value(FILE *out, const struct bench_value *v)
{
	fprintf(out, " %.9g %.9g %.9g", v->median, finite_or(v->low, v->median),
		finite_or(v->high, v->median));
}

/* --- Rows ----------------------------------------------------------------------------------- */

/*
 * Rows as lines of a dot plot: a panel per unit, a heading per name, a line per case, and on
 * it a dot per measure.
 */
#define PLACES 4   /* of measures and of units; more share the last place */
#define BESIDE 0.5 /* of a line, from the first to the last measure */

struct sheet {
	const struct bench_row *row, *end;
	struct words measures, units;
};

static unsigned slot_of(struct words *words, const char *text)
{
	int slot = words_slot(words, PLACES, text);

	return slot < 0 ? PLACES - 1 : (unsigned)slot;
}

static bool same_group(const struct bench_row *a, const struct bench_row *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0;
}

/* Is it the first measured one of its group, or of its case? */
static bool is_first(const struct sheet *s, const struct bench_row *at,
		     bool (*same)(const struct bench_row *, const struct bench_row *))
{
	for (const struct bench_row *row = s->row; row < at; row++)
		if (row_measured(row) && same(at, row))
			return false;
	return row_measured(at);
}

/* Measures of one case lie side by side on its line. */
static void put_dots(FILE *out, struct sheet *s, const struct bench_row *first, unsigned panel,
		     unsigned line)
{
	unsigned n = 0, of = 0;

	for (const struct bench_row *row = first; row < s->end; row++)
		of += row_measured(row) && rows_same_case(first, row);
	for (const struct bench_row *row = first; row < s->end; row++) {
		double median = row->value.median, base = row->against[0] ? row->base.median : 0;

		if (!row_measured(row) || !rows_same_case(first, row))
			continue;
		fprintf(out, "D %u %.3f %u %d", panel,
			line + (of > 1 ? BESIDE * (n++ / (of - 1.0) - 0.5) : 0),
			slot_of(&s->measures, row->measure), row->peer);
		put_value(out, &row->value);
		fprintf(out, " %.9g %.9g %.9g %.9g\n", finite_or(row->p5, median),
			finite_or(row->p99, median), finite_or(row->most, median),
			finite_or(base, 0));
	}
}

/* A heading, and a line per case; one line where there is one case only. Returns the line behind.
 */
static unsigned put_group(FILE *out, struct sheet *s, const struct bench_row *first, unsigned panel,
			  unsigned line)
{
	char label[WORDS_ROOM];
	unsigned cases = 0;

	for (const struct bench_row *row = first; row < s->end; row++)
		cases += same_group(first, row) && is_first(s, row, rows_same_case);
	if (cases > 1)
		fprintf(out, "L %u %u 1 \"%s\"\n", panel, line++,
			words_plain(first->name, label, sizeof(label)));
	for (const struct bench_row *row = first; row < s->end; row++) {
		if (!same_group(first, row) || !is_first(s, row, rows_same_case))
			continue;
		(cases == 1 ? words_of_row : words_of_params)(row, NULL, label, sizeof(label));
		fprintf(out, "L %u %u 0 \"%s\"\n", panel, line, label);
		put_dots(out, s, row, panel, line++);
	}
	return line;
}

/* LINES of each panel, UNITS and MEASURES, each word in quotes. */
static unsigned draw_rows(const struct bench_result *result, FILE *out,
			  char (*args)[BENCH_ARGS_SIZE])
{
	struct sheet s = { .row = result->row, .end = result->row + result->rows };

	for (const struct bench_row *row = s.row; row < s.end; row++)
		if (row_measured(row)) {
			slot_of(&s.measures, row->measure);
			slot_of(&s.units, row->unit);
		}
	fputs("# L panel line heading label\n"
	      "# D panel line measure peer median low high p5 p99 most baseline: 0 for none\n",
	      out);
	/* Groups come as they came: in the order of the rows. */
	for (unsigned panel = 0; panel < s.units.count; panel++) {
		unsigned line = 0;

		for (const struct bench_row *row = s.row; row < s.end; row++)
			if (is_first(&s, row, same_group) && slot_of(&s.units, row->unit) == panel)
				line = put_group(out, &s, row, panel, line);
		add_number(args[0], line);
	}
	words_quoted(&s.units, args[1], BENCH_ARGS_SIZE);
	words_quoted(&s.measures, args[2], BENCH_ARGS_SIZE);
	return s.units.count ? 3 : 0;
}

/* --- Histograms ----------------------------------------------------------------------------- */

/* Histograms as outlines: a panel per thing done, a column per number of executors. */
#define PANELS	 16
#define COLUMNS	 2 /* of executors; more are left to the table */
#define MEASURES 2

struct panels {
	struct words titles, measures;
	double executors[COLUMNS];
	unsigned columns;
};

struct place {
	int panel, column, measure; /* -1: none, and no room for one */
};

static bool place_of(struct panels *p, const struct bench_row *row, struct place *place)
{
	static const char *const not_in_titles[] = { "executors", "sites", NULL };
	/* Nothing said counts as none. */
	double executors = finite_or(bench_row_number(row, "executors"), 0);
	char title[WORDS_ROOM];
	unsigned column = 0;

	if (!row_measured(row) || !row->bins)
		return false;
	while (column < p->columns && p->executors[column] != executors)
		column++;
	if (column == p->columns && column < COLUMNS)
		p->executors[p->columns++] = executors;
	words_of_row(row, not_in_titles, title, sizeof(title));
	place->panel = words_slot(&p->titles, PANELS, title);
	place->column = column < COLUMNS ? (int)column : -1;
	place->measure = words_slot(&p->measures, MEASURES, row->measure);
	return place->panel >= 0 && place->column >= 0 && place->measure >= 0;
}

/* How many PANELS; EXECUTORS of each column; MEASURES in quotes. */
static unsigned draw_latency(const struct bench_result *result, FILE *out,
			     char (*args)[BENCH_ARGS_SIZE])
{
	struct panels p = { .columns = 0 };
	struct place at;

	for (unsigned i = 0; i < result->rows; i++)
		place_of(&p, &result->row[i], &at);
	fputs("# P panel title\n# V panel column measure ticks share: along the outline\n", out);
	for (unsigned i = 0; i < p.titles.count; i++)
		fprintf(out, "P %u \"%s\"\n", i, p.titles.text[i]);
	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];
		double total = 0;

		if (!place_of(&p, row, &at))
			continue;
		for (unsigned k = 0; k < row->bins; k++)
			total += (double)row->bin[k].count;
		/* One side of a bin after the other, so that a line through them is the outline. */
		for (unsigned k = 0; k < row->bins && total > 0; k++) {
			const struct bench_bin *bin = &row->bin[k];
			double share = (double)bin->count / total;

			/* A logarithmic scale has no 0; the first bin may begin there. */
			fprintf(out, "V %d %d %d %.9g %.9g\nV %d %d %d %.9g %.9g\n", at.panel,
				at.column, at.measure, fmax(bin->low, 0.5), share, at.panel,
				at.column, at.measure, bin->high, share);
		}
		fputs("\n", out);
	}
	add_number(args[0], p.titles.count);
	for (unsigned i = 0; i < p.columns; i++)
		add_number(args[1], p.executors[i]);
	words_quoted(&p.measures, args[2], BENCH_ARGS_SIZE);
	return p.titles.count ? 3 : 0;
}

/* --- Throughput ----------------------------------------------------------------------------- */

/* Throughput against toggles per second: a curve per method, and one per number of executors. */
#define CURVES	  14
#define EXECUTORS 12 /* 1, 2, 4 ..., 1024 */

#define BALANCE_MOST 1e6

static const char *const modes[] = { "call-call", "call-nop", NULL };
static const char *const not_in_names[] = { "rate", "mode", "executors", NULL };

struct curves {
	struct words names;
	bool peer[CURVES];
	double executors[EXECUTORS]; /* in rising order */
	unsigned sizes;
};

/* Nothing said counts as one. */
static double executors_of(const struct bench_row *row)
{
	return finite_or(bench_row_number(row, "executors"), 1);
}

static int mode_of(const struct bench_row *row)
{
	return strcmp(bench_row_text(row, "mode"), modes[0]) != 0;
}

static bool is_drawn(const struct bench_row *row)
{
	const char *mode = bench_row_text(row, "mode");

	return row_measured(row) && mode && word_listed(mode, modes) &&
	       strcmp(row->measure, "calls") == 0 && isfinite(bench_row_number(row, "rate"));
}

static int curve_of(struct curves *c, const struct bench_row *row)
{
	unsigned before = c->names.count;
	char name[WORDS_ROOM];
	int curve;

	words_of_row(row, not_in_names, name, sizeof(name));
	curve = words_slot(&c->names, CURVES, name);
	if (c->names.count > before)
		c->peer[curve] = row->peer;
	return curve;
}

/* Where a row is drawn: at what it got, which may be less than what it was asked for. */
static double rate_of(const struct bench_row *row)
{
	double asked = bench_row_number(row, "rate");
	double got = bench_row_extra_of(row, "toggles_per_s");

	return asked > 0 && got > 0 ? got : asked;
}

/* How many CURVES; the EXECUTORS of the last panels, empty without them; whose they are. */
static unsigned draw_throughput(const struct bench_result *result, FILE *out,
				char (*args)[BENCH_ARGS_SIZE])
{
	const struct bench_row *end = result->row + result->rows;
	const struct bench_row *shown = NULL; /* of the method that stands for all */
	char one[WORDS_ROOM], sample[WORDS_ROOM] = "";
	struct curves c = { .sizes = 0 };

	for (const struct bench_row *row = result->row; row < end; row++) {
		bool call = strcmp(row->name, "call") == 0;
		double executors = executors_of(row);
		unsigned at = 0;

		if (!is_drawn(row))
			continue;
		curve_of(&c, row);
		/* The place of that many executors, or a new one. */
		while (at < c.sizes && c.executors[at] < executors)
			at++;
		if ((at == c.sizes || c.executors[at] != executors) && c.sizes < EXECUTORS) {
			memmove(&c.executors[at + 1], &c.executors[at],
				(c.sizes++ - at) * sizeof(c.executors[0]));
			c.executors[at] = executors;
		}
		/* Call toggling, as in the paper's figure 11; else the first of ours. */
		if (!row->peer && (!shown || (call && strcmp(shown->name, "call") != 0)))
			shown = row;
	}
	fputs("# K curve peer name\n"
	      "# T curve mode toggles/s share low high balance: mode 0 call-call, 1 call-nop\n"
	      "# E executors mode toggles/s calls/s low high\n",
	      out);
	for (unsigned i = 0; i < c.names.count; i++)
		fprintf(out, "K %u %d \"%s\"\n", i, c.peer[i], c.names.text[i]);
	/* Rates of one curve stand in a block, for a line through them. */
	for (unsigned curve = 0; curve < c.names.count; curve++) {
		for (const struct bench_row *row = result->row; row < end; row++) {
			double balance = bench_row_extra_of(row, "balance");

			if (!is_drawn(row) || curve_of(&c, row) != (int)curve ||
			    executors_of(row) != c.executors[0] || !isfinite(row->ratio.median))
				continue;
			/* One state was never executed: as far up as the scale goes. 0 for none. */
			balance = isinf(balance) ? BALANCE_MOST : finite_or(balance, 0);
			fprintf(out, "T %u %d %.9g", curve, mode_of(row), rate_of(row));
			put_value(out, &row->ratio);
			fprintf(out, " %.9g\n", balance);
		}
		fputs("\n", out);
	}
	if (shown)
		words_of_row(shown, not_in_names, sample, sizeof(sample));
	for (const struct bench_row *row = result->row; row < end && shown && c.sizes > 1; row++) {
		if (!is_drawn(row) ||
		    strcmp(words_of_row(row, not_in_names, one, sizeof(one)), sample) != 0)
			continue;
		for (unsigned i = 0; i < c.sizes; i++)
			if (c.executors[i] == executors_of(row)) {
				fprintf(out, "E %u %d %.9g", i, mode_of(row), rate_of(row));
				put_value(out, &row->value);
				fputs("\n", out);
			}
	}
	add_number(args[0], c.names.count);
	for (unsigned i = 0; i < c.sizes && c.sizes > 1; i++)
		add_number(args[1], c.executors[i]);
	snprintf(args[2], BENCH_ARGS_SIZE, "%.100s", sample);
	return c.names.count ? 3 : 0;
}

/* --- Growth --------------------------------------------------------------------------------- */

static double size_of(const struct bench_row *row)
{
	double cut = bench_row_extra_of(row, "cut_at");

	return isnan(cut) ? row->param[0].number : cut;
}

/* How many CURVES: of an operation and what there is more of, in rows that follow each other. */
static unsigned draw_growth(const struct bench_result *result, FILE *out,
			    char (*args)[BENCH_ARGS_SIZE])
{
	const struct bench_row *end = result->row + result->rows, *first = NULL;
	char name[WORDS_ROOM], of[WORDS_ROOM];
	unsigned curves = 0;

	fputs("# K curve name\n# G curve size cost low high: multiples of the first row's\n", out);
	for (const struct bench_row *row = result->row; row < end; row++) {
		double small;

		if (!row_measured(row) || !row->params || !(row->param[0].number > 0))
			continue;
		if (!first || strcmp(first->name, row->name) != 0 ||
		    strcmp(first->param[0].key, row->param[0].key) != 0) {
			first = row;
			fprintf(out, "\nK %u \"%s: %s\"\n", curves++,
				words_plain(row->name, name, sizeof(name)),
				words_plain(row->param[0].key, of, sizeof(of)));
		}
		small = first->value.median;
		fprintf(out, "G %u %.9g", curves - 1, size_of(row) / size_of(first));
		put_value(out,
			  &(struct bench_value){ row->value.median / small, row->value.low / small,
						 row->value.high / small });
		fputs("\n", out);
	}
	add_number(args[0], curves);
	return curves ? 1 : 0;
}

/* --- All ------------------------------------------------------------------------------------ */

/*
 * By the drawing: the script, and what writes its data, as the script reads them. What a journal
 * brings is in them only as numbers and as the plain words of bench/record/bench_words.h, in
 * quotes. Writes the arguments of the script, behind the data, to args, which are empty. Returns
 * how many; 0: nothing of it can be drawn.
 */
static const struct {
	const char *script;
	unsigned (*draw)(const struct bench_result *result, FILE *out,
			 char (*args)[BENCH_ARGS_SIZE]);
} drawings[] = {
	[DRAWN_AS_ROWS] = { "bench-rows.gp", draw_rows },
	[DRAWN_AS_HISTOGRAMS] = { "bench-latency.gp", draw_latency },
	[DRAWN_AS_RATES] = { "bench-throughput.gp", draw_throughput },
	[DRAWN_AS_GROWTH] = { "bench-growth.gp", draw_growth },
};

static void print_data(FILE *out, const void *data)
{
	fputs(data, out);
}

int bench_figure_draw(const struct bench_result *result, struct bench_figure *figure, char *error,
		      size_t size)
{
	const struct benchmark *benchmark = benchmark_named(result->benchmark);
	char *data = NULL;
	size_t length;
	unsigned count;
	FILE *out;

	*figure = (struct bench_figure){ .data = NULL };
	if (!benchmark)
		return picture_fail(-EINVAL, error, size, "no figure for the benchmark %s",
				    result->benchmark);
	out = open_memstream(&data, &length);
	count = out ? drawings[benchmark->drawing].draw(result, out, figure->text) : 0;
	if (!out || fclose(out)) {
		free(data);
		return picture_fail(-ENOMEM, error, size, "out of memory");
	}
	for (unsigned i = 0; i < count; i++)
		figure->args[i] = figure->text[i];
	figure->picture = (struct picture){ print_data, data, drawings[benchmark->drawing].script,
					    figure->args };
	figure->data = data;
	return count ? 0
		     : picture_fail(-ENODATA, error, size,
				    "nothing was measured that could be drawn");
}
