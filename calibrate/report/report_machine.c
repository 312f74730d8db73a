/* SPDX-License-Identifier: MIT */
/*
 * What was measured, by which runs, and what that leaves open.
 */
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/report.h"

int section_machine(struct page *page)
{
	const struct journal_data *data = page->data;
	size_t i = 0, runs = 0;
	FILE *out = page->out;
	const char *name;
	const json_t *line;
	json_t *date;
	char value[256];

	html_fold(out, "Identity");
	html_table(out, NULL, "field\tvalue");
	for (unsigned n = 0; identity_field(&data->identity, n, &name, value, sizeof(value)); n++) {
		html_row(out, NULL);
		html_cells(out, "tt", "%s\t%s", name, value);
	}
	html_table_end(out);
	html_fold_end(out);
	if (strcmp(data->identity.hypervisor, "none") != 0)
		html_paragraph(out, "This is a virtual machine. What is told here is true of it on "
				    "its host, and says nothing of bare metal.");
	while (line_next(data, "run", &i))
		runs++;
	html_fold(out, "%zu run%s, in the order of the journals", runs, runs == 1 ? "" : "s");
	html_table(out, NULL, "started\tplan\tby");
	for (i = 0; (line = line_next(data, "run", &i));) {
		html_row(out, NULL);
		html_cells(out, "ttt", "%s\t%s\t%s", json_text_of(line, "date"),
			   json_text_of(line, "plan"), json_text_of(line, "tool"));
	}
	html_table_end(out);
	html_fold_end(out);
	fputs("<p>Read from", out);
	for (i = 0; i < page->report->count; i++)
		html_between(out, i ? ", <code>" : " <code>", "</code>", "%s",
			     page->report->journals[i]);
	fputs(".</p>\n", out);
	if (data->skipped)
		html_paragraph(out, "%zu line%s could not be read, so not in here%s.",
			       data->skipped, data->skipped == 1 ? "" : "s",
			       data->newer ? " (some are of a newer tmax)" : "");
	/* A cell that crashes the machine leaves only its "begin" line. */
	json_object_foreach(data->begun, name, date)
		html_paragraph(out,
			       "A cell began on %s and has no result: it could not be run, or the "
			       "program or the machine ended in it (%s).",
			       json_string_value(date), name);
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
