/* SPDX-License-Identifier: MIT */
/*
 * A benchmark is drawn as dots, a row each, or as curves. Of a journal the data have numbers alone,
 * and the plain words of bench_words.c in quotes. A function that draws writes the data, then the
 * script's arguments to args, and returns how many there are; 0: it has nothing to draw.
 */
#include "bench/record/bench_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A heading and a line per case; a single case has one line. Returns the line behind. */
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

/* --- Curves --------------------------------------------------------------------------------- */

#define BALANCE_MOST 1e6

/* What is drawn of a row, and where. */
struct spot {
	char panel[WORDS_ROOM], curve[WORDS_ROOM];
	double x;
	struct bench_value y; /* ends that are not known: there are none */
};

struct curves {
	const struct bench_result *result;
	struct words panels, names;
	double least, most; /* executors of rates, and of whom they are drawn by number: */
	const struct bench_row
		*shown; /* call toggling, as in the paper's figure 11; else our first */
};

/* One kind of panels. */
struct figure_view {
	const char *x, *y; /* labels */
	bool log_y;
	/* The n-th spot of a row, from 0. False: it has no more. */
	bool (*spot)(const struct curves *c, const struct bench_row *row, unsigned n,
		     struct spot *spot);
};

static const char *const not_in_names[] = { "rate", "mode", "executors", NULL };

/* A row without executors is drawn at 1. */
static double executors_of(const struct bench_row *row)
{
	return finite_or(bench_row_number(row, "executors"), 1);
}

/* Drawn at the rate that was reached, which may be less than the one asked for. */
static bool is_rate(const struct bench_row *row, const char *what, struct spot *spot)
{
	const char *mode = bench_row_text(row, "mode");
	double got = bench_row_extra_of(row, "toggles_per_s");

	spot->x = bench_row_number(row, "rate");
	if (!mode || strcmp(row->measure, "calls") != 0 || !isfinite(spot->x))
		return false;
	if (spot->x > 0 && got > 0)
		spot->x = got;
	snprintf(spot->panel, WORDS_ROOM, "%s between %s", what,
		 strcmp(mode, "call-call") == 0 ? "two calls" : "a call and none");
	words_of_row(row, not_in_names, spot->curve, WORDS_ROOM);
	return true;
}

static bool spot_of_share(const struct curves *c, const struct bench_row *row, unsigned n,
			  struct spot *spot)
{
	spot->y = row->ratio;
	return !n && is_rate(row, "calls,", spot) && executors_of(row) == c->least;
}

/* One state was never executed: as far up as the scale goes. */
static bool spot_of_balance(const struct curves *c, const struct bench_row *row, unsigned n,
			    struct spot *spot)
{
	double balance = bench_row_extra_of(row, "balance");

	spot->y = (struct bench_value){ isinf(balance) ? BALANCE_MOST : balance, NAN, NAN };
	return !n && is_rate(row, "balance,", spot) && executors_of(row) == c->least;
}

static bool spot_of_executors(const struct curves *c, const struct bench_row *row, unsigned n,
			      struct spot *spot)
{
	char shown[WORDS_ROOM];
	double million = 1e6;

	if (n || c->least == c->most || !c->shown || !is_rate(row, "by executors,", spot) ||
	    strcmp(words_of_row(c->shown, not_in_names, shown, WORDS_ROOM), spot->curve) != 0)
		return false;
	snprintf(spot->curve, WORDS_ROOM, "%.200s, %.0f executor%s", shown, executors_of(row),
		 S(executors_of(row)));
	spot->y = (struct bench_value){ row->value.median / million, row->value.low / million,
					row->value.high / million };
	return true;
}

static double size_of(const struct bench_row *row)
{
	double cut = bench_row_extra_of(row, "cut_at");

	return isnan(cut) ? row->param[0].number : cut;
}

static bool is_point_of_growth(const struct bench_row *row)
{
	return row_measured(row) && row->params && row->param[0].number > 0;
}

/* Rows of one axis follow each other; each is drawn as a multiple of the first. */
static bool spot_of_growth(const struct curves *c, const struct bench_row *row, unsigned n,
			   struct spot *spot)
{
	const struct bench_row *first = row;
	char of[WORDS_ROOM];
	double small;

	if (n || !is_point_of_growth(row))
		return false;
	while (first > c->result->row && is_point_of_growth(first - 1) &&
	       strcmp(first[-1].name, row->name) == 0 &&
	       strcmp(first[-1].param[0].key, row->param[0].key) == 0)
		first--;
	strcpy(spot->panel, "growth");
	words_plain(row->name, spot->curve, WORDS_ROOM / 2);
	strcat(strcat(spot->curve, ": "), words_plain(row->param[0].key, of, WORDS_ROOM / 4));
	spot->x = size_of(row) / size_of(first);
	small = first->value.median;
	spot->y = (struct bench_value){ row->value.median / small, row->value.low / small,
					row->value.high / small };
	return true;
}

static void find_executors(struct curves *c)
{
	const struct bench_row *row = c->result->row, *end = row + c->result->rows;
	struct spot spot;

	c->least = INFINITY;
	for (; row < end; row++) {
		if (!row_measured(row) || !is_rate(row, "", &spot))
			continue;
		c->least = fmin(c->least, executors_of(row));
		c->most = fmax(c->most, executors_of(row));
		if (!row->peer && (!c->shown || (strcmp(row->name, "call") == 0 &&
						 strcmp(c->shown->name, "call") != 0)))
			c->shown = row;
	}
}

/* Of all rows, in their order; where panel or curve change begins another block. */
static void put_view(FILE *out, struct curves *c, const struct figure_view *view)
{
	int panel, curve, panel_before = -1, curve_before = -1;
	const struct bench_row *row = c->result->row, *end = row + c->result->rows;
	struct spot spot;

	for (; row < end; row++)
		for (unsigned n = 0; row_measured(row) && view->spot(c, row, n, &spot); n++) {
			unsigned panels = c->panels.count, names = c->names.count;

			if (!isfinite(spot.y.median))
				continue;
			panel = words_slot(&c->panels, WORDS_MAX, spot.panel);
			curve = words_slot(&c->names, WORDS_MAX, spot.curve);
			if (panel < 0 || curve < 0)
				continue;
			if (c->panels.count > panels)
				fprintf(out, "\nP %d %d \"%s\" \"%s\" \"%s\"", panel, view->log_y,
					view->x, view->y, spot.panel);
			if (c->names.count > names)
				fprintf(out, "\nC %d %d \"%s\"", curve, row->peer, spot.curve);
			if (panel != panel_before || curve != curve_before)
				fputs("\n", out);
			panel_before = panel;
			curve_before = curve;
			fprintf(out, "\nV %d %d %.9g", panel, curve, spot.x);
			put_value(out, &spot.y);
		}
}

/* How many PANELS, and CURVES. */
static unsigned draw_curves(const struct figure_view *view, const struct bench_result *result,
			    FILE *out, char (*args)[BENCH_ARGS_SIZE])
{
	struct curves c = { .result = result };

	fputs("# P panel logarithmic x-label y-label title\n# C curve peer name\n"
	      "# V panel curve x y low high",
	      out);
	find_executors(&c);
	for (; view->spot; view++)
		put_view(out, &c, view);
	fputs("\n", out);
	add_number(args[0], c.panels.count);
	add_number(args[1], c.names.count);
	return c.panels.count ? 2 : 0;
}

/* --- All ------------------------------------------------------------------------------------ */

/* What has no views is drawn as rows. */
static const struct figure_view views[][4] = {
	[DRAWN_AS_RATES] = { { "toggles per second", "share of untouched", false, spot_of_share },
			     { "toggles per second", "more : less", true, spot_of_balance },
			     { "toggles per second", "million calls per second", false,
			       spot_of_executors } },
	[DRAWN_AS_GROWTH] = { { "times as much as in the smallest",
				"cost, multiple of the smallest", true, spot_of_growth } },
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
	unsigned count = 0;
	FILE *out;

	*figure = (struct bench_figure){ .data = NULL };
	if (!benchmark)
		return picture_fail(-EINVAL, error, size, "no figure for the benchmark %s",
				    result->benchmark);
	out = open_memstream(&data, &length);
	if (out && views[benchmark->drawing][0].spot)
		count = draw_curves(views[benchmark->drawing], result, out, figure->text);
	else if (out)
		count = draw_rows(result, out, figure->text);
	if (!out || fclose(out)) {
		free(data);
		return picture_fail(-ENOMEM, error, size, "out of memory");
	}
	for (unsigned i = 0; i < count; i++)
		figure->args[i] = figure->text[i];
	figure->picture = (struct picture){ print_data, data,
					    views[benchmark->drawing][0].spot ? "bench-curves.gp"
									      : "bench-rows.gp",
					    figure->args };
	figure->data = data;
	return count ? 0
		     : picture_fail(-ENODATA, error, size,
				    "nothing was measured that could be drawn");
}
