/* SPDX-License-Identifier: MIT */
/*
 * Histograms as outlines: a panel per thing done, a column per number of executors.
 */
#include <math.h>
#include <string.h>

#include "bench/figures/bench_data.h"
#include "bench/record/bench_words.h"

#define COLUMNS	 2 /* of executors; more are left to the table */
#define MEASURES 2

static const char *const not_in_titles[] = { "executors", "sites", NULL };

struct panels {
	char title[16][WORDS_ROOM];
	unsigned count;
	double executors[COLUMNS];
	unsigned columns;
	char measure[MEASURES][BENCH_KEY];
	unsigned measures;
};

/* Nothing said counts as none. */
static double executors_of(const struct bench_row *row)
{
	double executors = bench_row_number(row, "executors");

	return isnan(executors) ? 0 : executors;
}

static bool is_drawn(const struct bench_row *row)
{
	return row_measured(row) && row->bins;
}

/* -1: no place, and no room for one. */
static int panel_of(struct panels *p, const struct bench_row *row)
{
	char title[WORDS_ROOM];

	words_of_row(row, not_in_titles, title, sizeof(title));
	return words_slot(p->title, &p->count, sizeof(p->title) / sizeof(p->title[0]), title);
}

static int column_of(struct panels *p, const struct bench_row *row)
{
	double executors = executors_of(row);

	for (unsigned i = 0; i < p->columns; i++)
		if (p->executors[i] == executors)
			return (int)i;
	if (p->columns == COLUMNS)
		return -1;
	p->executors[p->columns] = executors;
	return (int)p->columns++;
}

static int measure_of(struct panels *p, const struct bench_row *row)
{
	for (unsigned i = 0; i < p->measures; i++)
		if (strcmp(p->measure[i], row->measure) == 0)
			return (int)i;
	if (p->measures == MEASURES)
		return -1;
	strcpy(p->measure[p->measures], row->measure);
	return (int)p->measures++;
}

struct place {
	int panel, column, measure;
};

static bool place_of(struct panels *p, const struct bench_row *row, struct place *place)
{
	if (!is_drawn(row))
		return false;
	*place = (struct place){ panel_of(p, row), column_of(p, row), measure_of(p, row) };
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

static double total_of(const struct bench_row *row)
{
	double total = 0;

	for (unsigned i = 0; i < row->bins; i++)
		total += (double)row->bin[i].count;
	return total;
}

/* One side of a bin after the other, so that a line through them is the outline. */
static void put_outline(FILE *stream, const struct place *at, const struct bench_row *row)
{
	double total = total_of(row);

	for (unsigned i = 0; i < row->bins && total > 0; i++) {
		const struct bench_bin *bin = &row->bin[i];
		double share = (double)bin->count / total;

		/* A logarithmic scale has no 0; the first bin may begin there. */
		fprintf(stream, "V %d %d %d %.9g %.9g\nV %d %d %d %.9g %.9g\n", at->panel,
			at->column, at->measure, bin->low > 0.5 ? bin->low : 0.5, share, at->panel,
			at->column, at->measure, bin->high, share);
	}
	fputs("\n", stream);
}

void bench_latency_print(FILE *stream, const void *arg)
{
	const struct bench_result *result = arg;
	struct panels p = panels_of(result);
	struct place place;

	fputs("# P panel title\n# V panel column measure ticks share: along the outline\n", stream);
	for (unsigned i = 0; i < p.count; i++)
		fprintf(stream, "P %u \"%s\"\n", i, p.title[i]);
	for (unsigned i = 0; i < result->rows; i++)
		if (place_of(&p, &result->row[i], &place))
			put_outline(stream, &place, &result->row[i]);
}

/* 0 if there is nothing to draw; how many PANELS; EXECUTORS of each column; MEASURES in quotes. */
unsigned bench_latency_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
{
	struct panels p = panels_of(result);
	char word[BENCH_KEY];
	size_t length[2] = { 0 };

	args[1][0] = args[2][0] = '\0';
	snprintf(args[0], BENCH_ARGS_SIZE, "%u", p.count);
	for (unsigned i = 0; i < p.columns; i++)
		length[0] += (size_t)snprintf(args[1] + length[0], BENCH_ARGS_SIZE - length[0],
					      "%s%.0f", i ? " " : "", p.executors[i]);
	for (unsigned i = 0; i < p.measures; i++)
		length[1] += (size_t)snprintf(args[2] + length[1], BENCH_ARGS_SIZE - length[1],
					      "%s\"%s\"", i ? " " : "",
					      words_plain(p.measure[i], word, sizeof(word)));
	return p.count ? 3 : 0;
}
