/* SPDX-License-Identifier: MIT */
/*
 * What was measured, by which runs, and what that leaves open.
 */
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

static void put_identity(struct page *page)
{
	static const char *const headings[] = { "field", "value", NULL };
	char value[256];
	const char *name;

	html_fold(page->out, "Identity");
	html_table(page->out, NULL, headings);
	for (unsigned i = 0; identity_field(&page->data->identity, i, &name, value, sizeof(value));
	     i++) {
		html_row(page->out, NULL);
		html_cells(page->out, "tt", "%s\t%s", name, value);
	}
	html_table_end(page->out);
	html_fold_end(page->out);
}

static void put_runs(struct page *page)
{
	static const char *const headings[] = { "started", "plan", "by", NULL };
	const json_t *line;
	size_t i = 0, runs = 0;

	while (line_next(page->data, "run", &i))
		runs++;
	html_fold(page->out, "%zu run%s, in the order of the journals", runs, runs == 1 ? "" : "s");
	html_table(page->out, NULL, headings);
	for (i = 0; (line = line_next(page->data, "run", &i));) {
		html_row(page->out, NULL);
		html_cells(page->out, "ttt", "%s\t%s\t%s", json_text_of(line, "date"),
			   json_text_of(line, "plan"), json_text_of(line, "tool"));
	}
	html_table_end(page->out);
	html_fold_end(page->out);
}

static void put_journals(struct page *page)
{
	json_t *begun = page->data->begun, *date;
	FILE *out = page->out;
	const char *key;

	fputs("<p>Read from", out);
	for (size_t i = 0; i < page->report->count; i++)
		html_between(out, i ? ", <code>" : " <code>", "</code>", "%s",
			     page->report->journals[i]);
	fputs(".</p>\n", out);
	if (page->data->skipped)
		html_paragraph(out, "%zu line%s could not be read, so not in here%s.",
			       page->data->skipped, page->data->skipped == 1 ? "" : "s",
			       page->data->newer ? " (some are of a newer tmax)" : "");
	/* A cell that crashes the machine leaves only its "begin" line. */
	json_object_foreach(begun, key, date)
		html_paragraph(out,
			       "A cell began on %s and has no result: it could not be run, or the "
			       "program or the machine ended in it (%s).",
			       json_string_value(date), key);
}

int section_machine(struct page *page)
{
	put_identity(page);
	if (strcmp(page->data->identity.hypervisor, "none") != 0)
		html_paragraph(
			page->out,
			"This is a virtual machine. What is told here is true of it on its host, "
			"and says nothing of bare metal.");
	put_runs(page);
	put_journals(page);
	return 0;
}

int section_limits(struct page *page)
{
	fputs("<ul>\n"
	      "<li>A bound is not zero. No tear in N toggles leaves room for one in about N/3, at "
	      "95 % confidence.</li>\n"
	      "<li>The bounds take toggles for independent trials. Tears that come in bursts, or "
	      "under a load that the run never had, are not covered.</li>\n"
	      "<li>Placements that no run could seat, and loads that no provoker stands for, were "
	      "not tested. Either may be worse than all that was.</li>\n"
	      "<li>Cells that stop at a tear make their rate look higher than it is; they are in "
	      "the figures as they ended. Noisy cells are in there too, because a tear in noise is "
	      "a tear.</li>\n"
	      "<li>A fetch gap says how far two fetches came apart, not that a toggle of the "
	      "library would have torn: the library's INT3 is not in that experiment.</li>\n"
	      "<li>A fitted tail describes causes that were sampled. A cause too rare to be in the "
	      "sample is in no fit, and only the count of toggles bounds it.</li>\n"
	      "<li>Stamps of tears are late by a cache miss, because what takes them is "
	      "cold.</li>\n"
	      "<li>It is this machine, with this microcode and under this hypervisor. Another one "
	      "has another T_max.</li>\n"
	      "</ul>\n",
	      page->out);
	return 0;
}
