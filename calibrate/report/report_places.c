/* SPDX-License-Identifier: MIT */
/*
 * Which placements were tested with how many executors, and which could not be.
 */
#include <errno.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

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

/* @sums: by placement and executors. @columns: the numbers of executors. */
static void put_placement(struct page *page, const struct tally *sums, const struct tally *columns,
			  size_t count, enum placement p)
{
	bool measured = false;
	FILE *out = page->out;

	for (size_t i = 0; i < sums->count; i++)
		measured |= sums->row[i].key[0] == (uint64_t)p;
	html_row(out, measured ? NULL : "gap");
	html_cell(out, "%s", placement_name(p));
	if (!measured) {
		fprintf(out, "<td colspan=\"%zu\">", count);
		html_format(out, "%s", why_untested(page->data, p));
		fputs("</td>", out);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const uint64_t key[TALLY_KEYS] = { p, columns->row[i].key[0] };
		const struct tally_row *sum = tally_find(sums, key);

		if (sum)
			html_number(out, "%s: %s tear%s", NUMBER(sum->trials), NUMBER(sum->events),
				    sum->events == 1 ? "" : "s");
		else
			html_number(out, "-");
	}
}

static void put_matrix(struct page *page, const struct tally *sums, const struct tally *columns)
{
	size_t count = columns->count < COLUMNS ? columns->count : COLUMNS;
	const char *headings[COLUMNS + 2] = { "placement" };
	char texts[COLUMNS][40];
	FILE *out = page->out;

	if (!count) {
		html_missing(out, "No cell of the library's own protocol was run, so no placement "
				  "was tested.");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "#%s executor%s",
			 NUMBER(columns->row[i].key[0]), columns->row[i].key[0] == 1 ? "" : "s");
		headings[1 + i] = texts[i];
	}
	html_table(
		out,
		"Toggles and tears of the library's own protocol, at all waits. In grey what the "
		"machine, or the CPUs allowed, could not seat.",
		headings);
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		put_placement(page, sums, columns, count, (enum placement)p);
	html_table_end(out);
	if (columns->count > COLUMNS)
		html_paragraph(out, "Cells with more than %s executors are not in this table.",
			       NUMBER(columns->row[COLUMNS - 1].key[0]));
}

int section_placements(struct page *page)
{
	struct tally sums = { 0 }, columns = { 0 };
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
	if (!failed)
		put_matrix(page, &sums, &columns);
	tally_free(&sums);
	tally_free(&columns);
	return failed ? -ENOMEM : 0;
}
