/* SPDX-License-Identifier: MIT */
/*
 * What was measured, by which runs, at which placements, what else went on, and what that leaves
 * open.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/report/report.h"

int section_machine(struct page *page)
{
	const struct journal_data *data = page->data;
	size_t i = 0, runs = 0;
	FILE *out = page->out;
	const char *name;
	const json_t *line;
	json_t *date;
	char value[256];

	html_fold(out, "Identity");
	html_table(out, NULL, "field\tvalue");
	for (unsigned n = 0; identity_field(&data->identity, n, &name, value, sizeof(value)); n++) {
		html_line(out, NULL, "tt", "%s\t%s", name, value);
	}
	html_folded_table_end(out);
	if (strcmp(data->identity.hypervisor, "none") != 0)
		html_paragraph(out, "This is a virtual machine. What is told here is true of it on "
				    "its host, and says nothing of bare metal.");
	while (line_next(data, "run", &i))
		runs++;
	html_fold(out, "%zu run%s, in the order of the journals", runs, S(runs));
	html_table(out, NULL, "started\tplan\tby");
	for (i = 0; (line = line_next(data, "run", &i));) {
		html_line(out, NULL, "ttt", "%s\t%s\t%s", json_text_of(line, "date"),
			  json_text_of(line, "plan"), json_text_of(line, "tool"));
	}
	html_folded_table_end(out);
	fputs("<p>Read from", out);
	for (i = 0; i < page->report->count; i++)
		html_between(out, i ? ", <code>" : " <code>", "</code>", "%s",
			     page->report->journals[i]);
	fputs(".</p>\n", out);
	if (data->skipped)
		html_paragraph(out, "%zu line%s could not be read, so not in here%s.",
			       data->skipped, S(data->skipped),
			       data->newer ? " (some are of a newer tmax)" : "");
	/* A cell that crashes the machine leaves only its "begin" line. */
	json_object_foreach(data->begun, name, date)
		html_paragraph(out,
			       "A cell began on %s and has no result: it could not be run, or the "
			       "program or the machine ended in it (%s).",
			       json_string_value(date), name);
	return 0;
}

/* --- Placements ------------------------------------------------------------------------------- */

/* Which placements were tested with how many executors, and why no run could seat the others. */
int section_placements(struct page *page)
{
	struct tally sums = { 0 };
	FILE *out = page->out;
	const json_t *line;
	int rc = 0;

	for (size_t i = 0; i < page->data->count; i++) {
		const struct cell_record *r = &page->data->records[i];
		struct tally_row row = { .key = { r->cell.placement, r->cell.executors },
					 .events = record_tears(r),
					 .trials = r->result.toggles };

		if (r->cell.protocol == PROTOCOL_WAIT && (row.trials || row.events))
			tally_add(&sums, &row);
	}
	if (sums.failed) {
		rc = -ENOMEM;
		goto out;
	}
	if (!sums.count) {
		html_missing(out, "No cell of the library's own protocol was run, so no placement "
				  "was tested.");
		goto out;
	}
	html_table(
		out,
		"Toggles and tears of the library's own protocol, at all waits. In grey what the "
		"machine, or the CPUs allowed, could not seat.",
		"placement\t#executors\t#toggles\t#tears");
	for (enum placement p = 0; p < PLACEMENT_COUNT; p++) {
		const char *name = placement_name(p), *why = "not measured, and no run says why";
		const json_t *untested = NULL;
		bool measured = false;

		for (const struct tally_row *row = sums.row; row < sums.row + sums.count; row++) {
			if (row->key[0] != p)
				continue;
			measured = true;
			html_line(out, NULL, "tnnn", "%s\t%s\t%s\t%s", name, NUMBER(row->key[1]),
				  NUMBER(row->trials), NUMBER(row->events));
		}
		if (measured)
			continue;
		for (size_t i = 0; !untested && (line = line_next(page->data, "run", &i));)
			untested = json_find(json_object_get(line, "gaps"), "placement", name);
		if (untested)
			why = json_text_of(untested, "reason");
		html_line(out, "gap", "t", "%s", name);
		html_between(out, "<td colspan=\"3\">", "</td>", "%s", why);
	}
	html_table_end(out);
out:
	tally_free(&sums);
	return rc;
}

/* --- Witnesses of the cells, in the order in which these ended ---------------------------------
 */

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
		.script = "witnesses.gp",
		.label = label,
		.caption = "One point per cell; open points: noisy cells. Marks on the axis: cells "
			   "with tears, long where a wait was 1000 ticks or more. Latency is that "
			   "of the patcher's INT3 store, the median over a cell: how far the lines "
			   "travel. The axis is measuring time, with the pauses left out.",
		.print = print_noise,
		.arg = &n,
		.args = args,
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

/* ---------------------------------------------------------------------------------------------- */

int section_limits(struct page *page)
{
	fputs("<ul>\n"
	      "<li>A bound is not zero. No tear in N toggles leaves room for one in about N/3, at "
	      "95 % confidence.</li>\n"
	      "<li>The bounds take toggles for independent trials. Tears that come in bursts, or "
	      "under a load that the run never had, are not covered.</li>\n"
	      "<li>Placements that no run could seat, and loads that no provoker stands for, were "
	      "not tested. Either may be worse than all that was.</li>\n"
	      "<li>Cells that stop at a tear make their rate look higher than it is; they are in "
	      "the figures as they ended. Noisy cells are in there too, because a tear in noise is "
	      "a tear.</li>\n"
	      "<li>A fetch gap says how far two fetches came apart, not that a toggle of the "
	      "library would have torn: the library's INT3 is not in that experiment.</li>\n"
	      "<li>A fitted tail describes causes that were sampled. A cause too rare to be in the "
	      "sample is in no fit, and only the count of toggles bounds it.</li>\n"
	      "<li>Stamps of tears are late by a cache miss, because what takes them is "
	      "cold.</li>\n"
	      "<li>It is this machine, with this microcode and under this hypervisor. Another one "
	      "has another T_max.</li>\n"
	      "</ul>\n",
	      page->out);
	return 0;
}
