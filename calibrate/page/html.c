/* SPDX-License-Identifier: MIT */
#include "calibrate/page/html.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024

void html_text(FILE *out, const char *text)
{
	static const char marks[] = "&<>\"'";
	static const char *const instead[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

	for (; *text; text++) {
		const char *mark = strchr(marks, *text);

		if (mark)
			fputs(instead[mark - marks], out);
		else
			putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	}
}

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

void html_tile_begin(FILE *out, const char *label, const char *number, const char *unit)
{
	html_between(out, "<div><dt>", "</dt>", "%s", label);
	html_between(out, "<dd><span>", "</span>", "%s", number);
	html_between(out, " ", "</dd>", "%s", unit);
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

/* The whole file, to be freed; NULL with errno. */
static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t length;

	if (!file)
		return NULL;
	/* A text has no NUL, so all of it is one "line". */
	length = getdelim(&text, &room, '\0', file);
	if (length < 0) {
		free(text);
		text = NULL;
		errno = ferror(file) ? EIO : EINVAL;
	}
	fclose(file);
	return text;
}

int html_style(FILE *out, const char *path)
{
	char *text = read_file(path);

	if (!text)
		return -errno;
	fprintf(out, "<style>\n%s</style>\n", text);
	free(text);
	return 0;
}

/* gnuplot titles each curve with its own source, which browsers would show. */
int html_svg(FILE *out, const char *path, const char *prefix)
{
	static const char *const marks[] = { " id=\"",	  " id='",     "\tid=\"",
					     "\tid='",	  " href=\"#", " href='#",
					     ":href=\"#", ":href='#",  "url(#" };
	const size_t count = sizeof(marks) / sizeof(marks[0]);
	char *text = read_file(path), *svg, *end = NULL;

	if (!text)
		return -errno;
	svg = strstr(text, "<svg");
	for (char *at = svg; at && (at = strstr(at, "</svg>"));)
		end = at += strlen("</svg>");
	for (char *at = svg; end && at < end;) {
		char *title = strncmp(at, "<title>", 7) == 0 ? strstr(at, "</title>") : NULL;
		size_t i = 0;

		if (title) {
			at = title + strlen("</title>");
			continue;
		}
		while (i < count && strncmp(at, marks[i], strlen(marks[i])) != 0)
			i++;
		if (i == count) {
			putc(*at++, out);
			continue;
		}
		fputs(marks[i], out);
		html_text(out, prefix);
		at += strlen(marks[i]);
	}
	free(text);
	return end ? 0 : -EINVAL;
}
