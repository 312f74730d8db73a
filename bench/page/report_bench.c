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

#define TELLING	  5 /* rows */
#define LABEL_MAX 800

int bench_results_read(const struct journal_data *data, struct bench_results *results)
{
	const json_t *line;
	size_t i = 0, at;

	memset(results, 0, sizeof(*results));
	while ((line = line_next(data, "bench", &i))) {
		struct bench_result fresh = { 0 };
		int rc = bench_from_json(line, &fresh);

		if (rc == -ENOMEM) {
			bench_results_free(results);
			return rc;
		}
		/* In the place of an older one of the same benchmark. */
		for (at = 0; !rc && at < results->count; at++)
			if (strcmp(results->result[at].benchmark, fresh.benchmark) == 0)
				break;
		if (rc || at == BENCHMARKS_MAX) {
			results->unread++;
			bench_result_free(&fresh);
			continue;
		}
		results->count += at == results->count;
		bench_result_free(&results->result[at]);
		results->result[at] = fresh;
		results->lines[at]++;
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
	html_cell(out, "%s%s", words_of_row(row, NULL, label, sizeof(label)),
		  row->peer ? " (peer)" : "");
	html_cell(out, "%s, %s", row->measure, row->unit);
	html_number(out, "%s", INTERVAL(row->value));
	html_number(out, "%s to %s", FIGURE(row->p5), FIGURE(row->p99));
	html_number(out, "%s", FIGURE(row->most));
	html_number(out, "%" PRIu64 " of %" PRIu64, row->outliers, row->samples);
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

/*
 * The rows that tell most, in this order; of a name that is there twice, the next one. Returns
 * how many of them were measured.
 */
static unsigned find_telling(const struct bench_result *result,
			     const struct bench_row *found[TELLING])
{
	static const struct {
		const char *benchmark, *measure, *params, *name[TELLING];
	} all[] = {
		{ "toggle",
		  "on",
		  "?mapping=open ?cache=hot ?executors=1 ?crossing=line",
		  { "aligned", "call", "straddler", "hand-membarrier", "stop-the-world" } },
		{ "latency", "on", "?executors=1", { "call", "patch", "patch", "start", "start" } },
		{ "throughput",
		  "calls",
		  "?rate=1000000 ?executors=1",
		  { "call", "aligned", "straddler", "pointer", "flag" } },
		{ "scaling",
		  NULL,
		  "?patchers=2 ?executors=0 ?one-site=0 ?sites=100000",
		  { "call", "aligned", "straddler", "straddler", "straddler" } },
		{ "latent", NULL, "?body=none", { "nop", "call", "flag", "pointer", "direct" } },
		{ "stall",
		  NULL,
		  "?executors=1",
		  { "aligned", "call", "straddler", "hand-membarrier", "stop-the-world" } },
		{ "invoke",
		  NULL,
		  "?body=none",
		  { "aligned", "call", "flag", "pointer", "direct" } },
		{ "probes",
		  "on activate",
		  "?site=entry ?split=0 ?mapping=open",
		  { "counts", "keeps", "any", "probe", "batch" } },
	};
	unsigned count = 0, i = 0;

	for (size_t of = 0; of < sizeof(all) / sizeof(*all); of++)
		for (unsigned k = 0; k < TELLING && !strcmp(all[of].benchmark, result->benchmark);
		     k++) {
			const char *name = all[of].name[k];

			if (k && strcmp(name, all[of].name[k - 1]) != 0)
				i = 0;
			found[count] =
				bench_next(result, name, all[of].measure, all[of].params, &i);
			count += found[count] != NULL;
		}
	return count;
}

/* No more of them than a small screen is wide: all of it is told behind the figure. */
static void put_telling(FILE *out, const struct bench_row *const *found, unsigned count)
{
	char label[WORDS_ROOM];

	if (!count)
		return;
	html_table(out, NULL, "operation\t#median\t#ratio");
	for (unsigned k = 0; k < count; k++) {
		const struct bench_row *row = found[k];

		html_row(out, NULL);
		html_words(out, "%s, %s%s", words_of_row(row, NULL, label, sizeof(label)),
			   row->measure, row->peer ? " (peer)" : "");
		html_between(out, "<td class=\"n\">", "<br />", "%s", FIGURE(row->value.median));
		html_between(out, "<small>", "</small></td><td class=\"n\">", "%s", row->unit);
		if (row->against[0] && !isnan(row->ratio.median)) {
			html_between(out, "", " x<br />", "%s", FIGURE(row->ratio.median));
			html_between(out, "<small>", "</small>", "%s", row->against);
		}
		fputs("</td>", out);
	}
	html_table_end(out);
}

/* What the figure shows, and those rows, for readers that do not see it. */
static void print_label(const struct bench_row *const *found, unsigned count, const char *what,
			char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "%s.", what);
	char label[WORDS_ROOM];

	for (unsigned k = 0; k < count && length < size; k++)
		length += (size_t)snprintf(text + length, size - length, " %s: %s %s.",
					   words_of_row(found[k], NULL, label, sizeof(label)),
					   FIGURE(found[k]->value.median), found[k]->unit);
}

static void put_rows(FILE *out, const struct bench_result *result)
{
	char label[WORDS_ROOM];
	unsigned count = 0;

	for (unsigned i = 0; i < result->rows; i++)
		count += row_measured(&result->row[i]);
	if (count) {
		fprintf(out, "<details><summary>All %u rows</summary>\n", count);
		html_table(
			out,
			"Median of the medians of blocks with its bootstrap interval. Outliers lie "
			"beyond the third quartile by three times the distance of the quartiles; "
			"they "
			"are in all figures. A ratio whose interval holds 1 is no difference.",
			"operation\tmeasure\t#median [95 %]\t#5 to 99 "
			"%\t#most\t#outliers\tratio\tbesides");
		for (unsigned i = 0; i < result->rows; i++)
			if (row_measured(&result->row[i]))
				put_row(out, &result->row[i]);
		html_table_end(out);
		fputs("</details>\n", out);
	}
	if (count == result->rows)
		return;
	html_table(out, NULL, "not measured\tmeasure\twhy");
	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];

		if (row_measured(row))
			continue;
		html_row(out, "gap");
		html_cell(out, "%s", words_of_row(row, NULL, label, sizeof(label)));
		html_cell(out, "%s", row->measure);
		html_words(out, "%s", row->why[0] ? row->why : "no reason is told");
	}
	html_table_end(out);
}

static int put_benchmark(struct page *page, const struct bench_result *result, unsigned lines)
{
	const struct bench_row *found[TELLING];
	unsigned told = find_telling(result, found);
	char name[BENCH_KEY + 8], label[LABEL_MAX], why[64], *around = words_of_result(result);
	struct bench_figure of;
	FILE *out = page->out;
	int rc;

	put_telling(out, found, told);
	if (!around)
		return -ENOMEM;
	for (char *rest, *line = strtok_r(around, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		html_paragraph(out, "%s", line);
	free(around);
	if (lines > 1)
		html_paragraph(out, "This is the last of %u results of this benchmark.", lines);
	rc = bench_figure_draw(result, &of, why, sizeof(why));
	if (!rc) {
		snprintf(name, sizeof(name), "bench-%s", result->benchmark);
		print_label(found, told, of.label, label, sizeof(label));
		rc = page_figure(page, &(struct page_figure){ .name = name,
							      .script = of.picture.script,
							      .label = label,
							      .caption = of.caption,
							      .print = of.picture.print,
							      .arg = of.data,
							      .args = of.args });
	} else if (rc != -ENOMEM) {
		html_missing(out, "Nothing was measured that could be drawn.");
		rc = 0;
	}
	free(of.data);
	if (!rc)
		put_rows(out, result);
	return rc;
}

int section_benchmark(struct page *page, const char *benchmark)
{
	struct bench_results results;
	int rc = bench_results_read(page->data, &results);
	size_t i = 0;

	while (i < results.count && strcmp(results.result[i].benchmark, benchmark) != 0)
		i++;
	if (!rc && i < results.count)
		rc = put_benchmark(page, &results.result[i], results.lines[i]);
	else if (!rc)
		html_missing(page->out, "No line of this benchmark could be read.");
	bench_results_free(&results);
	return rc;
}
