/* SPDX-License-Identifier: MIT */
/*
 * A benchmark on the page: its figure, all its rows, and what else was going on.
 */
#include "bench/page/report_bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/figures/bench_figure.h"
#include "bench/record/bench_record.h"
#include "bench/record/bench_words.h"
#include "calibrate/page/html.h"
#include "results/figures/gnuplot.h"

/* --- Reading ------------------------------------------------------------------------ */

/* The place of a benchmark of that name, or a new one; NULL: no room for it. */
static struct bench_result *place_of(struct bench_results *results, const char *benchmark)
{
	size_t i = 0;

	while (i < results->count && strcmp(results->result[i].benchmark, benchmark) != 0)
		i++;
	if (i == BENCHMARKS_MAX)
		return NULL;
	if (i == results->count)
		results->count++;
	results->lines[i]++;
	return &results->result[i];
}

static void take(struct bench_results *results, struct bench_result *fresh)
{
	struct bench_result *place = place_of(results, fresh->benchmark);

	if (!place) {
		results->unread++;
		bench_result_free(fresh);
		return;
	}
	bench_result_free(place);
	*place = *fresh;
}

int bench_results_read(const struct journal_data *data, struct bench_results *results)
{
	const json_t *line;
	size_t i = 0;

	memset(results, 0, sizeof(*results));
	while ((line = line_next(data, "bench", &i))) {
		struct bench_result fresh = { 0 };
		int rc = bench_from_json(line, &fresh);

		if (rc == -ENOMEM) {
			bench_results_free(results);
			return rc;
		}
		if (rc)
			results->unread++;
		else
			take(results, &fresh);
	}
	return 0;
}

void bench_results_free(struct bench_results *results)
{
	while (results->count)
		bench_result_free(&results->result[--results->count]);
}

bool journal_has_bench(const struct journal_data *data, const char *benchmark)
{
	const json_t *line;
	size_t i = 0;

	while ((line = line_next(data, "bench", &i)))
		if (!benchmark || strcmp(json_text_of(line, "benchmark"), benchmark) == 0)
			return true;
	return false;
}

/* --- Rows ------------------------------------------------------------------------------ */

double bench_rounded(double value)
{
	return fabs(value) >= 100 ? round(value) : value;
}

char *bench_interval(char *buf, struct bench_value v)
{
	if (isnan(v.median))
		buf[0] = '\0';
	else if (isnan(v.low) || isnan(v.high))
		snprintf(buf, INTERVAL_TEXT, "%s", FIGURE(v.median));
	else
		snprintf(buf, INTERVAL_TEXT, "%s [%s, %s]", FIGURE(v.median), FIGURE(v.low),
			 FIGURE(v.high));
	return buf;
}

static void put_ratio(FILE *out, const struct bench_row *row)
{
	if (!row->against[0])
		html_cell(out, "%s", "");
	else if (isnan(row->ratio.median))
		html_cell(out, "unknown to %s", row->against);
	else
		html_cell(out, "%s x %s%s", INTERVAL(row->ratio), row->against,
			  bench_row_same(row) ? ": no difference" : "");
}

static void put_extras(FILE *out, const struct bench_row *row)
{
	fputs("<td>", out);
	for (unsigned i = 0; i < row->extras; i++)
		html_format(out, "%s%s %s", i ? ", " : "", row->extra[i].key,
			    FIGURE(row->extra[i].number));
	fputs("</td>", out);
}

static void put_row(FILE *out, const struct bench_row *row)
{
	char label[WORDS_ROOM];

	html_row(out, NULL);
	html_cell(out, "%s%s", words_of_row(row, NULL, label, sizeof(label)),
		  row->peer ? " (peer)" : "");
	html_cell(out, "%s, %s", row->measure, row->unit);
	html_number(out, "%s", INTERVAL(row->value));
	html_number(out, "%s to %s", FIGURE(row->p5), FIGURE(row->p99));
	html_number(out, "%s", FIGURE(row->most));
	html_number(out, "%" PRIu64 " of %" PRIu64, row->outliers, row->samples);
	put_ratio(out, row);
	put_extras(out, row);
}

static unsigned count_measured(const struct bench_result *result)
{
	unsigned count = 0;

	for (unsigned i = 0; i < result->rows; i++)
		count += row_measured(&result->row[i]);
	return count;
}

static void put_rows(FILE *out, const struct bench_result *result)
{
	static const char *const headings[] = { "operation",  "measure", "#median [95 %]",
						"#5 to 99 %", "#most",	 "#outliers",
						"ratio",      "besides", NULL };
	unsigned count = count_measured(result);

	if (!count)
		return;
	fprintf(out, "<details><summary>All %u rows</summary>\n", count);
	html_table(out,
		   "Median of the medians of blocks with its bootstrap interval. Outliers lie "
		   "beyond the third quartile by three times the distance of the quartiles; they "
		   "are in all figures. A ratio whose interval holds 1 is no difference.",
		   headings);
	for (unsigned i = 0; i < result->rows; i++)
		if (row_measured(&result->row[i]))
			put_row(out, &result->row[i]);
	html_table_end(out);
	fputs("</details>\n", out);
}

static void put_skipped(FILE *out, const struct bench_result *result)
{
	static const char *const headings[] = { "not measured", "measure", "why", NULL };
	char label[WORDS_ROOM];

	if (count_measured(result) == result->rows)
		return;
	html_table(out, NULL, headings);
	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];

		if (row_measured(row))
			continue;
		html_row(out, "gap");
		html_cell(out, "%s", words_of_row(row, NULL, label, sizeof(label)));
		html_cell(out, "%s", row->measure);
		html_words(out, "%s", row->why[0] ? row->why : "nobody says why");
	}
	html_table_end(out);
}

/* --- What is around the rows -------------------------------------------------------------- */

static void put_about(FILE *out, const struct bench_result *result, unsigned lines)
{
	html_paragraph(out,
		       "%u rounds in %s seconds, up to %u executor%s, ended %s, order by seed "
		       "%" PRIu64 ".",
		       result->rounds, FIGURE(result->seconds), result->seating.executors,
		       result->seating.executors == 1 ? "" : "s", result->date, result->seed);
	if (result->first_wait)
		html_paragraph(out,
			       "Waits in use: %" PRIu64 " and %" PRIu64
			       " ticks, each at least %" PRIu64 " times as long as a store took.",
			       result->first_wait, result->second_wait, result->stretch);
	else
		html_paragraph(out, "No waits were in use: policy wait was refused.");
	if (strcmp(result->waits_from, "assumed") == 0)
		html_paragraph(out, "No calibration gave these waits: they were assumed, to see "
				    "what such waits cost. Of tears they say nothing.");
	if (lines > 1)
		html_paragraph(out, "This is the last of %u results of this benchmark.", lines);
}

static const char *count_or(char *buf, size_t size, uint64_t count)
{
	if (count == WITNESS_UNKNOWN)
		return "unknown";
	snprintf(buf, size, "%" PRIu64, count);
	return buf;
}

static void put_witnesses(FILE *out, const struct bench_result *result)
{
	const struct witness *w = &result->witness;
	char involuntary[24], interrupts[24], steal[40] = "unknown";

	if (w->steal >= 0)
		snprintf(steal, sizeof(steal), "%s %%", NUMBER(100 * w->steal));
	html_paragraph(out,
		       "Meanwhile: steal %s, involuntary switches %s, interrupts %s, load %s. "
		       "Distance of the CPUs, half a round trip of a line: %s ticks.",
		       steal, count_or(involuntary, sizeof(involuntary), w->involuntary),
		       count_or(interrupts, sizeof(interrupts), w->interrupts),
		       w->load >= 0 ? NUMBER(w->load) : "unknown",
		       isnan(result->distance.median) ? "unknown" : INTERVAL(result->distance));
}

static int put_figure(struct page *page, const struct bench_result *result)
{
	const struct bench_figure *of = bench_figure_of(result->benchmark);
	char words[PICTURE_ARGS_MAX][BENCH_ARGS_SIZE], name[BENCH_KEY + 8];
	const char *args[PICTURE_ARGS_MAX + 1] = { NULL };
	unsigned count = of ? of->args(result, words) : 0;
	struct page_figure figure;

	if (!count) {
		html_missing(page->out, "Nothing was measured that could be drawn.");
		return 0;
	}
	while (count--)
		args[count] = words[count];
	snprintf(name, sizeof(name), "bench-%s", of->benchmark);
	figure = (struct page_figure){ .name = name,
				       .script = of->script,
				       .label = of->label,
				       .caption = of->caption,
				       .print = of->print,
				       .arg = result,
				       .args = args };
	return page_figure(page, &figure);
}

static int put_benchmark(struct page *page, const struct bench_result *result, unsigned lines)
{
	int rc;

	put_about(page->out, result, lines);
	rc = put_figure(page, result);
	if (rc)
		return rc;
	put_rows(page->out, result);
	put_skipped(page->out, result);
	put_witnesses(page->out, result);
	return 0;
}

int section_benchmark(struct page *page, const char *benchmark)
{
	struct bench_results results;
	bool found = false;
	int rc = bench_results_read(page->data, &results);

	for (size_t i = 0; i < results.count && !rc; i++) {
		if (strcmp(results.result[i].benchmark, benchmark) != 0)
			continue;
		found = true;
		rc = put_benchmark(page, &results.result[i], results.lines[i]);
	}
	if (!rc && !found)
		html_missing(page->out, "No line of this benchmark could be read.");
	bench_results_free(&results);
	return rc;
}
