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
#include "results/figures/gnuplot.h"
#include "stress/base/data_file.h"

/* What a page that may be written over has near its top. */
#define WRITTEN_BY "<meta name=\"generator\" content=\"tmax report\" />\n"
#define TOP	   512 /* bytes */

/* Either writes itself, or is that of one benchmark. */
static const struct section {
	const char *id;
	const char *title;
	int (*write)(struct page *page);
	const char *benchmark;
} sections[] = {
	{ "verdict", "Verdict", section_verdict, NULL },
	{ "rate", "Rate against wait", section_rate, NULL },
	{ "figure9", "Tears against the wait (figure 9 of the paper)", section_figure9, NULL },
	{ "gaps", "Fetch gaps", section_gaps, NULL },
	{ "tail", "Fitted tail", section_tail, NULL },
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
	{ "bench-probes", "Probes", NULL, "probes" },
	{ "machine", "The machine and its runs", section_machine, NULL },
	{ "limits", "What this page cannot say", section_limits, NULL },
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* --- The frame ----------------------------------------------------------------- */

/* Journals of benchmarks alone need no sections that say what is missing of a calibration. */
static bool is_of_benchmarks(const struct journal_data *data)
{
	return !data->count && journal_has_bench(data, NULL) && !line_last(data, "estimate") &&
	       !line_last(data, "gaps") && !line_last(data, "tail");
}

static bool is_wanted(const struct section *section, const struct journal_data *data)
{
	if (section->benchmark)
		return journal_has_bench(data, section->benchmark);
	if (section->write == section_costs)
		return journal_has_bench(data, NULL);
	return section->write == section_machine || !is_of_benchmarks(data);
}

static void put_head(struct page *page)
{
	size_t benchmarks = 0, i = 0, journals = page->report->count;
	const char *plural = journals == 1 ? "" : "s";
	bool alone = is_of_benchmarks(page->data);
	const char *what = alone ? "Patching on" : "T_max of";
	char path[PICTURE_PATH];
	FILE *out = page->out;
	int rc;

	while (line_next(page->data, "bench", &i))
		benchmarks++;
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n" WRITTEN_BY
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n<title>",
	      out);
	html_format(out, "%s %s", what, page->data->identity.brand);
	fputs("</title>\n", out);
	rc = data_file("page.css", path, sizeof(path));
	if (!rc)
		rc = html_style(out, path);
	fputs("</head>\n<body>\n<h1>", out);
	html_format(out, "%s %s", what, page->data->identity.brand);
	fputs("</h1>\n", out);
	if (rc)
		html_missing(out, "This page has no style: cannot read %s: %s.", path,
			     strerror(-rc));
	if (alone)
		html_paragraph(out,
			       "What it costs to patch code that runs, from %zu benchmark%s of "
			       "%zu journal%s, by %s. They hold no calibration, so there is no "
			       "T_max here.",
			       benchmarks, benchmarks == 1 ? "" : "s", journals, plural,
			       PACKAGE_STRING);
	else
		html_paragraph(out,
			       "How long an instruction fetch may lag behind a store to code, from "
			       "%zu cells of %zu journal%s, by %s.",
			       page->data->count, journals, plural, PACKAGE_STRING);
	if (benchmarks && !alone)
		html_paragraph(out, "And what patching costs, from %zu benchmark%s.", benchmarks,
			       benchmarks == 1 ? "" : "s");
}

static int write_file(struct report *report, const char *path)
{
	FILE *out = fopen(path, "we");
	struct page page = { .out = out, .report = report, .data = report->data };
	bool first = true;
	int rc = 0, failed;

	if (!out)
		return -errno;
	put_head(&page);
	for (size_t i = 0; i < SECTIONS && !rc; i++) {
		const struct section *s = &sections[i];

		if (!is_wanted(s, report->data))
			continue;
		fprintf(out, "<section>\n<h2 id=\"%s\">%s</h2>\n", s->id, s->title);
		rc = s->benchmark ? section_benchmark(&page, s->benchmark) : s->write(&page);
		fputs("</section>\n", out);
		/* The answer comes first, then what else there is. */
		if (first)
			fputs("<nav aria-label=\"Sections\">", out);
		for (size_t k = 0; first && k < SECTIONS; k++)
			if (is_wanted(&sections[k], report->data))
				fprintf(out, "<a href=\"#%s\">%s</a>\n", sections[k].id,
					sections[k].title);
		if (first)
			fputs("</nav>\n", out);
		first = false;
	}
	fputs("</body>\n</html>\n", out);
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
	char path[PICTURE_PATH], fresh[PICTURE_PATH];
	int rc;

	report->undrawn = 0;
	report->undrawn_why[0] = '\0';
	if (refusal)
		return picture_fail(-EINVAL, error, size, "%s", refusal);
	rc = page_path(&page, "index.html", path, sizeof(path));
	if (!rc)
		rc = page_path(&page, "index.html.new", fresh, sizeof(fresh));
	if (!rc && is_foreign(path))
		return picture_fail(-EEXIST, error, size,
				    "%s/index.html was not written by tmax report: give another "
				    "folder, or remove it",
				    report->folder);
	if (!rc) {
		rc = write_file(report, fresh);
		if (!rc && rename(fresh, path))
			rc = -errno;
		if (rc)
			unlink(fresh);
	}
	if (rc)
		picture_fail(rc, error, size, "cannot write the page in %s: %s", report->folder,
			     strerror(-rc));
	return rc;
}
