/* SPDX-License-Identifier: MIT */
/*
 * FOLDER/fleet.html: of each kind its ladder as a figure, and what the text says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands/report/fleet_report.h"
#include "results/figures/gnuplot.h"
#include "results/figures/html.h"
#include "results/figures/report_page.h"

/* Rows: crossing, wait, bound, tears per toggle. */
static void print_rows(FILE *out, const void *arg)
{
	const struct kind_report *r = arg;

	for (int c = 0; c < CLAIMS; c++)
		for (unsigned i = 0; i < r->estimate.levels; i++) {
			const struct level *level = &r->estimate.level[i];
			const struct claim *claim = &level->claim[c];

			if (claim->count.toggles)
				fprintf(out, "%s %" PRIu64 " %.9g %.9g\n", claim_name(c),
					level->rung.first, claim->upper_p,
					(double)claim->count.tears / (double)claim->count.toggles);
		}
}

/* The least bound of each crossing, for readers that do not see the figure. */
static void print_label(const struct estimate *e, char *text, size_t size)
{
	size_t length =
		(size_t)snprintf(text, size, "Bounds on tears per toggle against the wait.");

	for (int c = 0; c < CLAIMS && length < size; c++) {
		const struct level *best = NULL;

		for (const struct level *l = e->level; l < e->level + e->levels; l++)
			if (l->claim[c].count.toggles &&
			    (!best || l->claim[c].upper_p < best->claim[c].upper_p))
				best = l;
		if (best)
			length += (size_t)snprintf(text + length, size - length,
						   " Across a %s at best %s, at %s ticks.",
						   claim_name(c), NUMBER(best->claim[c].upper_p),
						   NUMBER(best->rung.first));
	}
}

static void put_row(FILE *out, char *cells)
{
	html_row(out, NULL);
	html_cells(out, "tttnnnnn", "%s", cells);
}

static int put_kind(const struct kind_report *r, void *arg)
{
	struct page *page = arg;
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	static const char *const none[] = { NULL };
	char name[32], label[240];
	const struct page_figure figure = {
		.name = name,
		.picture = { print_rows, r, "fleet.gp", none },
		.label = label,
		.caption = "Bounds of 95 % on tears per toggle against the wait, and what was "
			   "counted, over all machines of the kind. Lower is better.",
	};
	int ret = memory ? kind_text(memory, r, false) : -ENOMEM, rc = 0;
	bool drawn = false;

	snprintf(name, sizeof(name), "kind-%" PRId64, r->kind->id);
	for (unsigned i = 0; i < CLAIMS * r->estimate.levels; i++)
		drawn |= r->estimate.level[i / CLAIMS].claim[i % CLAIMS].count.toggles > 0;

	if (memory && fclose(memory) != 0)
		ret = -ENOMEM;
	if (ret >= 0) {
		/* Its first line is the heading. */
		size_t length = strcspn(text, "\n");

		text[length] = '\0';
		fputs("<section>\n<h2>", page->out);
		html_text(page->out, text);
		fputs("</h2>\n", page->out);
		html_table(
			page->out, NULL,
			"tears below\tacross a\twaits\t#bound\t#machines\t#runs\t#toggles\t#tears");
		kind_ladder(page->out, r, put_row);
		html_table_end(page->out);
		for (char *part, *rest = text + length + 1; (part = strsep(&rest, "\n"));)
			if (*part)
				html_paragraph(page->out, "%s", part + strspn(part, " "));
		print_label(&r->estimate, label, sizeof(label));
		rc = drawn ? page_figure(page, &figure) : 0;
		fputs("</section>\n", page->out);
	}
	free(text);
	return rc < 0 ? rc : ret;
}

int fleet_page(const char *folder, struct fleet *fleet, char *undrawn, size_t size)
{
	struct report report = { .folder = folder };
	struct page page = { .report = &report };
	int ret;

	undrawn[0] = '\0';
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return -errno;
	ret = page_begin(&page, "fleet.html", "T_max of a fleet");
	if (ret < 0)
		return ret;
	html_paragraph(page.out,
		       "What the evidence of many machines says of each kind of them, by %s.",
		       PACKAGE_STRING);
	ret = each_kind(fleet, put_kind, &page);
	if (ret == -ENODATA) {
		html_missing(page.out, "No run is known.");
		ret = 0;
	}
	snprintf(undrawn, size, "%s", report.undrawn_why);
	return page_end(&page, ret);
}
