/* SPDX-License-Identifier: MIT */
/* Protocols on trial: tears against what a change costs, and where each claims to hold. */
#include <math.h>

#include "calibrate/statistics/protocol_rows.h"
#include "commands/report/report.h"

#define COMMAND_MAX 1024

struct protocols_data {
	const struct html_page *page;
	struct protocol_rows rows;
};

/* Is there something to draw of it? */
static bool is_point(const struct protocol_row *r)
{
	return !isnan(protocol_row_p(r)) && !isnan(r->ticks);
}

static void print_points(FILE *out, const void *arg)
{
	const struct protocols_data *d = arg;

	fputs("# protocol us p torn frontier; p is a bound where none tore\n", out);
	for (const struct protocol_row *r = d->rows.row; r < d->rows.row + d->rows.count; r++)
		if (is_point(r))
			fprintf(out, "%s %.9g %.9g %d %d\n", protocol_name(r->protocol),
				ticks_us(d->page, r->ticks), protocol_row_p(r),
				protocol_row_main(r)->verdict == STEPS_TEAR, r->frontier);
}

static void put_protocol(const struct html_page *page, const struct protocol_row *row)
{
	const struct protocol_part *own = &row->part[PART_CLAIMED],
				   *outside = &row->part[PART_OUTSIDE],
				   *told = own->witness ? own : outside;
	const struct protocol_file *file;
	char command[COMMAND_MAX] = "", why[WORDS_WHY];
	double loss = protocol_row_loss(row);

	html_line(page->out, NULL, "tntnntntnn", "%s\t%u\t%s\t%s\t%s\t%u\t%s\t%s\t%s\t%s",
		  protocol_name(row->protocol), own->sites,
		  own->sites ? steps_verdict_name(own->verdict) : "claims nothing", NUMBER(own->p),
		  NUMBER(own->upper_p), outside->sites,
		  outside->sites ? steps_verdict_name(outside->verdict) : "", NUMBER(outside->p),
		  NUMBER(ticks_us(page, row->ticks)), NUMBER(100 * loss));
	html_cell(page->out, "%s",
		  protocol_file(row->protocol, &file, why) < 0 ? "" : file->source);
	if (told->witness)
		cell_command(&told->witness->cell, command, sizeof(command));
	html_code(page->out, "%s", command);
}

int section_protocols(struct html_page *page)
{
	struct protocols_data d = { .page = page };
	const struct page_figure figure = {
		.name = "protocols",
		.picture = { print_points, &d, "protocols.gp", (const char *const[]){ NULL } },
		.label = "Tears of each protocol against what a change costs.",
		.caption =
			"Tears per change against what a change costs, of each sequence of steps "
			"at the sites where it claims to hold. A triangle is a bound, where none "
			"tore: it falls with what was counted. No other is below and left of one "
			"in a ring.",
	};
	size_t points = 0;
	int rc = protocol_rows_make(&d.rows, page->data->records, page->data->count);

	if (rc == 0 && !d.rows.count)
		return 1;
	for (size_t i = 0; rc == 0 && i < d.rows.count; i++)
		points += is_point(&d.rows.row[i]);
	if (rc == 0 && !points)
		html_missing(page->out, "Too little was seen for a figure.");
	else if (rc == 0)
		rc = page_figure(page, &figure);
	if (rc == 0) {
		html_paragraph(page->out, "A row is of a sequence of steps, as read in its source, "
					  "on this machine. It says nothing of a project.");
		html_table(
			page->out, "Tears per change; bounds at 95 % on the mean of the sites.",
			"protocol\t#sites\tclaims\t#tears\t#bound\t#sites just outside\tthere\t"
			"#tears\t#change (us)\t#loss of an executor (%)\tread in\truns a witness "
			"again");
		for (size_t i = 0; i < d.rows.count; i++)
			put_protocol(page, &d.rows.row[i]);
		html_table_end(page->out);
	}
	protocol_rows_free(&d.rows);
	return rc;
}
