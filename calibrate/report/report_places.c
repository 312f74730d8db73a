/* SPDX-License-Identifier: MIT */
/*
 * Which placements were tested with how many executors, and which could not be.
 */
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

#define COLUMNS 16 /* numbers of executors; more than a page is wide */

struct columns {
	unsigned executors[COLUMNS];
	unsigned count;
	bool more;
};

struct sum {
	uint64_t toggles, tears;
};

static bool record_counts(const struct cell_record *r)
{
	return r->cell.protocol == PROTOCOL_WAIT && (r->result.toggles || record_tears(r));
}

/* Keeps the smallest numbers, in order. */
static void add_column(struct columns *c, unsigned executors)
{
	unsigned i = 0;

	while (i < c->count && c->executors[i] < executors)
		i++;
	if (i < c->count && c->executors[i] == executors)
		return;
	c->more |= c->count == COLUMNS;
	if (i == COLUMNS)
		return;
	if (c->count < COLUMNS)
		c->count++;
	memmove(&c->executors[i + 1], &c->executors[i],
		(c->count - 1 - i) * sizeof(c->executors[0]));
	c->executors[i] = executors;
}

static struct sum sum_of(const struct journal_data *data, enum placement p, unsigned executors)
{
	struct sum sum = { 0 };

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (!record_counts(r) || r->cell.placement != p || r->cell.executors != executors)
			continue;
		sum_add(&sum.toggles, r->result.toggles);
		sum_add(&sum.tears, record_tears(r));
	}
	return sum;
}

static bool was_measured(const struct journal_data *data, enum placement p)
{
	for (size_t i = 0; i < data->count; i++)
		if (record_counts(&data->records[i]) && data->records[i].cell.placement == p)
			return true;
	return false;
}

/* Why no run could seat it; NULL where none said so. */
static const char *gap_reason(const struct journal_data *data, enum placement p)
{
	const json_t *line, *gap;
	size_t i = 0, n;

	while ((line = line_next(data, "run", &i))) {
		json_array_foreach(json_object_get(line, "gaps"), n, gap)
		{
			if (strcmp(json_text_of(gap, "placement"), placement_name(p)) == 0)
				return json_text_of(gap, "reason");
		}
	}
	return NULL;
}

static void put_sums(struct page *page, const struct columns *c, enum placement p)
{
	FILE *out = page->out;

	for (unsigned i = 0; i < c->count; i++) {
		struct sum sum = sum_of(page->data, p, c->executors[i]);

		if (sum.toggles || sum.tears)
			html_number(out, "%s: %s tear%s", NUMBER(sum.toggles), NUMBER(sum.tears),
				    sum.tears == 1 ? "" : "s");
		else
			html_number(out, "-");
	}
}

static void put_gap(struct page *page, const struct columns *c, enum placement p)
{
	const char *reason = gap_reason(page->data, p);

	fprintf(page->out, "<td colspan=\"%u\">", c->count);
	if (reason)
		html_format(page->out, "gap: %s", reason);
	else
		html_text(page->out, "not measured, and no run says why");
	fputs("</td>", page->out);
}

static void put_placement(struct page *page, const struct columns *c, enum placement p)
{
	bool measured = was_measured(page->data, p);

	html_row(page->out, measured ? NULL : "gap");
	html_cell(page->out, "%s", placement_name(p));
	if (measured)
		put_sums(page, c, p);
	else
		put_gap(page, c, p);
}

static void put_matrix(struct page *page, const struct columns *c)
{
	const char *headings[COLUMNS + 2] = { "placement" };
	char texts[COLUMNS][32];

	for (unsigned i = 0; i < c->count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "#%u executor%s", c->executors[i],
			 c->executors[i] == 1 ? "" : "s");
		headings[1 + i] = texts[i];
	}
	html_table(
		page->out,
		"Toggles and tears of the library's own protocol, at all waits. A gap is what the "
		"machine, or the CPUs allowed, could not seat.",
		headings);
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		put_placement(page, c, (enum placement)p);
	html_table_end(page->out);
}

int section_placements(struct page *page)
{
	struct columns c = { .count = 0 };

	for (size_t i = 0; i < page->data->count; i++)
		if (record_counts(&page->data->records[i]))
			add_column(&c, page->data->records[i].cell.executors);
	if (!c.count) {
		html_missing(page->out,
			     "No cell of the library's own protocol was run, so no placement "
			     "was tested.");
		return 0;
	}
	put_matrix(page, &c);
	if (c.more)
		html_paragraph(page->out,
			       "Cells with more than %u executors are not in this table.",
			       c.executors[COLUMNS - 1]);
	return 0;
}
