/* SPDX-License-Identifier: MIT */
#include "calibrate/page/html.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX     1024
#define WHOLE_MAX    99999.5 /* numbers below are written in full, */
#define FRACTION_MIN 1e-3    /* and fractions above with a point only */

static const char *escaped(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		const char *instead = escaped(*text);

		if (instead)
			fputs(instead, out);
		else
			putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	}
}

static void put_escaped(FILE *out, const char *format, va_list args)
{
	char text[TEXT_MAX];

	vsnprintf(text, sizeof(text), format, args);
	html_text(out, text);
}

/* Each of these is a format between two tags. */
#define PUT_BETWEEN(before, after)                                                                 \
	do {                                                                                       \
		va_list args;                                                                      \
                                                                                                   \
		fputs(before, out);                                                                \
		va_start(args, format);                                                            \
		put_escaped(out, format, args);                                                    \
		va_end(args);                                                                      \
		fputs(after, out);                                                                 \
	} while (0)

void html_format(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("", "");
}

void html_paragraph(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("<p>", "</p>\n");
}

void html_missing(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("<p class=\"missing\">", "</p>\n");
}

void html_cell(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("<td>", "</td>");
}

void html_words(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("<td class=\"w\">", "</td>");
}

void html_number(FILE *out, const char *format, ...)
{
	PUT_BETWEEN("<td class=\"n\">", "</td>");
}

void html_table(FILE *out, const char *caption, const char *const headings[])
{
	/* The caption stands outside the box, or it would scroll out of sight. */
	if (caption) {
		fputs("<p class=\"about\">", out);
		html_text(out, caption);
		fputs("</p>\n", out);
	}
	fputs("<div class=\"scroll\" tabindex=\"0\"><table>\n<tr>", out);
	for (; *headings; headings++) {
		bool number = **headings == '#';

		fputs(number ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">", out);
		html_text(out, *headings + number);
		fputs("</th>", out);
	}
}

void html_row(FILE *out, const char *class)
{
	fputs("</tr>\n", out);
	if (class)
		fprintf(out, "<tr class=\"%s\">", class);
	else
		fputs("<tr>", out);
}

void html_table_end(FILE *out)
{
	fputs("</tr>\n</table></div>\n", out);
}

static bool is_plain(double value)
{
	return fabs(value) < WHOLE_MAX && fabs(value) >= FRACTION_MIN;
}

char *number_text(char buf[NUMBER_TEXT], double value)
{
	char *e, *digits;

	if (isnan(value))
		return strcpy(buf, "?");
	if (value == floor(value) && fabs(value) < WHOLE_MAX) {
		snprintf(buf, NUMBER_TEXT, "%.0f", value);
		return buf;
	}
	snprintf(buf, NUMBER_TEXT, is_plain(value) ? "%.3g" : "%.2e", value);
	e = strchr(buf, 'e');
	if (!e)
		return buf;
	/* "1.60e+06" reads as well as "1.6e6". */
	digits = e + 1 + (e[1] == '+' || e[1] == '-');
	digits += strspn(digits, "0");
	value = e[1] == '-' ? -atof(digits) : atof(digits);
	while (e[-1] == '0' && memchr(buf, '.', (size_t)(e - buf)))
		e--;
	if (e[-1] == '.')
		e--;
	snprintf(e, (size_t)(buf + NUMBER_TEXT - e), "e%.0f", value);
	return buf;
}

/* --- SVG --------------------------------------------------------------------- */

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

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Bytes at the end of which an id begins: in its definition or where it is used. */
static size_t before_id(const char *text)
{
	static const char *const marks[] = { " id=\"",	  " id='",     "\tid=\"",
					     "\tid='",	  " href=\"#", " href='#",
					     ":href=\"#", ":href='#",  "url(#" };

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (starts(text, marks[i]))
			return strlen(marks[i]);
	return 0;
}

/*
 * gnuplot titles each curve with its own source text, which browsers would show
 * under the pointer. The place behind such an element, or text itself.
 */
static const char *behind_title(const char *text)
{
	const char *end = starts(text, "<title>") ? strstr(text, "</title>") : NULL;

	return end ? end + strlen("</title>") : text;
}

static void copy_svg(FILE *out, const char *svg, const char *end, const char *prefix)
{
	while (svg < end) {
		const char *behind = behind_title(svg);
		size_t length = before_id(svg);

		if (behind != svg) {
			svg = behind;
		} else if (length) {
			fwrite(svg, 1, length, out);
			html_text(out, prefix);
			svg += length;
		} else {
			putc(*svg++, out);
		}
	}
}

static char *last_end(char *svg)
{
	char *end = NULL;

	while ((svg = strstr(svg, "</svg>")))
		end = svg += strlen("</svg>");
	return end;
}

int html_svg(FILE *out, const char *path, const char *prefix)
{
	char *text = read_file(path), *svg, *end;
	int rc = text ? 0 : -errno;

	if (rc)
		return rc;
	svg = strstr(text, "<svg");
	end = svg ? last_end(svg) : NULL;
	if (end)
		copy_svg(out, svg, end, prefix);
	else
		rc = -EINVAL;
	free(text);
	return rc;
}
