/* SPDX-License-Identifier: MIT */
/*
 * What else went on while the cells ran, in the order in which they ended.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

#define WITNESSES 6

/* --- Witnesses of a cell; NAN where there is none -------------------------------- */

static double per_second(uint64_t count, const struct cell_record *r)
{
	return count == WITNESS_UNKNOWN || !(r->result.seconds > 0)
		       ? NAN
		       : (double)count / r->result.seconds;
}

static double steal(const struct cell_record *r)
{
	return r->result.witness.steal < 0 ? NAN : 100 * r->result.witness.steal;
}

static double involuntary(const struct cell_record *r)
{
	return per_second(r->result.witness.involuntary, r);
}

/* Older journals have no count of these: what is nothing there was not counted. */
static double interrupts(const struct cell_record *r)
{
	return r->result.witness.interrupts ? per_second(r->result.witness.interrupts, r) : NAN;
}

static double latency(const struct cell_record *r)
{
	return r->result.latency.median ? (double)r->result.latency.median : NAN;
}

/* Half a round trip of a cache line; threads on one CPU have none. */
static double distance(const struct cell_record *r)
{
	uint64_t ticks = r->result.witness.offset_error;

	return ticks == 0 || ticks == WITNESS_UNKNOWN ? NAN : (double)ticks;
}

static double clock_rate(const struct cell_record *r)
{
	return r->result.witness.clock[0] > 0 ? r->result.witness.clock[0] : NAN;
}

static const struct {
	const char *name; /* of the panel in witnesses.gp */
	double (*value)(const struct cell_record *r);
} witnesses[WITNESSES] = {
	{ "steal", steal },	{ "involuntary", involuntary }, { "interrupts", interrupts },
	{ "latency", latency }, { "distance", distance },	{ "clock", clock_rate },
};

/* --- The figure ------------------------------------------------------------------ */

struct noise {
	const struct cell_record **record; /* by date */
	size_t count;
	bool have[WITNESSES];
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

static uint64_t longer_wait(const struct cell *c)
{
	return c->first_wait > c->second_wait ? c->first_wait : c->second_wait;
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

		minutes += r->result.seconds / 60;
		fprintf(stream, "%.5f", minutes);
		for (int w = 0; w < WITNESSES; w++)
			fprintf(stream, " %g", witnesses[w].value(r));
		fprintf(stream, " %d %s %s %s\n", r->noisy, NUMBER(tears_of(r)),
			NUMBER(longer_wait(&r->cell)), r->date);
	}
}

static int collect_noise(struct noise *n, const struct journal_data *data)
{
	n->record = calloc(data->count + 1, sizeof(const struct cell_record *));
	if (!n->record)
		return -ENOMEM;
	for (size_t i = 0; i < data->count; i++) {
		n->record[n->count++] = &data->records[i];
		for (int w = 0; w < WITNESSES; w++)
			n->have[w] |= !isnan(witnesses[w].value(&data->records[i]));
	}
	qsort(n->record, n->count, sizeof(const struct cell_record *), by_date);
	return 0;
}

static void list_panels(const struct noise *n, char *text, size_t size)
{
	size_t length = 0;

	for (int w = 0; w < WITNESSES; w++)
		if (n->have[w])
			length += (size_t)snprintf(text + length, size - length, "%s%s",
						   length ? " " : "", witnesses[w].name);
}

static int draw_witnesses(struct page *page, const struct noise *n)
{
	char panels[64] = "";
	const char *const args[] = { panels, NULL };
	const struct page_figure figure = {
		.name = "witnesses",
		.script = "witnesses.gp",
		.label = "Witnesses of noise over the time of the measurement",
		.caption =
			"One point per cell; open points: noisy cells. Marks on the axis: cells "
			"with "
			"tears, long and dark where a wait was 1000 ticks or more. Latency is that "
			"of the patcher's INT3 store, the median over a cell: how far the lines "
			"travel. The axis is measuring time, with the pauses left out.",
		.print = print_noise,
		.arg = n,
		.args = args,
	};

	list_panels(n, panels, sizeof(panels));
	if (!panels[0]) {
		html_missing(page->out, "No cell has a witness that could be read.");
		return 0;
	}
	return page_figure(page, &figure);
}

/* --- Words ------------------------------------------------------------------------- */

static void put_noisy(struct page *page, const struct noise *n)
{
	uint64_t tears[2] = { 0 };
	size_t noisy = 0;

	for (size_t i = 0; i < n->count; i++) {
		noisy += n->record[i]->noisy;
		sum_add(&tears[n->record[i]->noisy], tears_of(n->record[i]));
	}
	html_paragraph(
		page->out,
		"%zu of %zu cells are marked as noisy. Tears in noisy cells: %s; in others: %s.",
		noisy, n->count, NUMBER(tears[1]), NUMBER(tears[0]));
}

static void put_unknown(struct page *page, const struct noise *n)
{
	static const char *const told[WITNESSES] = {
		"steal time",		"involuntary switches",
		"interrupts",		"latency of the stores",
		"distance of the CPUs", "clock rate"
	};
	unsigned missing = 0;

	for (int w = 0; w < WITNESSES; w++) {
		if (n->have[w])
			continue;
		fputs(missing++ ? ", " : "<p class=\"missing\">Not recorded in any cell: ",
		      page->out);
		fputs(told[w], page->out);
	}
	if (missing)
		fputs(".</p>\n", page->out);
}

int section_noise(struct page *page)
{
	struct noise n = { 0 };
	int rc;

	if (!page->data->count) {
		html_missing(page->out, "The journals hold no cell.");
		return 0;
	}
	rc = collect_noise(&n, page->data);
	if (!rc) {
		put_noisy(page, &n);
		rc = draw_witnesses(page, &n);
	}
	if (!rc)
		put_unknown(page, &n);
	free(n.record);
	return rc;
}
