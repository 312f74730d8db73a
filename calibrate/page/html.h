/* SPDX-License-Identifier: MIT */
/*
 * HTML that is well-formed XML too. Everything written through here is escaped.
 */
#ifndef CALIBRATE_PAGE_HTML_H
#define CALIBRATE_PAGE_HTML_H

#include <stdint.h>
#include <stdio.h>

/*
 * html_text - text in which nothing is markup. What a journal holds is printable
 * ASCII by its schema; any other byte becomes '?'.
 */
void html_text(FILE *out, const char *text);

/* html_format - the same for a text of at most 1023 bytes; longer ones are cut. */
void html_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* html_paragraph - <p>; html_missing marks one that says what is not there. */
void html_paragraph(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_missing(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * html_table - a table in a box that scrolls by itself, with its heading row, below a
 * caption (NULL: none).
 * headings ends with NULL; one that starts with '#' is of a column of numbers. Only
 * the cells of html_words break into lines.
 */
void html_table(FILE *out, const char *caption, const char *const headings[]);
void html_row(FILE *out, const char *class); /* NULL: of no class; ends the row before */
void html_cell(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_words(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_number(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_table_end(FILE *out);

/*
 * html_svg - copy an SVG file's root element into the page, without titles.
 * @prefix: put before its ids, which must be the page's only ones.
 *
 * 0, -EINVAL if there is no such element, or what reading failed with; nothing
 * was written then.
 */
int html_svg(FILE *out, const char *path, const char *prefix);

/* number_text - a number for people: "4700", "1.62e6", "3.1e-7", "?" for none. Returns buf. */
#define NUMBER_TEXT 24
char *number_text(char buf[NUMBER_TEXT], double value);

/* The same as an expression, for the arguments of the functions above. */
#define NUMBER(value) number_text((char[NUMBER_TEXT]){ 0 }, (double)(value))

#endif
