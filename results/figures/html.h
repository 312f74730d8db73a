/* SPDX-License-Identifier: MIT */
/* HTML that is well-formed XML too. Everything written through here is escaped. */
#ifndef RESULTS_FIGURES_HTML_H
#define RESULTS_FIGURES_HTML_H

#include <stdio.h>

#include "base/number.h"

/*
 * html_text - text in which nothing is markup. What a journal holds is printable ASCII by its
 * schema; any other byte becomes '?'.
 */
void html_text(FILE *out, const char *text);

/* html_between - the same for a format, of at most 1023 bytes, between two tags. */
void html_between(FILE *out, const char *before, const char *after, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The rest of the arguments is a format. html_missing - a paragraph that says what is missing. */
#define html_format(out, ...)	 html_between(out, "", "", __VA_ARGS__)
#define html_paragraph(out, ...) html_between(out, "<p>", "</p>\n", __VA_ARGS__)
#define html_missing(out, ...)	 html_between(out, "<p class=\"missing\">", "</p>\n", __VA_ARGS__)

/* What follows up to html_fold_end() is folded behind these words. */
#define html_fold(out, ...) html_between(out, "<details><summary>", "</summary>\n", __VA_ARGS__)
#define html_fold_end(out)  fputs("</details>\n", out)

/*
 * html_table - a table in a box that scrolls by itself, with its heading row, below a caption
 * (NULL: none). Tabs stand between headings; one that starts with '#' is of a column of numbers.
 * Only cells of class "w" break into lines.
 */
void html_table(FILE *out, const char *caption, const char *headings);
void html_row(FILE *out, const char *class); /* NULL: of no class; ends the row before */
#define html_cell(out, ...)	   html_between(out, "<td>", "</td>", __VA_ARGS__)
#define html_code(out, ...)	   html_between(out, "<td><code>", "</code></td>", __VA_ARGS__)
#define html_table_end(out)	   fputs("</tr>\n</table></div>\n", out)
#define html_folded_table_end(out) fputs("</tr>\n</table></div>\n</details>\n", out)

/*
 * html_cells - several cells at once, with tabs between them; kinds has a letter for each: t text,
 * n a number.
 */
void html_cells(FILE *out, const char *kinds, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* html_line - a row of such cells. */
#define html_line(out, class, ...) (html_row(out, class), html_cells(out, __VA_ARGS__))

/*
 * html_svg - copy an SVG file's root element into the page, without titles. prefix: put before its
 * ids, which must be the page's only ones. 0, -EINVAL if there is no such element, or what reading
 * failed with; nothing was written then.
 */
int html_svg(FILE *out, const char *path, const char *prefix);

#endif
