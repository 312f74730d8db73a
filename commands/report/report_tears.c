/* SPDX-License-Identifier: MIT */
/* Every tear: when it came, which cell it was in, and how to run that one again. */
#include <errno.h>
#include <inttypes.h>

#include "commands/report/report.h"
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
	uint64_t first = tears[TEAR_OTHER] || tears[TEAR_OLD_FRONT] ? r->cell.waits.first : 0;
	uint64_t second = tears[TEAR_OTHER] || tears[TEAR_NEW_FRONT] ? r->cell.waits.second : 0;

	return first > second ? first : second;
}

/* Records by the wait that tore, the longest first: the key is its complement, and the place. */
struct events {
	const struct journal_data *data;
	struct tally records;
	size_t count; /* of events */
};

static const struct cell_record *record_of(const struct events *e, size_t i)
{
	return &e->data->records[e->records.row[i].key[1]];
}

static void print_events(FILE *stream, const void *arg)
{
	const struct events *e = arg;

	fputs("# first_wait second_wait crossing kind toggle executor after_int3 after_front "
	      "latency_int3 latency_back latency_front waited_first waited_second step_first "
	      "step_second key\n",
	      stream);
	for (size_t i = 0; i < e->records.count; i++) {
		const struct cell_record *r = record_of(e, i);
		const struct tear_event *t = r->result.event;

		for (; t < r->result.event + r->result.events; t++)
			fprintf(stream,
				"%" PRIu64 " %" PRIu64 " %s %s %" PRIu64 " %u %" PRId64 " %" PRId64
				" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				" %" PRIu64 " %" PRIu64 " \"%s\"\n",
				r->cell.waits.first, r->cell.waits.second,
				crossing_name(r->cell.crossing), tear_kind_name(t->kind), t->toggle,
				t->executor, t->after_int3, t->after_front, t->latency[0],
				t->latency[1], t->latency[2], t->waited[0], t->waited[1],
				t->step[0], t->step[1], r->key);
	}
}

int section_events(struct page *page)
{
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64], names[PROVOKERS_MAX];
	struct events e = { .data = page->data };
	const struct picture data = { print_events, &e, NULL, NULL };
	FILE *out = page->out;
	size_t shown;
	int rc;

	for (size_t i = 0; i < e.data->count; i++) {
		const struct cell_record *r = &e.data->records[i];

		if (is_broken(r) || !r->result.events)
			continue;
		tally_add(&e.records, &(struct tally_row){ .key = { ~torn_wait(r), i } });
		e.count += r->result.events;
	}
	rc = e.records.failed ? -ENOMEM : page_path(page, "events", prefix, sizeof(prefix));
	if (!rc && !e.count)
		html_missing(out, "No cell recorded when its tears came: there were none, or the "
				  "journals are older than that.");
	else if (!rc)
		rc = picture_make(&data, prefix, why, sizeof(why));
	if (rc || !e.count)
		goto out;
	shown = e.count < EVENTS_SHOWN ? e.count : EVENTS_SHOWN;
	html_fold(out, "%zu tear%s, the longest waits first", shown, S(shown));
	html_table(
		out,
		"In ticks. After: from the lock byte's visibility, and "
		"from the end of the patch (negative: still under way), to the moment when the "
		"executor counted it. Then how long each store took to be visible, how long was "
		"really waited, and the longest time between two looks at the clock in each wait.",
		"kind\t#waits\tcell\t#after INT3\t#after front\t#INT3 / back / front\t#waited\t"
		"#longest steps");
	for (size_t i = 0, left = shown; left; i++) {
		const struct cell_record *r = record_of(&e, i);
		const struct cell *c = &r->cell;
		const struct tear_event *t = r->result.event;

		for (; t < r->result.event + r->result.events && left; t++, left--)
			html_line(
				out, NULL, "tntnnnnn",
				"%s\t%s / %s\t%s %s %u|%u, %s\t%s\t%s\t%s / %s / %s\t%s / %s\t%s / "
				"%s",
				tear_kind_name(t->kind), NUMBER(c->waits.first),
				NUMBER(c->waits.second), placement_name(c->placement),
				crossing_name(c->crossing), c->split, 5 - c->split,
				provokers_name(c->provokers, names), NUMBER(t->after_int3),
				NUMBER(t->after_front), NUMBER(t->latency[0]),
				NUMBER(t->latency[1]), NUMBER(t->latency[2]), NUMBER(t->waited[0]),
				NUMBER(t->waited[1]), NUMBER(t->step[0]), NUMBER(t->step[1]));
	}
	html_folded_table_end(out);
	fputs("<p>", out);
	if (e.count > shown)
		html_format(out, "%zu of %zu are shown. ", shown, e.count);
	html_format(out, "A cell keeps its first %d. All of them: ", TEAR_EVENTS_MAX);
	fputs("<a href=\"events.dat\">events.dat</a>.</p>\n", out);
out:
	tally_free(&e.records);
	return rc;
}

static double rate_of(const struct cell_record *r)
{
	return r->result.toggles ? (double)record_tears(r) / (double)r->result.toggles : 1;
}

/* The one with the longest wait that tore, then the highest rate. */
static const struct cell_record *worst_of(const struct journal_data *data)
{
	const struct cell_record *worst = NULL;

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (r->cell.protocol != PROTOCOL_WAIT || !record_tears(r))
			continue;
		if (!worst || torn_wait(r) > torn_wait(worst) ||
		    (torn_wait(r) == torn_wait(worst) && rate_of(r) > rate_of(worst)))
			worst = r;
	}
	return worst;
}

int section_cells(struct page *page)
{
	const struct journal_data *data = page->data;
	size_t count = 0, broken = 0;
	char command[COMMAND_MAX];
	FILE *out = page->out;
	const struct cell_record *worst = worst_of(page->data);

	if (!worst) {
		html_missing(out,
			     "No cell of the library's own protocol tore, so there is no worst "
			     "one to run again.");
	} else {
		html_paragraph(out,
			       "The worst cell: %s tear%s in %s toggles, at waits of %s and %s "
			       "ticks. This runs it again:",
			       NUMBER(record_tears(worst)), S(record_tears(worst)),
			       NUMBER(worst->result.toggles), NUMBER(worst->cell.waits.first),
			       NUMBER(worst->cell.waits.second));
		cell_command(&worst->cell, command, sizeof(command));
		html_between(out, "<pre><code>", "</code></pre>\n", "%s", command);
	}
	for (size_t k = 0; k < data->count; k++) {
		const struct cell_record *r = &data->records[k];

		count += !is_broken(r) && record_tears(r);
		broken += is_broken(r) && record_tears(r);
	}
	if (count) {
		html_fold(out, "All %zu cells with tears", count);
		html_table(out, NULL,
			   "stage\t#waits\t#toggles\t#old front\t#new front\t#other\toutcome\t"
			   "runs it again");
	}
	for (size_t k = 0; k < data->count; k++) {
		const struct cell_record *r = &data->records[k];
		const uint64_t *tears = r->result.tears;

		if (is_broken(r) || !record_tears(r))
			continue;
		cell_command(&r->cell, command, sizeof(command));
		html_line(out, NULL, "tnnnnnt", "%s%s\t%s / %s\t%s\t%s\t%s\t%s\t%s", r->stage,
			  r->noisy ? ", noisy" : "", NUMBER(r->cell.waits.first),
			  NUMBER(r->cell.waits.second), NUMBER(r->result.toggles),
			  NUMBER(tears[TEAR_OLD_FRONT]), NUMBER(tears[TEAR_NEW_FRONT]),
			  NUMBER(tears[TEAR_OTHER]), outcome_name(r->result.outcome));
		html_code(out, "%s", command);
	}
	if (count)
		html_folded_table_end(out);
	if (broken)
		html_paragraph(
			out,
			"Protocols that are broken on purpose tore in %zu more cell%s, as they "
			"should.",
			broken, S(broken));
	return 0;
}
