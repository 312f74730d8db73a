/* SPDX-License-Identifier: MIT */
/* Witnesses of the cells, in the order in which these ended. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/report/report.h"

#define WITNESSES 6

static const struct {
	const char *name; /* of the panel in witnesses.gp */
	const char *told;
} witnesses[WITNESSES] = {
	{ "steal", "steal time" },
	{ "involuntary", "involuntary switches" },
	{ "interrupts", "interrupts" },
	{ "latency", "latency of the stores" },
	{ "distance", "distance of the CPUs" },
	{ "clock", "clock rate" },
};

/* NAN where there is none; older journals have no count of some, and a 0 in its place. */
static double value_of(const struct cell_record *r, int which)
{
	const struct witness *w = &r->result.witness;
	double seconds = r->result.seconds > 0 ? r->result.seconds : NAN;
	const struct {
		bool known;
		double value;
	} all[WITNESSES] = {
		{ w->steal >= 0, 100 * w->steal },
		{ w->involuntary != WITNESS_UNKNOWN, (double)w->involuntary / seconds },
		{ w->interrupts && w->interrupts != WITNESS_UNKNOWN,
		  (double)w->interrupts / seconds },
		{ r->result.latency.median, (double)r->result.latency.median },
		/* Half a round trip of a cache line; threads on one CPU have none. */
		{ w->offset_error && w->offset_error != WITNESS_UNKNOWN, (double)w->offset_error },
		{ w->clock[0] > 0, w->clock[0] },
	};

	return all[which].known ? all[which].value : NAN;
}

struct noise {
	const struct cell_record **record; /* by date */
	size_t count;
};

/* Records lie in the journal's order, which decides within one second. */
static int by_date(const void *a, const void *b)
{
	const struct cell_record *p = *(const struct cell_record *const *)a;
	const struct cell_record *q = *(const struct cell_record *const *)b;
	int dates = strcmp(p->date, q->date);

	return dates ? dates : (p > q) - (p < q);
}

/* What is broken on purpose tears by design. */
static uint64_t tears_of(const struct cell_record *r)
{
	return protocol_is_broken(r->cell.protocol) ? 0 : record_tears(r);
}

static void print_noise(FILE *stream, const void *arg)
{
	const struct noise *n = arg;
	double minutes = 0;

	fputs("# minutes", stream);
	for (int w = 0; w < WITNESSES; w++)
		fprintf(stream, " %s", witnesses[w].name);
	fputs(" noisy tears wait date\n", stream);
	for (size_t i = 0; i < n->count; i++) {
		const struct cell_record *r = n->record[i];
		const struct waits *waits = &r->cell.waits;

		minutes += r->result.seconds / 60;
		fprintf(stream, "%.5f", minutes);
		for (int w = 0; w < WITNESSES; w++)
			fprintf(stream, " %g", value_of(r, w));
		fprintf(stream, " %d %s %s %s\n", r->noisy, NUMBER(tears_of(r)),
			NUMBER(waits->first > waits->second ? waits->first : waits->second),
			r->date);
	}
}

int section_noise(struct page *page)
{
	const struct cell_record *records = page->data->records;
	struct noise n = { .count = page->data->count };
	bool have[WITNESSES] = { false };
	uint64_t tears[2] = { 0, 0 }; /* in quiet cells, in noisy ones */
	size_t noisy = 0;
	double minutes = 0;
	FILE *out = page->out;
	char panels[64] = "", label[200];
	const char *const args[] = { panels, NULL };
	const struct page_figure figure = {
		.name = "witnesses",
		.picture = { print_noise, &n, "witnesses.gp", args },
		.label = label,
		.caption = "One point per cell; open points: noisy cells. Marks on the axis: cells "
			   "with tears, long where a wait was 1000 ticks or more. Latency is that "
			   "of the patcher's INT3 store, the median over a cell: how far the lines "
			   "travel. The axis is measuring time, with the pauses left out.",
	};
	size_t length = 0;
	unsigned missing = 0;
	int rc = 0;

	if (!n.count) {
		html_missing(out, "The journals hold no cell.");
		return 0;
	}
	n.record = calloc(n.count, sizeof(const struct cell_record *));
	if (!n.record)
		return -ENOMEM;
	for (size_t i = 0; i < n.count; i++) {
		const struct cell_record *r = n.record[i] = &records[i];

		noisy += r->noisy;
		minutes += r->result.seconds / 60;
		sum_add(&tears[r->noisy], tears_of(r));
		for (int w = 0; w < WITNESSES; w++)
			have[w] |= !isnan(value_of(r, w));
	}
	qsort(n.record, n.count, sizeof(const struct cell_record *), by_date);
	html_paragraph(out,
		       "%zu of %zu cells are marked as noisy. Tears in noisy cells: %s; in "
		       "others: %s.",
		       noisy, n.count, NUMBER(tears[1]), NUMBER(tears[0]));
	for (int w = 0; w < WITNESSES; w++)
		if (have[w])
			length += (size_t)snprintf(panels + length, sizeof(panels) - length, "%s%s",
						   length ? " " : "", witnesses[w].name);
	snprintf(label, sizeof(label),
		 "Witnesses of noise over %s minutes: %zu of %zu cells are noisy. Tears in noisy "
		 "cells: %s; in others: %s.",
		 NUMBER(minutes), noisy, n.count, NUMBER(tears[1]), NUMBER(tears[0]));
	if (length)
		rc = page_figure(page, &figure);
	else
		html_missing(out, "No cell has a witness that could be read.");
	for (int w = 0; w < WITNESSES && !rc; w++)
		if (!have[w])
			fprintf(out, "%s%s",
				missing++ ? ", "
					  : "<p class=\"missing\">Not recorded in any cell: ",
				witnesses[w].told);
	if (missing)
		fputs(".</p>\n", out);
	free(n.record);
	return rc;
}
