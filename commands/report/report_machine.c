/* SPDX-License-Identifier: MIT */
/* What was measured, by which runs, at which placements, and what that leaves open. */
#include <errno.h>
#include <string.h>

#include "commands/report/report.h"

int section_machine(struct html_page *page)
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
		html_line(out, NULL, "tt", "%s\t%s", name, value);
	}
	html_folded_table_end(out);
	if (strcmp(data->identity.hypervisor, "none") != 0)
		html_paragraph(out, "This is a virtual machine. What is told here is true of it on "
				    "its host, and says nothing of bare metal.");
	while (line_next(data, "run", &i))
		runs++;
	html_fold(out, "%zu run%s, in the order of the journals", runs, S(runs));
	html_table(out, NULL, "started\tplan\tby");
	for (i = 0; (line = line_next(data, "run", &i));) {
		html_line(out, NULL, "ttt", "%s\t%s\t%s", json_text_of(line, "date"),
			  json_text_of(line, "plan"), json_text_of(line, "tool"));
	}
	html_folded_table_end(out);
	fputs("<p>Read from", out);
	for (i = 0; i < page->report->count; i++)
		html_between(out, i ? ", <code>" : " <code>", "</code>", "%s",
			     page->report->journals[i]);
	fputs(".</p>\n", out);
	if (data->skipped)
		html_paragraph(out, "%zu line%s could not be read, so not in here%s.",
			       data->skipped, S(data->skipped),
			       data->newer ? " (some are of a newer tmax)" : "");
	put_unread_benchmarks(page);
	/* A cell that crashes the machine leaves only its "begin" line. */
	json_object_foreach(data->begun, name, date)
		html_paragraph(out,
			       "A cell began on %s and has no result: it could not be run, or the "
			       "program or the machine ended in it (%s).",
			       json_string_value(date), name);
	return 0;
}

/* --- Placements ------------------------------------------------------------------------------- */

/* Which placements were tested with how many executors, and why no run could seat the others. */
int section_placements(struct html_page *page)
{
	struct tally sums = { 0 };
	FILE *out = page->out;
	const json_t *line;
	int rc = 0;

	for (size_t i = 0; i < page->data->count; i++) {
		const struct cell_record *r = &page->data->records[i];
		struct tally_row row = { .key = { r->cell.placement, r->cell.executors },
					 .events = cell_result_tears(&r->result),
					 .trials = r->result.toggles };

		if (r->cell.protocol == PROTOCOL_WAIT && (row.trials || row.events))
			tally_add(&sums, &row);
	}
	if (sums.failed || !sums.count) {
		rc = sums.failed ? -ENOMEM : 1;
		goto out;
	}
	html_table(
		out,
		"Toggles and tears of the library's own protocol, at all waits. In grey what the "
		"machine, or the CPUs allowed, could not seat.",
		"placement\t#executors\t#toggles\t#tears");
	for (enum placement p = 0; p < PLACEMENT_COUNT; p++) {
		const char *name = placement_name(p), *why = "not measured, and no run says why";
		const json_t *untested = NULL;
		bool measured = false;

		for (const struct tally_row *row = sums.row; row < sums.row + sums.count; row++) {
			if (row->key[0] != p)
				continue;
			measured = true;
			html_line(out, NULL, "tnnn", "%s\t%s\t%s\t%s", name, NUMBER(row->key[1]),
				  NUMBER(row->trials), NUMBER(row->events));
		}
		if (measured)
			continue;
		for (size_t i = 0; !untested && (line = line_next(page->data, "run", &i));)
			untested = json_find(json_object_get(line, "untested"), "placement", name);
		if (untested)
			why = json_text_of(untested, "reason");
		html_line(out, "absent", "t", "%s", name);
		html_between(out, "<td colspan=\"3\">", "</td>", "%s", why);
	}
	html_table_end(out);
out:
	tally_free(&sums);
	return rc;
}

/* ---------------------------------------------------------------------------------------------- */

int section_limits(struct html_page *page)
{
	const struct journal_data *data = page->data;

	if (!data->count && !line_last(data, "estimate") && !line_last(data, "gaps"))
		return 1;
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
	      "<li>Stamps of tears are late by a cache miss, because what takes them is "
	      "cold.</li>\n"
	      "<li>It is this machine, with this microcode and under this hypervisor. Another one "
	      "has another T_max.</li>\n"
	      "</ul>\n",
	      page->out);
	return 0;
}
