/* SPDX-License-Identifier: MIT */
/*
 * Which placements were tested with how many executors, and which could not be.
 */
#include <errno.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/report.h"

/* Why no run could seat it. */
static const char *why_untested(const struct journal_data *data, enum placement p)
{
	const json_t *line, *untested;
	size_t i = 0;

	while ((line = line_next(data, "run", &i))) {
		untested = json_find(json_object_get(line, "gaps"), "placement", placement_name(p));
		if (untested)
			return json_text_of(untested, "reason");
	}
	return "not measured, and no run says why";
}

int section_placements(struct page *page)
{
	struct tally sums = { 0 };
	FILE *out = page->out;
	bool failed;

	for (size_t i = 0; i < page->data->count; i++) {
		const struct cell_record *r = &page->data->records[i];
		struct tally_row row = { .key = { r->cell.placement, r->cell.executors },
					 .events = record_tears(r),
					 .trials = r->result.toggles };

		if (r->cell.protocol == PROTOCOL_WAIT && (row.trials || row.events))
			tally_add(&sums, &row);
	}
	failed = sums.failed;
	if (!failed && !sums.count)
		html_missing(out, "No cell of the library's own protocol was run, so no placement "
				  "was tested.");
	if (failed || !sums.count) {
		tally_free(&sums);
		return failed ? -ENOMEM : 0;
	}
	html_table(
		out,
		"Toggles and tears of the library's own protocol, at all waits. In grey what the "
		"machine, or the CPUs allowed, could not seat.",
		"placement\t#executors\t#toggles\t#tears");
	for (uint64_t p = 0; p < PLACEMENT_COUNT; p++) {
		bool measured = false;

		for (const struct tally_row *row = sums.row; row < sums.row + sums.count; row++) {
			if (row->key[0] != p)
				continue;
			measured = true;
			html_row(out, NULL);
			html_cells(out, "tnnn", "%s\t%s\t%s\t%s", placement_name((enum placement)p),
				   NUMBER(row->key[1]), NUMBER(row->trials), NUMBER(row->events));
		}
		if (measured)
			continue;
		html_row(out, "gap");
		html_cell(out, "%s", placement_name((enum placement)p));
		html_between(out, "<td colspan=\"3\">", "</td>", "%s",
			     why_untested(page->data, (enum placement)p));
	}
	html_table_end(out);
	tally_free(&sums);
	return 0;
}
