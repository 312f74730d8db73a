/* SPDX-License-Identifier: MIT */
#include "commands/tmax/bench_print.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_record.h"

#define LABEL_WIDTH 23
#define INTERVAL    32

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

/* What all rows of the group are; or what only one of them is. Returns its length. */
static int print_label(FILE *out, const struct group *g, const struct bench_row *only)
{
	const struct bench_row *row = only ? only : g->row[0];
	const char *without[BENCH_PARAMS + 1] = { NULL };
	bool measure = all_have(g, NULL) == !only;
	char params[WORDS_ROOM];
	unsigned left_out = 0;

	for (unsigned i = 0; i < row->params; i++)
		if (all_have(g, &row->param[i]) != !only)
			without[left_out++] = row->param[i].key;
	words_of_params(row, without, params, sizeof(params));
	return fprintf(out, "%s%s%s%s%s%s", only ? " " : row->name,
		       !only && row->peer ? " (peer)" : "", measure ? " " : "",
		       measure ? row->measure : "",
		       !params[0]	  ? ""
		       : only && !measure ? " "
					  : ": ",
		       params);
}

/* --- A row ---------------------------------------------------------------------------------- */

static const char *interval_of(const struct bench_value *v, char text[INTERVAL])
{
	text[0] = '\0';
	if (!isnan(v->low) && !isnan(v->high))
		snprintf(text, INTERVAL, "[%s,%s]", FIGURE(v->low), FIGURE(v->high));
	return text;
}

/* Behind a label of that length. What has no room beside the figures has a line above them. */
static void print_row(FILE *out, int label, const struct bench_row *row)
{
	char interval[INTERVAL], range[INTERVAL];
	bool told = false;

	for (unsigned i = 0; i < row->extras; i++) {
		/* That executors were at work is for readers of the JSON. */
		if (strcmp(row->extra[i].key, "executed") == 0)
			continue;
		fprintf(out, "%s %s %s", told ? "," : ";", row->extra[i].key,
			FIGURE(row->extra[i].number));
		told = true;
	}
	if (told || label > LABEL_WIDTH)
		fprintf(out, "\n%*s", LABEL_WIDTH, "");
	else
		fprintf(out, "%*s", LABEL_WIDTH - label, "");
	snprintf(range, sizeof(range), "%s..%s", FIGURE(row->p5), FIGURE(row->p99));
	fprintf(out, " %6s %15s %13s %6s %5s", FIGURE(row->value.median),
		interval_of(&row->value, interval), range, FIGURE(row->most),
		NUMBER(row->outliers));
	/* Where there is no difference the noise tells how large a one could have been seen. */
	interval_of(&row->ratio, interval);
	if (row->against[0])
		fprintf(out, " %s%s%s",
			bench_row_same(row) ? "no difference" : FIGURE(row->ratio.median),
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

void bench_print(const struct bench_result *result, FILE *out)
{
	const struct bench_row **row = calloc(result->rows + 1, sizeof(const struct bench_row *));
	char *around = words_of_result(result);
	size_t measured = 0, skipped;
	struct group g;

	if (!row || !around) {
		fprintf(out, "%s: out of memory\n", result->benchmark);
		free(around);
		free(row);
		return;
	}
	for (unsigned i = 0; i < result->rows; i++)
		if (result->row[i].samples)
			row[measured++] = &result->row[i];
	skipped = measured;
	for (unsigned i = 0; i < result->rows; i++)
		if (!result->row[i].samples)
			row[skipped++] = &result->row[i];
	fputs(around, out);
	if (!measured)
		fprintf(out, "\nnothing was measured\n");
	for (size_t i = 0; i < measured; i += g.rows) {
		int label;

		g = group_at(row + i, measured - i, is_of_group);
		if (i == 0 || !is_alike(row[i - 1], row[i])) {
			fprintf(out, "\n%-*s %6s %15s %13s %6s %5s", LABEL_WIDTH, row[i]->unit,
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
	free(around);
	free(row);
}
