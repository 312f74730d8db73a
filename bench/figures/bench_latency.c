/* SPDX-License-Identifier: MIT */
/*
 * Histograms as outlines: a panel per thing done, a column per number of executors.
 */
#include <math.h>
#include <string.h>

#include "bench/figures/bench_figure.h"
#include "bench/record/bench_words.h"

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

void bench_latency_print(FILE *stream, const void *arg)
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
unsigned bench_latency_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
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
