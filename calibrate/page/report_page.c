/* SPDX-License-Identifier: MIT */
#include "calibrate/page/report_page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "results/figures/gnuplot.h"

const json_t *line_next(const struct journal_data *data, const char *type, size_t *i)
{
	while (*i < json_array_size(data->others)) {
		const json_t *line = json_array_get(data->others, (*i)++);
		const char *its = json_string_value(json_object_get(line, "type"));

		if (its && strcmp(its, type) == 0)
			return line;
	}
	return NULL;
}

const json_t *line_last(const struct journal_data *data, const char *type)
{
	const json_t *line, *last = NULL;
	size_t i = 0;

	while ((line = line_next(data, type, &i)))
		last = line;
	return last;
}

double json_real_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *json_text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "?";
}

double ticks_us(const struct page *page, double ticks)
{
	uint64_t khz = page->data->identity.tsc_khz;

	return khz ? ticks * 1000 / (double)khz : NAN;
}

bool is_wait_cell(const struct cell_record *record)
{
	return record->cell.protocol == PROTOCOL_WAIT && record->cell.oracle == ORACLE_COUNT &&
	       record->result.toggles > 0;
}

void sum_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

uint64_t record_tears(const struct cell_record *record)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < TEAR_KINDS; kind++)
		sum_add(&sum, record->result.tears[kind]);
	return sum;
}

int page_path(const struct page *page, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", page->report->folder, name);

	return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

static void undrawn(struct page *page, const struct page_figure *figure, const char *why)
{
	struct report *r = page->report;

	r->undrawn++;
	snprintf(r->undrawn_why, sizeof(r->undrawn_why), "%s", why);
	html_missing(page->out, "This figure was not drawn: %s. Its data are in %s.dat.", why,
		     figure->name);
}

static void put_caption(FILE *out, const struct page_figure *figure)
{
	static const char *const kinds[] = { "svg", "png", "dat" };

	fputs("<figcaption>", out);
	html_text(out, figure->caption);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		fprintf(out, "%s<a href=\"%s.%s\">%s.%s</a>", i ? ", " : " Files: ", figure->name,
			kinds[i], figure->name, kinds[i]);
	fputs(".</figcaption></figure>\n", out);
}

int page_picture(struct page *page, const struct page_figure *figure, int rc, const char *why)
{
	char file[64], path[PICTURE_PATH], prefix[64];

	if (rc) {
		undrawn(page, figure, why);
		return 0;
	}
	snprintf(file, sizeof(file), "%s.svg", figure->name);
	snprintf(prefix, sizeof(prefix), "%s-", figure->name);
	if (page_path(page, file, path, sizeof(path)))
		return -ENAMETOOLONG;
	fputs("<figure role=\"img\" aria-label=\"", page->out);
	html_text(page->out, figure->label);
	fputs("\">", page->out);
	rc = html_svg(page->out, path, prefix);
	put_caption(page->out, figure);
	return rc;
}

int page_figure(struct page *page, const struct page_figure *figure)
{
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	struct picture picture;
	int rc = page_path(page, figure->name, prefix, sizeof(prefix));

	if (!rc)
		rc = picture_name(&picture, prefix);
	if (!rc)
		rc = picture_write_data(&picture, figure->print, figure->arg);
	if (rc)
		return rc;
	rc = picture_draw(&picture, figure->script, figure->args, why, sizeof(why));
	return page_picture(page, figure, rc, why);
}
