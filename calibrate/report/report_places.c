/* SPDX-License-Identifier: MIT */
/*
 * Which placements were tested with how many executors, and which could not be.
 */
#include <errno.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/report.h"

#define COLUMNS 16 /* numbers of executors; more than a page is wide */

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
	struct tally sums = { 0 }, columns = { 0 };
	FILE *out = page->out;
	char headings[COLUMNS * 32] = "placement";
	size_t count, length = strlen(headings);
	bool failed;

	for (size_t i = 0; i < page->data->count; i++) {
		const struct cell_record *r = &page->data->records[i];
		struct tally_row row = { .key = { r->cell.placement, r->cell.executors },
					 .events = record_tears(r),
					 .trials = r->result.toggles };

		if (r->cell.protocol != PROTOCOL_WAIT || (!row.trials && !row.events))
			continue;
		tally_add(&sums, &row);
		tally_add(&columns, &(struct tally_row){ .key = { r->cell.executors } });
	}
	failed = sums.failed || columns.failed;
	count = failed ? 0 : columns.count < COLUMNS ? columns.count : COLUMNS;
	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(headings + length, sizeof(headings) - length,
					   "\t#%s executor%s", NUMBER(columns.row[i].key[0]),
					   columns.row[i].key[0] == 1 ? "" : "s");
	if (count)
		html_table(out,
			   "Toggles and tears of the library's own protocol, at all waits. In grey "
			   "what the machine, or the CPUs allowed, could not seat.",
			   headings);
	else if (!failed)
		html_missing(out, "No cell of the library's own protocol was run, so no placement "
				  "was tested.");
	for (uint64_t p = 0; count && p < PLACEMENT_COUNT; p++) {
		bool measured = false;

		for (size_t i = 0; i < sums.count; i++)
			measured |= sums.row[i].key[0] == p;
		html_row(out, measured ? NULL : "gap");
		html_cell(out, "%s", placement_name((enum placement)p));
		if (!measured) {
			fprintf(out, "<td colspan=\"%zu\">", count);
			html_between(out, "", "</td>", "%s",
				     why_untested(page->data, (enum placement)p));
		}
		for (size_t i = 0; measured && i < count; i++) {
			const uint64_t key[TALLY_KEYS] = { p, columns.row[i].key[0] };
			const struct tally_row *sum = tally_find(&sums, key);

			if (sum)
				html_number(out, "%s: %s tear%s", NUMBER(sum->trials),
					    NUMBER(sum->events), sum->events == 1 ? "" : "s");
			else
				html_number(out, "-");
		}
	}
	if (count)
		html_table_end(out);
	if (columns.count > count && count)
		html_paragraph(out, "Cells with more than %s executors are not in this table.",
			       NUMBER(columns.row[COLUMNS - 1].key[0]));
	tally_free(&sums);
	tally_free(&columns);
	return failed ? -ENOMEM : 0;
}
