/* SPDX-License-Identifier: MIT */
/*
 * A benchmark on the page: its figure, all its rows, and what else was going on. And what all of
 * them say patching costs: five rows as large numbers, and the paper's table 2.
 */
#include "commands/report/report_bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_record.h"
#include "results/figures/html.h"

#define LABEL_MAX      800
#define BENCHMARKS_MAX 16

/* The last result of each benchmark, in the order in which they first came. */
struct bench_results {
	struct bench_result result[BENCHMARKS_MAX];
	unsigned lines[BENCHMARKS_MAX]; /* of each, this one included */
	size_t count;
	size_t unread; /* lines that are none, or of a benchmark too many */
};

static void results_free(struct bench_results *results)
{
	while (results->count)
		bench_result_free(&results->result[--results->count]);
}

/* 0 or -ENOMEM. */
static int results_read(const struct journal_data *data, struct bench_results *results)
{
	const json_t *line;
	size_t i = 0, at;

	memset(results, 0, sizeof(*results));
	while ((line = line_next(data, "bench", &i))) {
		struct bench_result fresh = { 0 };
		int rc = bench_from_json(line, &fresh);

		if (rc == -ENOMEM) {
			results_free(results);
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

bool journal_has_bench(const struct journal_data *data, const char *benchmark)
{
	const json_t *line;
	size_t i = 0;

	while ((line = line_next(data, "bench", &i)))
		if (!benchmark || strcmp(json_text_of(line, "benchmark"), benchmark) == 0)
			return true;
	return false;
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

/* The rows that tell most. Returns how many of them were measured. */
static unsigned find_telling(const struct benchmark *of, const struct bench_result *result,
			     const struct bench_row *found[BENCH_TELLING])
{
	unsigned count = 0, i = 0;

	for (unsigned k = 0; k < BENCH_TELLING; k++) {
		const char *name = of->telling.name[k];

		if (k && strcmp(name, of->telling.name[k - 1]) != 0)
			i = 0;
		found[count] =
			bench_next(result, name, of->telling.measure, of->telling.params, &i);
		count += found[count] != NULL;
	}
	return count;
}

/* What the figure shows, and those rows, for readers that do not see it. */
static void print_label(const struct benchmark *of, const struct bench_row *const *found,
			unsigned count, char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "%s: %s.", of->title, of->about);
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
			"they are in all figures. A ratio whose interval holds 1 is no difference.",
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
		html_row(out, "absent");
		html_cell(out, "%s", words_of_row(row, NULL, label, sizeof(label)));
		html_cell(out, "%s", row->measure);
		html_words(out, "%s", row->why[0] ? row->why : "no reason is told");
	}
	html_table_end(out);
}

#define CAPTION_MAX 1024
static const char about_rows[] =
	" Dots: medians of the blocks, with their 95 % interval by bootstrap as a thick bar; thin "
	"line: from the 5th to the 99th percentile of all samples; cross: the longest sample. "
	"Grey: the median of the baseline that was measured in turn.";

static int put_benchmark(struct page *page, const struct benchmark *benchmark,
			 const struct bench_result *result, unsigned lines)
{
	const struct bench_row *found[BENCH_TELLING];
	char name[BENCH_KEY + 8], label[LABEL_MAX], why[64], *around = words_of_result(result);
	struct bench_figure of;
	char caption[CAPTION_MAX];
	FILE *out = page->out;
	int rc;

	if (!around)
		return -ENOMEM;
	for (char *rest, *line = strtok_r(around, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		html_paragraph(out, "%s", line);
	free(around);
	if (lines > 1)
		html_paragraph(out, "This is the last of %u results of this benchmark.", lines);
	snprintf(caption, sizeof(caption), "%s%s", benchmark->caption,
		 benchmark->drawing == DRAWN_AS_ROWS ? about_rows : "");
	rc = bench_figure_draw(result, &of, why, sizeof(why));
	if (!rc) {
		snprintf(name, sizeof(name), "bench-%s", result->benchmark);
		print_label(benchmark, found, find_telling(benchmark, result, found), label,
			    sizeof(label));
		rc = page_figure(page, &(struct page_figure){ name, label, caption, of.picture });
	} else if (rc != -ENOMEM) {
		html_missing(out, "Nothing was measured that could be drawn.");
		rc = 0;
	}
	free(of.data);
	if (!rc)
		put_rows(out, result);
	return rc;
}

int section_benchmark(struct page *page, const struct benchmark *benchmark)
{
	struct bench_results results;
	int rc = results_read(page->data, &results);
	const struct bench_result *of = bench_of(results.result, results.count, benchmark->name);

	if (!rc && of)
		rc = put_benchmark(page, benchmark, of, results.lines[of - results.result]);
	else if (!rc)
		html_missing(page->out, "No line of this benchmark could be read.");
	results_free(&results);
	return rc;
}

/* --- What patching costs -------------------------------------------------------------------- */

/* Hot, with one executor, inside an open page. */
#define USUAL "?mapping=open ?cache=hot ?executors=1 ?crossing=line"
/* As in the paper's table: one core. */
#define ALONE "?mapping=open ?cache=hot executors=0 ?crossing=line"

/* The median, or this extra. */
static double figure_of(const struct bench_row *row, const char *extra)
{
	return extra ? bench_row_extra_of(row, extra) : row->value.median;
}

/* The dearest of such rows, as of several splits: no reader shall find one that cost more. */
static const struct bench_row *dearest(const struct bench_result *result, const char *name,
				       const char *measure, const char *params, const char *extra)
{
	const struct bench_row *row, *most = NULL;
	unsigned i = 0;

	while ((row = bench_next(result, name, measure, params, &i)))
		if (!most || figure_of(row, extra) > figure_of(most, extra))
			most = row;
	return most;
}

static const struct tile {
	const char *what, *benchmark, *name, *measure, *params;
	const char *over; /* NULL: the median; else this extra, the cost of the site alone */
	const char *unit;
} tiles[] = {
	{ "A call switched on", "toggle", "call", "on", USUAL " ?body=none", NULL, "a change" },
	{ "By waits", "toggle", "straddler", "on", "policy=wait " USUAL " ?body=none", NULL,
	  "a change of any bytes" },
	{ "By membarrier", "toggle", "straddler", "on", "policy=membarrier " USUAL " ?body=none",
	  NULL, "a change of any bytes" },
	{ "An executor loses", "stall", "straddler", "stall", "policy=wait " USUAL " ?body=none",
	  NULL, "by waits, in its longest pass" },
	{ "A site that is off", "latent", "call", "pass", USUAL " ?body=none", "over_empty",
	  "a pass more than without it" },
};

static void put_answer(FILE *out, const struct bench_results *all)
{
	fputs("<dl class=\"tiles\">\n", out);
	for (const struct tile *t = tiles; t < tiles + sizeof(tiles) / sizeof(tiles[0]); t++) {
		const struct bench_row *most =
			dearest(bench_of(all->result, all->count, t->benchmark), t->name,
				t->measure, t->params, t->over);

		if (!most)
			html_tile(out, t->what, "?", "", "not measured");
		else if (t->over || !most->against[0] || isnan(most->ratio.median))
			html_tile(out, t->what, FIGURE(figure_of(most, t->over)), most->unit, "%s",
				  t->unit);
		else
			html_tile(out, t->what, FIGURE(most->value.median), most->unit,
				  "%s, %s x %s", t->unit, FIGURE(most->ratio.median),
				  most->against);
	}
	fputs("</dl>\n", out);
}

/* A line of the paper's table 2, and our rows for the same. */
static const struct method {
	const char *there;
	const char *on, *off, *invocation; /* the paper's */
	const char *here;
	const char *name, *policy;	/* of benchmark toggle */
	const char *call, *call_params; /* of benchmark invoke */
} methods[] = {
	{ "fastinst, no straddler", "300", "120", "35", "pc_patch inside the window", "aligned", "",
	  "aligned", "" },
	{ "fastinst, straddlers", "8850", "8435", "35", "pc_patch, policy wait", "straddler",
	  "policy=wait ", NULL, NULL },
	{ "fastinst, callpatch", "432", "315", "35", "pc_activate_call, pc_deactivate_call", "call",
	  "", "call", "?target=original" },
	{ "JVM VolatileCallSite", "995", "", "55", "the same, OpenJDK", "jvm-volatile", "", NULL,
	  NULL },
	{ "Dyninst", "1.93e6", "9.95e5", "320", "stopped by ptrace, as Dyninst does", "ptrace", "",
	  NULL, NULL },
	{ "DTrace", "~70771", "", "1176", "a Linux uprobe", "uprobe", "", "uprobe", "" },
};

/* What on or off costs: alone, or hot and then beside the floor. */
static void put_change(FILE *out, const struct bench_result *toggle, const struct method *m,
		       const char *measure, bool hot)
{
	const struct bench_row *row;
	char all[128];

	snprintf(all, sizeof(all), "%s%s", m->policy, hot ? USUAL : ALONE);
	row = dearest(toggle, m->name, measure, all, NULL);
	html_number(out, "%s", row ? INTERVAL(row->value) : "not measured");
	if (hot)
		html_number(out, "%s", row ? INTERVAL(row->ratio) : "");
}

static void put_table2(FILE *out, const struct bench_results *all)
{
	html_fold(out, "The paper's table 2, and the same here");
	html_table(
		out,
		"The paper's table 2, in its ticks, and the same here, in this machine's: medians "
		"with 95 % intervals, of several splits the dearest. Alone: no executor runs the "
		"site, as in the paper, which had one core. Hot: an executor does. Ticks of two "
		"machines do not compare. The floor is one locked 8-byte exchange on the same line "
		"in turn, which any protocol must pay. Invocation is what the call adds to its "
		"loop: the more of a loop of nothing else and of one with work to do beside it, so "
		"not what a program loses that waits for the call.",
		"the paper\t#on\t#off\t#invocation\there\t#on, alone\t#off, alone\t#on, hot\t#x "
		"floor\t#off, hot\t#x floor\t#invocation");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const struct method *m = &methods[i];
		const struct bench_result *probes, *toggle, *invoke;
		const struct bench_row *call = NULL;
		double over;

		/* A probe of the kernel: under the two others in older journals. */
		probes = m->call && strcmp(m->call, "uprobe") == 0
				 ? bench_of(all->result, all->count, "probes")
				 : NULL;
		toggle = probes ? probes : bench_of(all->result, all->count, "toggle");
		invoke = probes ? probes : bench_of(all->result, all->count, "invoke");

		html_row(out, NULL);
		html_cells(out, "tnnnt", "%s\t%s\t%s\t%s\t%s", m->there, m->on, m->off,
			   m->invocation, m->here);
		for (int hot = 0; hot < 2; hot++) {
			put_change(out, toggle, m, probes ? "activate" : "on", hot);
			put_change(out, toggle, m, probes ? "deactivate" : "off", hot);
		}
		/*
		 * A call alone, without the loop around it: of the row that adds most to its loop,
		 * since a loop of nothing else hides a call that runs beside it.
		 */
		if (m->call)
			call = dearest(invoke, m->call, probes ? "on" : "call", m->call_params,
				       "over_empty");
		over = call ? bench_row_extra_of(call, "over_empty") : NAN;
		if (!call)
			html_number(out, "%s", "not measured");
		else if (isfinite(over))
			html_number(out, "%s", FIGURE(over));
		else
			html_number(out, "%s with its loop", FIGURE(call->value.median));
	}
	html_table_end(out);
	html_fold_end(out);
}

int section_costs(struct page *page)
{
	struct bench_results all;
	int rc = results_read(page->data, &all);

	if (rc)
		return rc;
	put_answer(page->out, &all);
	if (all.unread)
		html_paragraph(page->out,
			       "%zu line%s of benchmarks could not be read and %s not in here.",
			       all.unread, S(all.unread), all.unread == 1 ? "is" : "are");
	put_table2(page->out, &all);
	html_paragraph(
		page->out,
		"What is missing is not in the page because it was not measured, not because "
		"it costs nothing. Runs on a virtual machine are true of it on its host.");
	results_free(&all);
	return 0;
}
