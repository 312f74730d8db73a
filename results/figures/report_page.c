/* SPDX-License-Identifier: MIT */
/* Elements of HTML, and a page of the report with its figures. */
#include "results/figures/report_page.h"

#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_file.h"
#include "results/figures/html.h"

/* What a page that may be written over has near its top. */
#define WRITTEN_BY "<meta name=\"generator\" content=\"tmax report\" />\n"
#define TOP	   512 /* bytes */
#define TEXT_MAX   1024

void html_between(FILE *out, const char *before, const char *after, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fputs(before, out);
	html_text(out, text);
	fputs(after, out);
}

void html_cells(FILE *out, const char *kinds, const char *format, ...)
{
	char text[TEXT_MAX], *rest = text;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (; *kinds; kinds++) {
		const char *cell = rest ? strsep(&rest, "\t") : "";

		html_between(out, *kinds == 'n' ? "<td class=\"n\">" : "<td>", "</td>", "%s", cell);
	}
}

void html_table(FILE *out, const char *caption, const char *headings)
{
	/* The caption stands outside the box, or it would scroll out of sight. */
	if (caption)
		html_between(out, "<p class=\"about\">", "</p>\n", "%s", caption);
	fputs("<div class=\"scroll\" tabindex=\"0\"><table>\n<tr>", out);
	for (int length; *headings; headings += length + (headings[length] != '\0')) {
		bool number = *headings == '#';

		length = (int)strcspn(headings, "\t");
		html_between(out, number ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">",
			     "</th>", "%.*s", length - number, headings + number);
	}
}

void html_row(FILE *out, const char *class)
{
	fprintf(out, "</tr>\n<tr%s%s%s>", class ? " class=\"" : "", class ? class : "",
		class ? "\"" : "");
}

/*
 * gnuplot titles each curve with its own source, which browsers would show, and has a script for
 * the text of a point, which becomes its title instead.
 */
int html_svg(FILE *out, const char *path, const char *prefix)
{
	static const char parts[] = " onmousemove=\"gnuplot_svg.showHypertext\\(evt,'([^']*)'\\)\""
				    " onmouseout=\"[^\"]*\"><title> </title>|<title>[^<]*</title>|"
				    "([[:space:]]id=[\"']|[ :]href=[\"']#|url\\(#)";
	char *text = text_file_read(path), *at, *end = NULL;
	regmatch_t match[3];
	regex_t regex;
	int rc;

	if (!text)
		return -errno;
	at = strstr(text, "<svg");
	for (char *next = at; next && (next = strstr(next, "</svg>"));)
		end = next += strlen("</svg>");
	rc = !end ? -EINVAL : regcomp(&regex, parts, REG_EXTENDED) ? -ENOMEM : 0;
	if (!rc) {
		*end = '\0';
		for (; regexec(&regex, at, 3, match, 0) == 0; at += match[0].rm_eo) {
			bool name = match[2].rm_so >= 0;

			fwrite(at, 1, (size_t)(name ? match[0].rm_eo : match[0].rm_so), out);
			if (name)
				html_text(out, prefix);
			if (match[1].rm_so >= 0)
				fprintf(out, "><title>%.*s</title>",
					(int)(match[1].rm_eo - match[1].rm_so),
					at + match[1].rm_so);
		}
		fputs(at, out);
		regfree(&regex);
	}
	free(text);
	return rc;
}

/* --- A page of the report --------------------------------------------------------------------- */

int page_path(const struct html_page *page, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", page->report->folder, name);

	return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

int page_begin(struct html_page *page, const char *name, const char *title)
{
	char style[PICTURE_PATH], top[TOP] = "", *text;
	int rc = page_path(page, name, page->path, sizeof(page->path));
	FILE *old;

	if (rc || (size_t)snprintf(page->fresh, sizeof(page->fresh), "%s.new", page->path) >=
			  sizeof(page->fresh))
		return -ENAMETOOLONG;
	/* Is there a page that no program of this package wrote? */
	old = fopen(page->path, "re");
	if (!old && errno != ENOENT)
		return -EEXIST;
	if (old) {
		(void)!fread(top, 1, sizeof(top) - 1, old);
		fclose(old);
		if (!strstr(top, WRITTEN_BY))
			return -EEXIST;
	}
	page->out = fopen(page->fresh, "we");
	if (!page->out)
		return -errno;
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n" WRITTEN_BY
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n",
	      page->out);
	html_between(page->out, "<title>", "</title>\n", "%s", title);
	rc = data_file("page.css", style, sizeof(style));
	text = rc ? NULL : text_file_read(style);
	if (text)
		fprintf(page->out, "<style>\n%s</style>\n", text);
	else if (!rc)
		rc = -errno;
	free(text);
	html_between(page->out, "</head>\n<body>\n<h1>", "</h1>\n", "%s", title);
	if (rc)
		html_missing(page->out, "This page has no style: cannot read %s: %s.", style,
			     strerror(-rc));
	return 0;
}

int page_end(struct html_page *page, int rc)
{
	fputs("</body>\n</html>\n", page->out);
	return text_file_end(page->out, page->fresh, page->path, rc);
}

int page_picture(struct html_page *page, const struct page_figure *figure, int rc, const char *why)
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
	if (page->folds)
		html_fold(out, "Figure: %s", figure->label);
	html_between(out, "<figure><div role=\"img\" aria-label=\"", "\">", "%s", figure->label);
	rc = html_svg(out, path, prefix);
	fputs("</div>\n<figcaption>", out);
	html_text(out, figure->caption);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		fprintf(out, "%s<a href=\"%s.%s\">%s.%s</a>", i ? ", " : " Files: ", figure->name,
			kinds[i], figure->name, kinds[i]);
	fputs(".</figcaption></figure>\n", out);
	if (page->folds)
		html_fold_end(out);
	return rc;
}

int page_figure(struct html_page *page, const struct page_figure *figure)
{
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	int rc = page_path(page, figure->name, prefix, sizeof(prefix));

	if (!rc)
		rc = picture_make(&figure->picture, prefix, why, sizeof(why));
	return page_picture(page, figure, rc, why);
}
