/* SPDX-License-Identifier: MIT */
#include "calibrate/page/report_page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/page/html.h"
#include "results/figures/gnuplot.h"
#include "stress/base/data_file.h"

/* What a page that may be written over has near its top. */
#define WRITTEN_BY "<meta name=\"generator\" content=\"tmax report\" />\n"
#define TOP	   512 /* bytes */

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

int page_path(const struct page *page, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", page->report->folder, name);

	return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

/* Is there a page that no program of this package wrote? */
static bool is_foreign(const char *path)
{
	FILE *page = fopen(path, "re");
	char top[TOP] = "";

	if (!page)
		return errno != ENOENT;
	(void)!fread(top, 1, sizeof(top) - 1, page);
	fclose(page);
	return !strstr(top, WRITTEN_BY);
}

/* FOLDER/NAME, and what it is called until it is whole. */
static int page_paths(const struct page *page, const char *name, char *path, char *fresh)
{
	char fresh_name[64];
	int rc = page_path(page, name, path, PICTURE_PATH);

	snprintf(fresh_name, sizeof(fresh_name), "%s.new", name);
	return rc ? rc : page_path(page, fresh_name, fresh, PICTURE_PATH);
}

int page_begin(struct page *page, const char *name, const char *title)
{
	char path[PICTURE_PATH], fresh[PICTURE_PATH];
	int rc = page_paths(page, name, path, fresh);

	if (rc)
		return rc;
	if (is_foreign(path))
		return -EEXIST;
	page->out = fopen(fresh, "we");
	if (!page->out)
		return -errno;
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n" WRITTEN_BY
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n",
	      page->out);
	html_between(page->out, "<title>", "</title>\n", "%s", title);
	rc = data_file("page.css", path, sizeof(path));
	if (!rc)
		rc = html_style(page->out, path);
	html_between(page->out, "</head>\n<body>\n<h1>", "</h1>\n", "%s", title);
	if (rc)
		html_missing(page->out, "This page has no style: cannot read %s: %s.", path,
			     strerror(-rc));
	return 0;
}

int page_end(struct page *page, const char *name, int rc)
{
	char path[PICTURE_PATH], fresh[PICTURE_PATH];

	/* Both fit: the page was begun. */
	(void)page_paths(page, name, path, fresh);
	fputs("</body>\n</html>\n", page->out);
	if ((ferror(page->out) | fclose(page->out)) && rc >= 0)
		rc = -EIO;
	if (rc >= 0 && rename(fresh, path))
		rc = -errno;
	if (rc < 0)
		unlink(fresh);
	return rc;
}

int page_picture(struct page *page, const struct page_figure *figure, int rc, const char *why)
{
	static const char *const kinds[] = { "svg", "png", "dat" };
	char file[64], path[PICTURE_PATH], prefix[64];
	struct report *r = page->report;
	FILE *out = page->out;

	if (rc == -ENOENT || rc == -EIO) {
		r->undrawn++;
		snprintf(r->undrawn_why, sizeof(r->undrawn_why), "%s", why);
		html_missing(out, "This figure was not drawn: %s. Its data are in %s.dat.", why,
			     figure->name);
		return 0;
	}
	snprintf(file, sizeof(file), "%s.svg", figure->name);
	snprintf(prefix, sizeof(prefix), "%s-", figure->name);
	if (!rc)
		rc = page_path(page, file, path, sizeof(path));
	if (rc)
		return rc;
	html_between(out, "<figure><div role=\"img\" aria-label=\"", "\">", "%s", figure->label);
	rc = html_svg(out, path, prefix);
	fputs("</div>\n<figcaption>", out);
	html_text(out, figure->caption);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		fprintf(out, "%s<a href=\"%s.%s\">%s.%s</a>", i ? ", " : " Files: ", figure->name,
			kinds[i], figure->name, kinds[i]);
	fputs(".</figcaption></figure>\n", out);
	return rc;
}

int page_figure(struct page *page, const struct page_figure *figure)
{
	const struct picture picture = { figure->print, figure->arg, figure->script, figure->args };
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	int rc = page_path(page, figure->name, prefix, sizeof(prefix));

	if (!rc)
		rc = picture_make(&picture, prefix, why, sizeof(why));
	return page_picture(page, figure, rc, why);
}
