/* SPDX-License-Identifier: MIT */
/*
 * The frame of the report, and the order of its sections.
 */
#include "calibrate/report/report.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "bench/page/report_bench.h"
#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"
#include "results/figures/gnuplot.h"

/* What a page that may be written over has near its top. */
#define WRITTEN_BY "<meta name=\"generator\" content=\"tmax report\" />\n"
#define TOP	   512 /* bytes */

static const char style[] =
	":root{color-scheme:light}"
	"*{box-sizing:border-box}"
	"body{margin:0 auto;max-width:62rem;padding:0 1rem 3rem;background:#fff;color:#1b1b1b;"
	"font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
	"h1{font-size:1.6rem;line-height:1.25;margin:1.5rem 0 .25rem}"
	"h2{font-size:1.2rem;margin:2.5rem 0 .5rem;padding-top:.5rem;border-top:1px solid #d4d4d4}"
	"h3{font-size:1rem;margin:1.5rem 0 .25rem}"
	"p{margin:.5rem 0;max-width:46rem}"
	"nav a{display:inline-block;margin:.1rem .9rem .1rem 0}"
	"a{color:#0b5394}"
	".verdict{border-left:.4rem solid #8a6d00;background:#fff8e1;padding:.6rem "
	"1rem;margin:1rem 0}"
	".verdict.pass{border-color:#1b7837;background:#eef7ee}"
	".verdict.fail{border-color:#b2182b;background:#fdeeee}"
	".verdict p:first-child{font-size:1.1rem}"
	".missing{color:#5a5a5a;font-style:italic}"
	".scroll{overflow-x:auto;margin:.75rem 0}"
	"table{border-collapse:collapse;font-size:.875rem;line-height:1.35}"
	".about{color:#5a5a5a;font-size:.875rem;margin:1.25rem 0 -.5rem}"
	"th,td{padding:.25rem .7rem .25rem 0;text-align:left;vertical-align:top;"
	"border-bottom:1px solid #e4e4e4}"
	"th{white-space:nowrap;vertical-align:bottom}"
	"td{white-space:nowrap}td.w{white-space:normal;min-width:14rem}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
	"tr.bad td{background:#fdeeee}"
	"tr.gap td{color:#5a5a5a}"
	"figure{margin:1rem 0}"
	"figure svg{display:block;max-width:100%;height:auto}"
	"figcaption{color:#5a5a5a;font-size:.875rem;max-width:46rem}"
	"code{font:.8125rem/1.4 ui-monospace,monospace}"
	"pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.6rem "
	".8rem;margin:.5rem 0}"
	"summary{cursor:pointer;padding:.25rem 0}"
	"@media print{.scroll{overflow:visible}td code{white-space:normal}}";

/* Either writes itself, or is that of one benchmark. */
static const struct section {
	const char *id;
	const char *title;
	int (*write)(struct page *page);
	const char *benchmark;
} sections[] = {
	{ "verdict", "Verdict", section_verdict, NULL },
	{ "machine", "The machine", section_machine, NULL },
	{ "figure9", "Tears against the wait (figure 9 of the paper)", section_figure9, NULL },
	{ "rate", "Rate against wait", section_rate, NULL },
	{ "tail", "Fitted tail", section_tail, NULL },
	{ "gaps", "Fetch gaps", section_gaps, NULL },
	{ "provokers", "Provokers", section_provokers, NULL },
	{ "placements", "Placements", section_placements, NULL },
	{ "noise", "Witnesses over time", section_noise, NULL },
	{ "events", "Tears one by one", section_events, NULL },
	{ "cells", "Cells with tears", section_cells, NULL },
	{ "patching-costs", "What patching costs", section_costs, NULL },
	{ "bench-toggle", "Cost of one change", NULL, "toggle" },
	{ "bench-latency", "Many sites (figure 10 of the paper)", NULL, "latency" },
	{ "bench-throughput", "Calls while toggling (figures 11 to 13)", NULL, "throughput" },
	{ "bench-scaling", "Scaling", NULL, "scaling" },
	{ "bench-latent", "A site that is switched off", NULL, "latent" },
	{ "bench-stall", "What an executor loses", NULL, "stall" },
	{ "bench-invoke", "The call of an active site", NULL, "invoke" },
	{ "limits", "What this page cannot say", section_limits, NULL },
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* --- The frame ----------------------------------------------------------------- */

/* Journals of benchmarks alone need no sections that say what is missing of a calibration. */
static bool is_of_benchmarks(const struct journal_data *data)
{
	static const char *const types[] = { "estimate", "gaps", "tail" };

	if (data->count || !journal_has_bench(data, NULL))
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (line_last(data, types[i]))
			return false;
	return true;
}

static bool is_wanted(const struct section *section, const struct journal_data *data)
{
	if (section->benchmark)
		return journal_has_bench(data, section->benchmark);
	if (section->write == section_costs)
		return journal_has_bench(data, NULL);
	return section->write == section_machine || !is_of_benchmarks(data);
}

static int write_section(const struct section *section, struct page *page)
{
	return section->benchmark ? section_benchmark(page, section->benchmark)
				  : section->write(page);
}

static size_t count_benchmarks(const struct journal_data *data)
{
	size_t i = 0, count = 0;

	while (line_next(data, "bench", &i))
		count++;
	return count;
}

static void put_summary(struct page *page)
{
	size_t benchmarks = count_benchmarks(page->data), journals = page->report->count;
	const char *plural = journals == 1 ? "" : "s";

	if (is_of_benchmarks(page->data)) {
		html_paragraph(page->out,
			       "What it costs to patch code that runs, from %zu benchmark%s of "
			       "%zu journal%s, by %s. They hold no calibration, so there is no "
			       "T_max here.",
			       benchmarks, benchmarks == 1 ? "" : "s", journals, plural,
			       PACKAGE_STRING);
		return;
	}
	html_paragraph(page->out,
		       "How long an instruction fetch may lag behind a store to code, from "
		       "%zu cells of %zu journal%s, by %s.",
		       page->data->count, journals, plural, PACKAGE_STRING);
	if (benchmarks)
		html_paragraph(page->out, "And what patching costs, from %zu benchmark%s.",
			       benchmarks, benchmarks == 1 ? "" : "s");
}

static void put_head(struct page *page)
{
	const char *what = is_of_benchmarks(page->data) ? "Patching on" : "T_max of";
	FILE *out = page->out;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n" WRITTEN_BY
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n<title>",
	      out);
	html_format(out, "%s %s", what, page->data->identity.brand);
	fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
	html_format(out, "%s %s", what, page->data->identity.brand);
	fputs("</h1>\n", out);
	put_summary(page);
	fputs("<nav aria-label=\"Sections\">", out);
	for (size_t i = 0; i < SECTIONS; i++)
		if (is_wanted(&sections[i], page->data))
			fprintf(out, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].title);
	fputs("</nav>\n", out);
}

static int put_sections(struct page *page)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		int rc;

		if (!is_wanted(&sections[i], page->data))
			continue;
		fprintf(page->out, "<section>\n<h2 id=\"%s\">%s</h2>\n", sections[i].id,
			sections[i].title);
		rc = write_section(&sections[i], page);
		if (rc)
			return rc;
		fputs("</section>\n", page->out);
	}
	return 0;
}

static int put_page(struct report *report, FILE *out)
{
	struct page page = { .out = out, .report = report, .data = report->data };
	int rc;

	put_head(&page);
	rc = put_sections(&page);
	fputs("</body>\n</html>\n", out);
	return rc;
}

static int write_file(struct report *report, const char *path)
{
	FILE *out = fopen(path, "we");
	int rc, failed;

	if (!out)
		return -errno;
	rc = put_page(report, out);
	failed = ferror(out);
	if (fclose(out) && !rc)
		rc = -errno;
	return rc || !failed ? rc : -EIO;
}

/* Is there a page that this program did not write? */
static bool is_foreign(const char *path)
{
	FILE *page = fopen(path, "re");
	char top[TOP] = "";

	if (!page)
		return errno != ENOENT;
	(void)!fread(top, 1, sizeof(top) - 1, page);
	fclose(page);
	return !strstr(top, WRITTEN_BY);
}

static int replace(struct report *report, const struct page *page)
{
	char path[PICTURE_PATH], fresh[PICTURE_PATH];
	int rc;

	if (page_path(page, "index.html", path, sizeof(path)) ||
	    page_path(page, "index.html.new", fresh, sizeof(fresh)))
		return -ENAMETOOLONG;
	if (is_foreign(path))
		return -EEXIST;
	rc = write_file(report, fresh);
	if (!rc && rename(fresh, path))
		rc = -errno;
	if (rc)
		unlink(fresh);
	return rc;
}

const char *report_refusal(const struct journal_data *data)
{
	if (!data->have_identity)
		return "the journals name no machine";
	return data->mixed ? "the journals hold different machines" : NULL;
}

int report_write(struct report *report, char *error, size_t size)
{
	const struct page page = { .report = report, .data = report->data };
	const char *refusal = report_refusal(report->data);
	int rc;

	report->undrawn = 0;
	report->undrawn_why[0] = '\0';
	if (refusal) {
		snprintf(error, size, "%s", refusal);
		return -EINVAL;
	}
	rc = replace(report, &page);
	if (rc == -EEXIST)
		snprintf(error, size,
			 "%s/index.html was not written by tmax report: give another folder, or "
			 "remove it",
			 report->folder);
	else if (rc)
		snprintf(error, size, "cannot write the page in %s: %s", report->folder,
			 strerror(-rc));
	return rc;
}
