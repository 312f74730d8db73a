/* SPDX-License-Identifier: MIT */
/*
 * Every tear: when it came, which cell it was in, and how to run that one again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"
#include "results/figures/gnuplot.h"

#define EVENTS_SHOWN 100
#define COMMAND_MAX  1024

static bool is_broken(const struct cell_record *r)
{
	return protocol_is_broken(r->cell.protocol);
}

/* The wait that a record's tears speak against. */
static uint64_t torn_wait(const struct cell_record *r)
{
	const uint64_t *tears = r->result.tears;
	uint64_t first = tears[TEAR_OTHER] || tears[TEAR_OLD_FRONT] ? r->cell.first_wait : 0;
	uint64_t second = tears[TEAR_OTHER] || tears[TEAR_NEW_FRONT] ? r->cell.second_wait : 0;

	return first > second ? first : second;
}

/* --- Events -------------------------------------------------------------------------- */

struct event {
	const struct cell_record *record;
	const struct tear_event *tear;
};

struct events {
	struct event *event;
	size_t count;
};

static int by_wait(const void *a, const void *b)
{
	const struct event *p = a, *q = b;
	uint64_t first = torn_wait(p->record), second = torn_wait(q->record);

	if (first != second)
		return first > second ? -1 : 1;
	if (p->record != q->record)
		return p->record < q->record ? -1 : 1;
	return (p->tear > q->tear) - (p->tear < q->tear);
}

static size_t count_events(const struct journal_data *data)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++)
		if (!is_broken(&data->records[i]))
			count += data->records[i].result.events;
	return count;
}

static int collect_events(struct events *e, const struct journal_data *data)
{
	e->event = calloc(count_events(data) + 1, sizeof(*e->event));
	if (!e->event)
		return -ENOMEM;
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		for (unsigned n = 0; n < r->result.events && !is_broken(r); n++)
			e->event[e->count++] = (struct event){ r, &r->result.event[n] };
	}
	qsort(e->event, e->count, sizeof(*e->event), by_wait);
	return 0;
}

static void print_events(FILE *stream, const void *arg)
{
	const struct events *e = arg;

	fputs("# first_wait second_wait crossing kind toggle executor after_int3 after_front "
	      "latency_int3 latency_back latency_front waited_first waited_second step_first "
	      "step_second key\n",
	      stream);
	for (size_t i = 0; i < e->count; i++) {
		const struct cell *c = &e->event[i].record->cell;
		const struct tear_event *t = e->event[i].tear;

		fprintf(stream, "%" PRIu64 " %" PRIu64 " %s %s %" PRIu64 " %u %" PRId64 " %" PRId64,
			c->first_wait, c->second_wait, crossing_name(c->crossing),
			tear_kind_name(t->kind), t->toggle, t->executor, t->after_int3,
			t->after_front);
		for (int k = 0; k < 3; k++)
			fprintf(stream, " %" PRIu64, t->latency[k]);
		fprintf(stream, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " \"%s\"\n",
			t->waited[0], t->waited[1], t->step[0], t->step[1],
			e->event[i].record->key);
	}
}

static void put_event(FILE *out, const struct event *e)
{
	const struct tear_event *t = e->tear;
	const struct cell *c = &e->record->cell;
	char names[PROVOKERS_MAX];

	html_row(out, NULL);
	html_cell(out, "%s", tear_kind_name(t->kind));
	html_number(out, "%" PRIu64 " / %" PRIu64, c->first_wait, c->second_wait);
	html_cell(out, "%s %s %u|%u, %s", placement_name(c->placement), crossing_name(c->crossing),
		  c->split, 5 - c->split, provokers_name(c->provokers, names));
	html_number(out, "%" PRId64, t->after_int3);
	html_number(out, "%" PRId64, t->after_front);
	html_number(out, "%" PRIu64 " / %" PRIu64 " / %" PRIu64, t->latency[0], t->latency[1],
		    t->latency[2]);
	html_number(out, "%" PRIu64 " / %" PRIu64, t->waited[0], t->waited[1]);
	html_number(out, "%" PRIu64 " / %" PRIu64, t->step[0], t->step[1]);
}

static void put_events(struct page *page, const struct events *e)
{
	static const char *const headings[] = {
		"kind",	       "#waits",	 "cell",
		"#after INT3", "#after front",	 "#INT3 / back / front",
		"#waited",     "#longest steps", NULL
	};
	FILE *out = page->out;

	html_table(
		out,
		"In ticks, the longest waits first. After: from the lock byte's visibility, and "
		"from the end of the patch (negative: still under way), to the moment when the "
		"executor counted it. Then how long each store took to be visible, how long was "
		"really waited, and the longest time between two looks at the clock in each wait.",
		headings);
	for (size_t i = 0; i < e->count && i < EVENTS_SHOWN; i++)
		put_event(out, &e->event[i]);
	html_table_end(out);
	fputs("<p>", out);
	if (e->count > EVENTS_SHOWN)
		html_format(out, "%d of %zu are shown. ", EVENTS_SHOWN, e->count);
	html_format(out, "A cell keeps its first %d. All of them: ", TEAR_EVENTS_MAX);
	fputs("<a href=\"events.dat\">events.dat</a>.</p>\n", out);
}

static int write_events(struct page *page, const struct events *e)
{
	char prefix[PICTURE_PATH];
	struct picture files;

	if (page_path(page, "events", prefix, sizeof(prefix)) || picture_name(&files, prefix))
		return -ENAMETOOLONG;
	return picture_write_data(&files, print_events, e);
}

int section_events(struct page *page)
{
	struct events e = { 0 };
	int rc = collect_events(&e, page->data);

	if (!rc && !e.count)
		html_missing(page->out,
			     "No cell recorded when its tears came: there were none, or the "
			     "journals are older than that.");
	else if (!rc)
		rc = write_events(page, &e);
	if (!rc && e.count)
		put_events(page, &e);
	free(e.event);
	return rc;
}

/* --- Cells ----------------------------------------------------------------------------- */

static double rate(const struct cell_record *r)
{
	return r->result.toggles ? (double)record_tears(r) / (double)r->result.toggles : 1;
}

static bool is_worse(const struct cell_record *r, const struct cell_record *than)
{
	if (!than || torn_wait(r) != torn_wait(than))
		return !than || torn_wait(r) > torn_wait(than);
	return rate(r) > rate(than);
}

/* The longest wait that tore, then the highest rate. */
static const struct cell_record *worst_of(const struct journal_data *data)
{
	const struct cell_record *worst = NULL;

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (r->cell.protocol == PROTOCOL_WAIT && record_tears(r) && is_worse(r, worst))
			worst = r;
	}
	return worst;
}

/* An estimate of before the ladder names it by its key: "worst" in schema 1, then "torn_cell". */
static const struct cell_record *worst_named(const struct journal_data *data)
{
	const json_t *e = line_last(data, "estimate");
	const char *key = json_string_value(json_object_get(e, "torn_cell"));

	if (!key)
		key = json_text_of(e, "worst");
	for (size_t i = 0; i < data->count; i++)
		if (strcmp(data->records[i].key, key) == 0 && record_tears(&data->records[i]))
			return &data->records[i];
	return NULL;
}

static void put_command(FILE *out, const struct cell *cell)
{
	char command[COMMAND_MAX];

	cell_command(cell, command, sizeof(command));
	fputs("<code>", out);
	html_text(out, command);
	fputs("</code>", out);
}

static void put_worst(struct page *page)
{
	const struct cell_record *named = worst_named(page->data);
	const struct cell_record *worst = named ? named : worst_of(page->data);

	if (!worst) {
		html_missing(page->out,
			     "No cell of the library's own protocol tore, so there is no worst "
			     "one to run again.");
		return;
	}
	html_paragraph(page->out,
		       "The worst cell%s: %s tear%s in %s toggles, at waits of %" PRIu64
		       " and %" PRIu64 " ticks. This runs it again:",
		       named ? ", as the estimate names it" : "", NUMBER(record_tears(worst)),
		       record_tears(worst) == 1 ? "" : "s", NUMBER(worst->result.toggles),
		       worst->cell.first_wait, worst->cell.second_wait);
	fputs("<pre>", page->out);
	put_command(page->out, &worst->cell);
	fputs("</pre>\n", page->out);
}

/* What versions before the ladder found hardest at their last waits. */
static void put_hardest(struct page *page)
{
	const json_t *list = json_object_get(line_last(page->data, "estimate"), "worst"), *worst;
	FILE *out = page->out;
	size_t i;

	if (!json_array_size(list))
		return;
	fputs("<p>The hardest cells at the waits of the estimate:</p>\n<pre>", out);
	json_array_foreach(list, i, worst)
	{
		fputs("<code>", out);
		html_text(out, json_text_of(worst, "command"));
		fputs("</code>\n", out);
	}
	fputs("</pre>\n", out);
}

static void put_cell(FILE *out, const struct cell_record *r)
{
	const uint64_t *tears = r->result.tears;

	html_row(out, NULL);
	html_cell(out, "%s%s", r->stage, r->noisy ? ", noisy" : "");
	html_number(out, "%" PRIu64 " / %" PRIu64, r->cell.first_wait, r->cell.second_wait);
	html_number(out, "%s", NUMBER(r->result.toggles));
	for (int kind = 0; kind < TEAR_KINDS; kind++)
		html_number(out, "%s", NUMBER(tears[kind]));
	html_cell(out, "%s", outcome_name(r->result.outcome));
	fputs("<td>", out);
	put_command(out, &r->cell);
	fputs("</td>", out);
}

static bool is_listed(const struct cell_record *r)
{
	return !is_broken(r) && record_tears(r);
}

static void put_cells(struct page *page, size_t count)
{
	static const char *const headings[] = { "stage",      "#waits",	       "#toggles",
						"#old front", "#new front",    "#other",
						"outcome",    "runs it again", NULL };
	FILE *out = page->out;

	fprintf(out, "<details><summary>All %zu cells with tears</summary>\n", count);
	html_table(out, NULL, headings);
	for (size_t i = 0; i < page->data->count; i++)
		if (is_listed(&page->data->records[i]))
			put_cell(out, &page->data->records[i]);
	html_table_end(out);
	fputs("</details>\n", out);
}

int section_cells(struct page *page)
{
	size_t count = 0, broken = 0;

	for (size_t i = 0; i < page->data->count; i++) {
		const struct cell_record *r = &page->data->records[i];

		count += is_listed(r);
		broken += is_broken(r) && record_tears(r);
	}
	put_worst(page);
	put_hardest(page);
	if (count)
		put_cells(page, count);
	html_paragraph(
		page->out,
		"Protocols that are broken on purpose tore in %zu more cells, as they should.",
		broken);
	return 0;
}
