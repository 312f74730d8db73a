/* SPDX-License-Identifier: MIT */
/*
 * What the sections of the report share, those of the benchmarks too. A section writes its part
 * of the page, and says so where the journals have nothing for it.
 */
#ifndef CALIBRATE_PAGE_REPORT_PAGE_H
#define CALIBRATE_PAGE_REPORT_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "results/journal/journal.h"

struct report {
	const struct journal_data *data;
	char *const *journals; /* their names, as the reader knows them */
	size_t count;
	const char *folder;    /* exists; gets index.html and the figures */
	unsigned undrawn;      /* out: figures that gnuplot did not draw, */
	char undrawn_why[256]; /* out: and the reason for the last one */
};

struct page {
	FILE *out;
	struct report *report;
	const struct journal_data *data;
};

/* A figure of the page: NAME.dat, NAME.svg and NAME.png in the folder. */
struct page_figure {
	const char *name;
	const char *script;
	const char *label;   /* what it shows, for readers that do not see it */
	const char *caption; /* plain text */
	void (*print)(FILE *stream, const void *arg);
	const void *arg;
	const char *const *args; /* of the script, ends with NULL */
};

/* page_figure - write the data, draw, and put the picture into the page. */
int page_figure(struct page *page, const struct page_figure *figure);

/*
 * page_picture - put NAME.svg into the page, with its caption and links to PNG
 * and data; or, with rc of the drawing not 0, the reason why it is not there.
 */
int page_picture(struct page *page, const struct page_figure *figure, int rc, const char *why);

/* page_path - FOLDER/NAME. 0 or -ENAMETOOLONG. */
int page_path(const struct page *page, const char *name, char *path, size_t size);

/* line_next - the next line of that type at or after *i, which is moved behind it. */
const json_t *line_next(const struct journal_data *data, const char *type, size_t *i);

/* line_last - the last line of that type, NULL if there is none. */
const json_t *line_last(const struct journal_data *data, const char *type);

/* Members of a line; not there or of another type: NAN, "?". */
double json_real_of(const json_t *object, const char *name);
const char *json_text_of(const json_t *object, const char *name);

/* ticks_us - microseconds on this machine. */
double ticks_us(const struct page *page, double ticks);

/* A cell of the library's own protocol with an answer: one that speaks for the waits. */
bool is_wait_cell(const struct cell_record *record);

/* Tears of a record; a crash under the counting oracle is one that no pad could count. */
uint64_t record_tears(const struct cell_record *record);

/* Sums stay at the top instead of starting over: journals may claim anything. */
void sum_add(uint64_t *sum, uint64_t value);

#endif
