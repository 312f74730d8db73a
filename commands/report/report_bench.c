/* SPDX-License-Identifier: MIT */
/* A benchmark on the page: its figure, all its rows, and what else was going on. */
#include "commands/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_record.h"
#include "results/figures/html.h"

#define LABEL_MAX   256
#define CAPTION_MAX 1024

/* The last result of a benchmark. How many lines have one, or -ENOMEM; the caller frees it. */
static int read_last(const struct journal_data *data, const char *benchmark,
		     struct bench_result *last)
{
	const json_t *line;
	size_t i = 0;
	int lines = 0;

	*last = (struct bench_result){ 0 };
	while ((line = line_next(data, "bench", &i))) {
		struct bench_result fresh = { 0 };
		int rc = -EINVAL;

		if (strcmp(json_text_of(line, "benchmark"), benchmark) == 0)
			rc = bench_from_json(line, &fresh);
		if (rc == 0) {
			bench_result_free(last);
			*last = fresh;
			lines++;
		} else if (rc == -ENOMEM) {
			bench_result_free(last);
			return rc;
		}
	}
	return lines;
}

/* --- A benchmark ---------------------------------------------------------------------------- */

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

static void put_row(FILE *out, const struct bench_row *row)
{
	char label[WORDS_ROOM];

	html_row(out, NULL);
	html_cells(out, "ttnnnn", "%s%s\t%s, %s\t%s\t%s to %s\t%s\t%" PRIu64 " of %" PRIu64,
		   words_of_row(row, NULL, label, sizeof(label)), row->peer ? " (peer)" : "",
		   row->measure, row->unit, INTERVAL(row->value), FIGURE(row->p5), FIGURE(row->p99),
		   FIGURE(row->most), row->outliers, row->samples);
	if (!row->against[0])
		html_cell(out, "%s", "");
	else if (isnan(row->ratio.median))
		html_cell(out, "unknown to %s", row->against);
	else
		html_cell(out, "%s x %s%s", INTERVAL(row->ratio), row->against,
			  bench_row_same(row) ? ": no difference" : "");
	fputs("<td>", out);
	for (unsigned i = 0; i < row->extras; i++)
		html_format(out, "%s%s %s", i ? ", " : "", row->extra[i].key,
			    FIGURE(row->extra[i].number));
	fputs("</td>", out);
}

static void put_rows(FILE *out, const struct bench_result *result)
{
	char label[WORDS_ROOM];
	unsigned count = 0;

	for (unsigned i = 0; i < result->rows; i++)
		count += row_measured(&result->row[i]);
	fprintf(out, "<details><summary>All %u rows, %u not measured</summary>\n", result->rows,
		result->rows - count);
	html_table(
		out,
		"Median of the medians of blocks with its bootstrap interval. Outliers lie beyond "
		"the third quartile by three times the distance of the quartiles; they are in all "
		"figures. A ratio whose interval holds 1 is no difference.",
		"operation\tmeasure\t#median [95 %]\t#5 to 99 %\t#most\t#outliers\tratio\tbesides");
	for (const struct bench_row *row = result->row; row < result->row + result->rows; row++) {
		if (row_measured(row)) {
			put_row(out, row);
			continue;
		}
		html_line(out, "absent", "tt", "%s\t%s",
			  words_of_row(row, NULL, label, sizeof(label)), row->measure);
		html_between(out, "<td class=\"w\" colspan=\"6\">", "</td>", "%s",
			     row->why[0] ? row->why : "no reason is told");
	}
	html_folded_table_end(out);
}

static const char about_rows[] =
	" Dots: medians of the blocks, with their 95 % interval by bootstrap as a thick bar; thin "
	"line: from the 5th to the 99th percentile of all samples; cross: the longest sample. "
	"Grey: the median of the baseline that was measured in turn.";

static int put_benchmark(struct html_page *page, const struct benchmark *benchmark,
			 const struct bench_result *result, unsigned lines)
{
	char name[BENCH_KEY + 8], label[LABEL_MAX], caption[CAPTION_MAX], why[64],
		*around = words_of_result(result, page->data->identity.tsc_khz);
	struct bench_figure of;
	FILE *out = page->out;
	int rc;

	if (!around)
		return -ENOMEM;
	rc = bench_figure_draw(result, &of, why, sizeof(why));
	if (!rc) {
		snprintf(name, sizeof(name), "bench-%s", result->benchmark);
		snprintf(label, sizeof(label), "%s: %s", benchmark->title, benchmark->about);
		snprintf(caption, sizeof(caption), "%s%s", benchmark->caption,
			 benchmark->drawing == DRAWN_AS_ROWS ? about_rows : "");
		rc = page_figure(page, &(struct page_figure){ name, label, caption, of.picture });
	} else if (rc != -ENOMEM) {
		html_missing(out, "Nothing was measured that could be drawn.");
		rc = 0;
	}
	free(of.data);
	html_fold(out, "How it was measured");
	for (char *rest, *line = strtok_r(around, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		html_paragraph(out, "%s", line);
	free(around);
	if (lines > 1)
		html_paragraph(out, "This is the last of %u results of this benchmark.", lines);
	html_fold_end(out);
	if (!rc)
		put_rows(out, result);
	return rc;
}

int section_benchmark(struct html_page *page, const struct benchmark *benchmark)
{
	struct bench_result result;
	int rc = read_last(page->data, benchmark->name, &result);

	if (rc > 0)
		bench_ticks_to_times(&result, page->data->identity.tsc_khz);
	if (rc > 0)
		rc = put_benchmark(page, benchmark, &result, (unsigned)rc);
	else if (rc == 0)
		rc = 1;
	bench_result_free(&result);
	return rc;
}

/* --- Lines that are none of these ----------------------------------------------------------- */

void put_unread_benchmarks(struct html_page *page)
{
	size_t i = 0, unread = 0;
	const json_t *line;

	while ((line = line_next(page->data, "bench", &i))) {
		struct bench_result result = { 0 };

		unread += bench_from_json(line, &result) < 0;
		bench_result_free(&result);
	}
	if (unread)
		html_paragraph(page->out,
			       "%zu line%s of benchmarks could not be read and %s not in here.",
			       unread, S(unread), unread == 1 ? "is" : "are");
}
