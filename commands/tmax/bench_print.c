/* SPDX-License-Identifier: MIT */
/*
 * The result of a benchmark as a table: a line per row, with its median and interval, p5 to p99,
 * outliers, ratio to the baseline and its interval ("no difference" where bench_row_same()), and
 * last what it is of, which may be long; or why it was skipped. Above it on what, and what else was
 * going on. Numbers and params are told as in figures and reports (bench_words.c).
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_record.h"
#include "commands/tmax/commands.h"

#define INTERVAL 32
#define FIGURES	 "%8s %17s %15s %8s %5s"

static const char *interval_of(const struct bench_value *v, char text[INTERVAL])
{
	text[0] = '\0';
	if (!isnan(v->low) && !isnan(v->high))
		snprintf(text, INTERVAL, "[%s,%s]", FIGURE(v->low), FIGURE(v->high));
	return text;
}

static void print_label(FILE *out, const struct bench_row *row)
{
	char label[WORDS_ROOM];

	fprintf(out, "%s %s%s", row->measure, words_of_row(row, NULL, label, sizeof(label)),
		row->peer ? " (peer)" : "");
}

static void print_row(FILE *out, const struct bench_row *row)
{
	char interval[INTERVAL], range[INTERVAL], ratio[2 * INTERVAL];
	const char *separator = ";";

	snprintf(range, sizeof(range), "%s..%s", FIGURE(row->p5), FIGURE(row->p99));
	fprintf(out, FIGURES, FIGURE(row->value.median), interval_of(&row->value, interval), range,
		FIGURE(row->most), NUMBER(row->outliers));
	/* Where there is no difference the noise tells how large a one could have been seen. */
	if (row->against[0]) {
		snprintf(ratio, sizeof(ratio), "%s %s",
			 bench_row_same(row) ? "no difference" : FIGURE(row->ratio.median),
			 interval_of(&row->ratio, interval));
		fprintf(out, " %-27s", ratio);
	}
	fputs("  ", out);
	print_label(out, row);
	for (unsigned i = 0; i < row->extras; i++) {
		/* That executors were at work is for readers of the JSON. */
		if (strcmp(row->extra[i].key, "executed") == 0)
			continue;
		fprintf(out, "%s %s %s", separator, row->extra[i].key,
			FIGURE(row->extra[i].number));
		separator = ",";
	}
	fputc('\n', out);
}

static void print_head(FILE *out, const struct bench_row *row)
{
	char ratio[sizeof(row->against) + INTERVAL];

	fprintf(out, "\n" FIGURES, "median", "[95 %]", "p5..p99", "most", "outl.");
	snprintf(ratio, sizeof(ratio), "ratio to %s [95 %%]", row->against);
	if (row->against[0])
		fprintf(out, " %-27s", ratio);
	fprintf(out, "  %s\n", row->unit);
}

/* Is the row skipped as the one before it was? */
static bool is_skipped_alike(const struct bench_row *a, const struct bench_row *b)
{
	return !b->samples && strcmp(a->name, b->name) == 0 && strcmp(a->why, b->why) == 0;
}

void bench_print(struct bench_result *result, uint64_t tsc_khz, FILE *out)
{
	const struct bench_row *end = result->row + result->rows, *last = NULL;
	char *around = words_of_result(result, tsc_khz);
	const char *head = "\nskipped\n";

	if (!around) {
		fprintf(out, "%s: out of memory\n", result->benchmark);
		return;
	}
	fputs(around, out);
	free(around);
	bench_ticks_to_times(result, tsc_khz);
	for (const struct bench_row *row = result->row; row < end; row++) {
		if (!row->samples)
			continue;
		if (!last || strcmp(row->unit, last->unit) != 0 ||
		    strcmp(row->against, last->against) != 0)
			print_head(out, row);
		print_row(out, row);
		last = row;
	}
	if (!last)
		fputs("\nnothing was measured\n", out);
	for (const struct bench_row *row = result->row, *next; row < end; row = next) {
		for (next = row + 1; next < end && is_skipped_alike(row, next);)
			next++;
		if (row->samples)
			continue;
		fprintf(out, "%s  ", head);
		head = "";
		print_label(out, row);
		if (next - row > 1)
			fprintf(out, " and %td more", next - row - 1);
		fprintf(out, ": %s\n", row->why);
	}
}
