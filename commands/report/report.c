/* SPDX-License-Identifier: MIT */
/* The frame of the report, and the order of its sections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands/report/report.h"

/* Either writes itself, or is that of one benchmark. */
struct report_section {
	const char *id;
	const char *title;
	int (*write)(struct html_page *page);
	const struct benchmark *benchmark;
};

static const struct report_section sections[] = {
	{ "verdict", "Tears against the wait", section_verdict, NULL },
	{ "figure9", "Figure 9 of the paper", section_figure9, NULL },
	{ "gaps", "Fetch gaps", section_gaps, NULL },
	{ "placements", "Placements", section_placements, NULL },
	{ "protocols", "Protocols on trial", section_protocols, NULL },
	{ "cells", "Cells with tears", section_cells, NULL },
	{ "bench-", NULL, NULL, NULL }, /* all benchmarks */
	{ "machine", "The machine and its runs", section_machine, NULL },
	{ "limits", "What this page cannot say", section_limits, NULL },
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))
#define ID_MAX	 (sizeof("bench-") + BENCH_KEY)

static bool is_of_benchmarks(const struct journal_data *data)
{
	return !data->count && line_last(data, "bench") && !line_last(data, "estimate") &&
	       !line_last(data, "gaps");
}

/* With one for each benchmark, up to one without a title. */
static void list_sections(struct report_section list[SECTIONS + BENCHMARK_COUNT + 1])
{
	for (const struct report_section *s = sections; s < sections + SECTIONS; s++) {
		if (s->write)
			*list++ = *s;
		for (unsigned i = 0; !s->write && benchmarks[i]; i++)
			*list++ = (struct report_section){ s->id, benchmarks[i]->title, NULL,
							   benchmarks[i] };
	}
	list->title = NULL;
}

static const char *id_of(const struct report_section *section, char id[ID_MAX])
{
	snprintf(id, ID_MAX, "%s%s", section->id,
		 section->benchmark ? section->benchmark->name : "");
	return id;
}

/* In memory: what has nothing to tell does not appear. *text is the caller's. 0, 1 or -errno. */
static int write_section(struct html_page *page, const struct report_section *s, char **text)
{
	FILE *out = page->out;
	size_t size;
	int rc = -ENOMEM;

	page->out = open_memstream(text, &size);
	if (page->out) {
		rc = s->benchmark ? section_benchmark(page, s->benchmark) : s->write(page);
		if (fclose(page->out) && rc >= 0)
			rc = -ENOMEM;
	}
	page->out = out;
	return rc;
}

static int write_page(struct html_page *page)
{
	const struct journal_data *data = page->data;
	size_t lines = 0, n = 0, journals = page->report->count;
	bool alone = is_of_benchmarks(data);
	struct report_section list[SECTIONS + BENCHMARK_COUNT + 1], *s, *end = list;
	char *texts[SECTIONS + BENCHMARK_COUNT] = { NULL };
	char title[256], id[ID_MAX];
	FILE *out;
	int rc;

	list_sections(list);
	snprintf(title, sizeof(title), "%s %s", alone ? "Patching on" : "T_max of",
		 data->identity.brand);
	rc = page_begin(page, "index.html", title);
	if (rc)
		return rc;
	out = page->out;
	while (line_next(data, "bench", &n))
		lines++;
	html_paragraph(
		out, "%s, from %zu cell%s and %zu benchmark%s of %zu journal%s, by %s.%s",
		alone	? "What it costs to patch code that runs"
		: lines ? "T_max, the longest time by which an instruction fetch may lag behind a "
			  "store, and what patching costs"
			: "T_max, the longest time by which an instruction fetch may lag behind a "
			  "store",
		data->count, S(data->count), lines, S(lines), journals, S(journals), PACKAGE_STRING,
		alone ? " They hold no calibration, so there is no T_max here."
		: line_last(data, "estimate")
			? ""
			: " No calibration of it has ended, so there is no verdict.");
	for (s = list; s->title && rc >= 0; s++) {
		char *text = NULL;

		page->folds = s->benchmark && end != list;
		rc = write_section(page, s, &text);
		if (rc) {
			free(text);
			continue;
		}
		*end = *s;
		texts[end++ - list] = text;
	}
	for (s = list; s < end; s++) {
		fprintf(out, "<section>\n<h2 id=\"%s\">%s</h2>\n%s</section>\n", id_of(s, id),
			s->title, texts[s - list]);
		free(texts[s - list]);
		if (s != list)
			continue;
		/* The answer comes first, then what else there is. */
		fputs("<nav aria-label=\"Sections\">", out);
		for (const struct report_section *k = list; k < end; k++)
			fprintf(out, "<a href=\"#%s\">%s</a>\n", id_of(k, id), k->title);
		fputs("</nav>\n", out);
	}
	return page_end(page, rc < 0 ? rc : 0);
}

int report_write(struct report *report, char *error, size_t size)
{
	struct html_page page = { .report = report, .data = report->data };
	const char *folder = report->folder;
	struct stat st;
	int rc;

	report->undrawn = 0;
	report->undrawn_why[0] = '\0';
	if (!page.data->have_identity)
		return picture_fail(
			-EINVAL, error, size,
			"the journals name no machine; of a database see tmax fleet report");
	if (page.data->mixed)
		return picture_fail(-EINVAL, error, size, "the journals hold different machines");
	if (mkdir(folder, 0777) < 0 &&
	    (errno != EEXIST || stat(folder, &st) < 0 || !S_ISDIR(st.st_mode)))
		return picture_fail(-EEXIST, error, size, "cannot make %s: %s", folder,
				    errno == EEXIST ? "there is a file of that name"
						    : strerror(errno));
	rc = write_page(&page);
	if (rc == -EEXIST)
		return picture_fail(rc, error, size,
				    "%s/index.html was not written by tmax report: give another "
				    "folder, or remove it",
				    folder);
	if (rc)
		picture_fail(rc, error, size, "cannot write the page in %s: %s", folder,
			     strerror(-rc));
	return rc;
}
