/* SPDX-License-Identifier: MIT */
/*
 * What the sections of the report share, those of the benchmarks too. A section writes its part
 * of the page, and says so where the journals have nothing for it.
 */
#ifndef RESULTS_FIGURES_REPORT_PAGE_H
#define RESULTS_FIGURES_REPORT_PAGE_H

#include <stdbool.h>

#include "results/figures/gnuplot.h"
#include "results/journal/journal.h"

struct report {
	const struct journal_data *data;
	char *const *journals; /* their names, as the reader knows them */
	size_t count;
	const char *folder;    /* gets index.html and the figures */
	unsigned undrawn;      /* out: figures that gnuplot did not draw, */
	char undrawn_why[256]; /* out: and the reason for the last one */
};

struct html_page {
	FILE *out; /* to another name until the page is whole */
	struct report *report;
	const struct journal_data *data;
	char path[PICTURE_PATH], fresh[PICTURE_PATH]; /* its file, and that until it is whole */
	bool folds; /* figures are folded, so that a long page can be looked over */
};

/* A figure of the page: NAME.dat, NAME.svg and NAME.png in the folder. */
struct page_figure {
	const char *name;
	const char *label; /* what it shows, and with what result, for readers that do not see it */
	const char *caption; /* plain text */
	struct picture picture;
};

/* page_figure - write the data, draw, and put the picture into the page. */
int page_figure(struct html_page *page, const struct page_figure *figure);

/*
 * page_picture - put NAME.svg into the page, with its caption and links to PNG and data. @rc: what
 * picture_make() returned; of a figure that was not drawn the reason is there instead.
 */
int page_picture(struct html_page *page, const struct page_figure *figure, int rc, const char *why);

/*
 * page_begin - open NAME in the folder of the report, and write all up to its first heading.
 * page_end - end it, and put it in the place of an older one; where rc is negative, remove it. Only
 * for a page that was begun. Returns rc, or what writing failed with.
 *
 * -EEXIST: a file of that name is there, and no program of this package wrote it.
 */
int page_begin(struct html_page *page, const char *name, const char *title);
int page_end(struct html_page *page, int rc);

/* page_path - FOLDER/NAME. 0 or -ENAMETOOLONG. */
int page_path(const struct html_page *page, const char *name, char *path, size_t size);

#endif
