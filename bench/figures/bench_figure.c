/* SPDX-License-Identifier: MIT */
/*
 * Which figure shows which benchmark, and its files.
 */
#include "bench/figures/bench_figure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/record/bench_words.h"

/* --- Rows
 * ----------------------------------------------------------------------------------------- */

/*
 * Rows as lines of a dot plot: a panel per unit, a heading per name, a line per case, and on
 * it a dot per measure.
 */
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
static unsigned slot_of(char (*list)[WORDS_ROOM], unsigned *count, const char *text)
{
	int slot = words_slot(list, count, PLACES, text);

	return slot < 0 ? PLACES - 1 : (unsigned)slot;
}

static struct sheet sheet_of(const struct bench_result *result, FILE *stream)
{
	struct sheet s = { .stream = stream, .result = result };

	for (unsigned i = 0; i < result->rows; i++)
		if (row_measured(&result->row[i])) {
			slot_of(s.measure, &s.measures, result->row[i].measure);
			slot_of(s.unit, &s.units, result->row[i].unit);
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
			s->line - 1 + beside, slot_of(s->measure, &s->measures, row->measure),
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
		    slot_of(s->unit, &s->units, row->unit) == panel)
			put_group(s, i);
	}
	return s->line;
}

static void bench_rows_print(FILE *stream, const void *arg)
{
	struct sheet s = sheet_of(arg, stream);

	fputs("# L panel line heading label\n"
	      "# D panel line measure peer median low high p5 p99 most baseline: 0 for none\n",
	      stream);
	for (unsigned panel = 0; panel < s.units; panel++)
		put_panel(&s, panel);
}

/* 0 if there is nothing to draw; LINES of each panel, UNITS and MEASURES, each word in quotes. */
static unsigned bench_rows_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
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

/* --- Histograms
 * ----------------------------------------------------------------------------------- */

/*
 * Histograms as outlines: a panel per thing done, a column per number of executors.
 */
#define COLUMNS	 2 /* of executors; more are left to the table */
#define MEASURES 2

static const char *const not_in_titles[] = { "executors", "sites", NULL };

struct panels {
	char title[16][WORDS_ROOM];
	unsigned count;
	double executors[COLUMNS];
	unsigned columns;
	char measure[MEASURES][WORDS_ROOM];
	unsigned measures;
};

struct place {
	int panel, column, measure; /* -1: none, and no room for one */
};

static bool place_of(struct panels *p, const struct bench_row *row, struct place *place)
{
	double executors = bench_row_number(row, "executors");
	char title[WORDS_ROOM];
	unsigned column = 0;

	if (!row_measured(row) || !row->bins)
		return false;
	/* Nothing said counts as none. */
	executors = isnan(executors) ? 0 : executors;
	while (column < p->columns && p->executors[column] != executors)
		column++;
	if (column == p->columns && column < COLUMNS)
		p->executors[p->columns++] = executors;
	words_of_row(row, not_in_titles, title, sizeof(title));
	place->panel =
		words_slot(p->title, &p->count, sizeof(p->title) / sizeof(p->title[0]), title);
	place->column = column < COLUMNS ? (int)column : -1;
	place->measure = words_slot(p->measure, &p->measures, MEASURES, row->measure);
	return place->panel >= 0 && place->column >= 0 && place->measure >= 0;
}

static struct panels panels_of(const struct bench_result *result)
{
	struct panels p = { .count = 0 };
	struct place place;

	for (unsigned i = 0; i < result->rows; i++)
		place_of(&p, &result->row[i], &place);
	return p;
}

static void bench_latency_print(FILE *stream, const void *arg)
{
	const struct bench_result *result = arg;
	struct panels p = panels_of(result);
	struct place at;

	fputs("# P panel title\n# V panel column measure ticks share: along the outline\n", stream);
	for (unsigned i = 0; i < p.count; i++)
		fprintf(stream, "P %u \"%s\"\n", i, p.title[i]);
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
			fprintf(stream, "V %d %d %d %.9g %.9g\nV %d %d %d %.9g %.9g\n", at.panel,
				at.column, at.measure, bin->low > 0.5 ? bin->low : 0.5, share,
				at.panel, at.column, at.measure, bin->high, share);
		}
		fputs("\n", stream);
	}
}

/* 0 if there is nothing to draw; how many PANELS; EXECUTORS of each column; MEASURES in quotes. */
static unsigned bench_latency_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
{
	struct panels p = panels_of(result);
	size_t length = 0;

	args[1][0] = '\0';
	snprintf(args[0], BENCH_ARGS_SIZE, "%u", p.count);
	for (unsigned i = 0; i < p.columns; i++)
		length += (size_t)snprintf(args[1] + length, BENCH_ARGS_SIZE - length, "%s%.0f",
					   i ? " " : "", p.executors[i]);
	words_quoted(p.measure, p.measures, args[2], BENCH_ARGS_SIZE);
	return p.count ? 3 : 0;
}

/* --- Throughput
 * ----------------------------------------------------------------------------------- */

/*
 * Throughput against toggles per second: a curve per method, and one per number of executors.
 */
#define MODES	  2
#define CURVES	  14
#define EXECUTORS 12 /* 1, 2, 4 ..., 1024 */

#define BALANCE_MOST 1e6

static const char *const not_in_names[] = { "rate", "mode", "executors", NULL };

struct curves {
	const struct bench_result *result;
	char name[CURVES][WORDS_ROOM];
	bool peer[CURVES];
	unsigned count;
	double executors[EXECUTORS]; /* in rising order */
	unsigned sizes;
	const struct bench_row *sample; /* of the method that stands for all, NULL: none */
};

/* Nothing said counts as one. */
static double executors_of(const struct bench_row *row)
{
	double executors = bench_row_number(row, "executors");

	return isnan(executors) ? 1 : executors;
}

static int mode_of(const struct bench_row *row)
{
	static const char *const modes[MODES] = { "call-call", "call-nop" };
	const char *mode = bench_row_text(row, "mode");

	for (int i = 0; mode && i < MODES; i++)
		if (strcmp(mode, modes[i]) == 0)
			return i;
	return -1;
}

static bool is_drawn(const struct bench_row *row)
{
	return row_measured(row) && mode_of(row) >= 0 && strcmp(row->measure, "calls") == 0 &&
	       isfinite(bench_row_number(row, "rate"));
}

static int curve_of(struct curves *c, const struct bench_row *row)
{
	unsigned before = c->count;
	char name[WORDS_ROOM];
	int curve;

	words_of_row(row, not_in_names, name, sizeof(name));
	curve = words_slot(c->name, &c->count, CURVES, name);
	if (c->count > before)
		c->peer[curve] = row->peer;
	return curve;
}

static struct curves curves_of(const struct bench_result *result)
{
	struct curves c = { .result = result };

	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];
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
		if (!row->peer && (!c.sample || (call && strcmp(c.sample->name, "call") != 0)))
			c.sample = row;
	}
	return c;
}

/* Where a row is drawn: at what it got, which may be less than what it was asked for. */
static double rate_of(const struct bench_row *row)
{
	double asked = bench_row_number(row, "rate");
	double got = bench_row_extra_of(row, "toggles_per_s");

	return asked > 0 && got > 0 ? got : asked;
}

static void bench_throughput_print(FILE *stream, const void *arg)
{
	const struct bench_result *result = arg;
	const struct bench_row *end = result->row + result->rows;
	struct curves c = curves_of(result);
	char one[WORDS_ROOM], sample[WORDS_ROOM];

	fputs("# K curve peer name\n"
	      "# T curve mode toggles/s share low high balance: mode 0 call-call, 1 call-nop\n"
	      "# E executors mode toggles/s calls/s low high\n",
	      stream);
	for (unsigned i = 0; i < c.count; i++)
		fprintf(stream, "K %u %d \"%s\"\n", i, c.peer[i], c.name[i]);
	/* Rates of one curve stand in a block, for a line through them. */
	for (unsigned curve = 0; curve < c.count; curve++) {
		for (const struct bench_row *row = result->row; row < end; row++) {
			double share = row->ratio.median;
			double balance = bench_row_extra_of(row, "balance");

			if (!is_drawn(row) || curve_of(&c, row) != (int)curve ||
			    executors_of(row) != c.executors[0] || !isfinite(share))
				continue;
			/* One state was never executed: as far up as the scale goes. 0 for none. */
			balance = isinf(balance) ? BALANCE_MOST : finite_or(balance, 0);
			fprintf(stream, "T %u %d %.9g %.9g %.9g %.9g %.9g\n", curve, mode_of(row),
				rate_of(row), share, finite_or(row->ratio.low, share),
				finite_or(row->ratio.high, share), balance);
		}
		fputs("\n", stream);
	}
	if (c.sample)
		words_of_row(c.sample, not_in_names, sample, sizeof(sample));
	for (const struct bench_row *row = result->row; row < end && c.sample && c.sizes > 1;
	     row++) {
		if (!is_drawn(row) ||
		    strcmp(words_of_row(row, not_in_names, one, sizeof(one)), sample) != 0)
			continue;
		for (unsigned i = 0; i < c.sizes; i++)
			if (c.executors[i] == executors_of(row))
				fprintf(stream, "E %u %d %.9g %.9g %.9g %.9g\n", i, mode_of(row),
					rate_of(row), row->value.median,
					finite_or(row->value.low, row->value.median),
					finite_or(row->value.high, row->value.median));
	}
}

/* 0 if there is nothing to draw; how many CURVES; the EXECUTORS of the last panels, empty without
 * them; whose they are. */
static unsigned bench_throughput_args(const struct bench_result *result,
				      char (*args)[BENCH_ARGS_SIZE])
{
	struct curves c = curves_of(result);
	char name[WORDS_ROOM];
	size_t length = 0;

	args[1][0] = args[2][0] = '\0';
	snprintf(args[0], BENCH_ARGS_SIZE, "%u", c.count);
	for (unsigned i = 0; i < c.sizes && c.sizes > 1; i++)
		length += (size_t)snprintf(args[1] + length, BENCH_ARGS_SIZE - length, "%s%.0f",
					   i ? " " : "", c.executors[i]);
	if (c.sample)
		snprintf(args[2], BENCH_ARGS_SIZE, "%.100s",
			 words_of_row(c.sample, not_in_names, name, sizeof(name)));
	return c.count ? 3 : 0;
}

/* --- All
 * ------------------------------------------------------------------------------------------ */

#define DOTS                                                                                       \
	"Dots: medians of the blocks, with their 95 % interval by bootstrap as a thick bar; thin " \
	"line: from the 5th to the 99th percentile of all samples; cross: the longest sample. "    \
	"Grey: the median of the baseline that was measured in turn."

static const struct bench_figure figures[] = {
	{ "toggle", "bench-rows.gp", "Cost of one change by operation, split, policy and mapping",
	  "Ticks per change, per site for batches. " DOTS
	  " What is waited for in other threads is not in here.",
	  bench_rows_print, bench_rows_args },
	{ "latency", "bench-latency.gp", "Histograms of the cost of one change over many sites",
	  "The paper's figure 10: share of the changes by what each took, eight bins to an octave, "
	  "both scales logarithmic, so that the rare long ones are seen. Activation and "
	  "deactivation apart. The second heap of patch is that of the straddlers.",
	  bench_latency_print, bench_latency_args },
	{ "throughput", "bench-throughput.gp",
	  "Calls through a hot site and their balance against toggles per second",
	  "The paper's figures 11 to 13: calls per second as a share of those through the same "
	  "site untouched, in turn, with 95 % intervals, against the toggles per second that were "
	  "got; on the far left none. Below, how often the more frequent of both states was "
	  "executed to the less frequent; 1 is balanced. Dashed: peers. Last, where there are "
	  "several, all calls per second by number of executors.",
	  bench_throughput_print, bench_throughput_args },
	{ "scaling", "bench-scaling.gp",
	  "Cost of a change by sites known, and changes per second by patchers",
	  "Medians with 95 % intervals. A change across a line against how many sites are known; "
	  "changes per second of all patchers together, each with a site of its own unless it says "
	  "otherwise.",
	  bench_scaling_print, bench_scaling_args },
	{ "latent", "bench-rows.gp", "Ticks per pass of a loop with a deactivated site",
	  "Ticks per pass of a loop. " DOTS, bench_rows_print, bench_rows_args },
	{ "stall", "bench-rows.gp", "Longest pass of an executor while its site is patched",
	  "The executor's longest pass per change. " DOTS
	  " The baseline has no change, so that interrupts are in both.",
	  bench_rows_print, bench_rows_args },
	{ "invoke", "bench-rows.gp", "Ticks per call of an empty function through an active site",
	  "Ticks per pass of a loop that calls an empty function. " DOTS, bench_rows_print,
	  bench_rows_args },
	{ "probes", "bench-rows.gp", "What a probe costs, off, on and being switched",
	  "Ticks per call of a function with a probe, or per change. " DOTS, bench_rows_print,
	  bench_rows_args },
	{ 0 },
};

const struct bench_figure *bench_figure_of(const char *benchmark)
{
	for (const struct bench_figure *f = figures; f->benchmark; f++)
		if (strcmp(f->benchmark, benchmark) == 0)
			return f;
	return NULL;
}

unsigned bench_figure_args(const struct bench_figure *f, const struct bench_result *result,
			   struct bench_words *words)
{
	unsigned count = f->args(result, words->text);

	for (unsigned i = 0; i < count; i++)
		words->args[i] = words->text[i];
	words->args[count] = NULL;
	return count;
}

int bench_figure_write(const struct bench_result *result, const char *prefix, char *error,
		       size_t size)
{
	const struct bench_figure *f = bench_figure_of(result->benchmark);
	struct bench_words words;

	if (!f)
		return picture_fail(-EINVAL, error, size, "no figure for the benchmark %s",
				    result->benchmark);
	if (!bench_figure_args(f, result, &words))
		return picture_fail(-ENODATA, error, size,
				    "nothing was measured that could be drawn");
	return picture_make(&(struct picture){ f->print, result, f->script, words.args }, prefix,
			    error, size);
}
