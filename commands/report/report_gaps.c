/* SPDX-License-Identifier: MIT */
/* Fetch gaps: their histogram, and the runs behind it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "commands/report/report.h"

/* Keys by which gaps, and stores, are added up. */
enum {
	GAP_CROSSING, /* in bytes */
	GAP_CURVE,    /* 0: old front, 1: new front; provoked 2 and 3 */
	GAP_LOW,      /* of the bucket, ticks */
	GAP_HIGH,
};

struct gaps {
	struct tally buckets;
	struct tally stores; /* of the same crossing and provocation, in trials */
};

/* Runs whose stores are fenced apart are a control, and have no place in a figure. */
static bool is_control(const json_t *run)
{
	const json_t *cell = json_object_get(run, "cell");

	return strcmp(json_text_of(cell, "protocol"), "membarrier") == 0;
}

static void add_run(struct gaps *g, const json_t *run)
{
	const json_t *cell = json_object_get(run, "cell"), *kind, *row;
	int crossing = crossing_parse(json_text_of(cell, "crossing"));
	const char *provokers = json_string_value(json_object_get(cell, "provokers"));
	uint64_t stores = json_count(json_object_get(run, "stores")), bytes;
	uint64_t provoked = provokers && strcmp(provokers, "none") != 0;
	size_t i, k;

	if (crossing < 0 || !stores || is_control(run))
		return;
	bytes = crossing_bytes((enum crossing)crossing);
	tally_add(&g->stores, &(struct tally_row){ .key = { bytes, provoked }, .trials = stores });
	json_array_foreach(json_object_get(run, "kinds"), i, kind)
	{
		uint64_t which = strcmp(json_text_of(kind, "kind"), "old-front") != 0;

		json_array_foreach(json_object_get(kind, "histogram"), k, row)
		{
			struct tally_row bucket = {
				.key = { bytes, which + 2 * provoked,
					 json_count(json_array_get(row, 0)),
					 json_count(json_array_get(row, 1)) },
				.events = json_count(json_array_get(row, 2)),
			};

			if (bucket.events)
				tally_add(&g->buckets, &bucket);
		}
	}
}

static void print_buckets(FILE *stream, const void *arg)
{
	const struct gaps *g = arg;

	fputs("# crossing curve low high gaps stores\n"
	      "# curve: 0 old front with new back, 1 new front with old back; 2 and 3 the same, "
	      "provoked; ticks\n",
	      stream);
	for (size_t i = 0; i < g->buckets.count; i++) {
		const struct tally_row *b = &g->buckets.row[i];
		const uint64_t of[TALLY_KEYS] = { b->key[GAP_CROSSING], b->key[GAP_CURVE] / 2 };

		tally_put(stream, b, GAP_HIGH + 1);
		fprintf(stream, "%" PRIu64 "\n", tally_find(&g->stores, of)->trials);
	}
}

int section_gaps(struct html_page *page)
{
	char crossings[48];
	char ticks[24];
	const char *const args[] = { crossings, ticks, NULL };
	struct gaps g = { 0 };
	const struct page_figure figure = {
		.name = "gaps",
		.picture = { print_buckets, &g, "gaps.gp", args },
		.label = "Fetch gaps by kind and crossing.",
		.caption =
			"Fetch gaps per million stores, by kind and crossing: a stroke is as wide "
			"as its bucket, and where there is none, none was seen. Each gap is a "
			"lower bound of the time between the two fetches of one instruction.",
	};
	FILE *out = page->out;
	const json_t *run;
	size_t i = 0, count = 0;
	int rc = 0;

	for (; (run = line_next(page->data, "gaps", &i)); count++)
		add_run(&g, run);
	if (!count)
		return 1;
	snprintf(ticks, sizeof(ticks), "%.9g", (double)page->data->identity.tsc_khz / 1000);
	tally_words(&g.buckets, 1, GAP_CROSSING, crossings, sizeof(crossings));
	if (g.buckets.failed || g.stores.failed)
		rc = -ENOMEM;
	else if (g.buckets.count)
		rc = page_figure(page, &figure);
	else
		html_missing(out, "No gap was seen in these runs.");
	tally_free(&g.buckets);
	tally_free(&g.stores);
	if (rc)
		return rc;
	html_fold(out, "%zu run%s of the gap oracle", count, S(count));
	html_table(
		out,
		"Longest and TSC error in microseconds. Discarded: pairs that a pre-emption, a "
		"late "
		"stamp or a wrapped generation may have faked.",
		"crossing\t#split\tprovokers\t#stores\t#old front\t#longest\t#new front\t#longest\t"
		"#discarded\t#TSC error\tcommand");
	for (i = 0; (run = line_next(page->data, "gaps", &i));) {
		const json_t *cell = json_object_get(run, "cell");
		const char *outcome = json_string_value(json_object_get(run, "outcome"));
		bool early = outcome && strcmp(outcome, "done") != 0;

		html_line(out, NULL, "tntn", "%s\t%s\t%s%s%s%s\t%s", json_text_of(cell, "crossing"),
			  NUMBER_OF(cell, "split"), json_text_of(cell, "provokers"),
			  is_control(run) ? " (membarrier between: control)" : "",
			  early ? ", " : "", early ? outcome : "", NUMBER_OF(run, "stores"));
		for (int k = 0; k < GAP_KINDS; k++) {
			const json_t *kind = json_find(json_object_get(run, "kinds"), "kind",
						       gap_kind_name((enum gap_kind)k));
			const json_t *longest = json_array_get(json_object_get(kind, "tail"), 0);

			html_cells(out, "nn", "%s\t%s", NUMBER_OF(kind, "count"),
				   json_is_number(longest)
					   ? NUMBER(ticks_us(page, json_number_value(longest)))
					   : "none");
		}
		html_cells(out, "nn", "%s\t%s", NUMBER_OF(run, "faked"),
			   NUMBER(ticks_us(page, json_real_of(run, "offset_error"))));
		html_code(out, "%s", json_text_of(run, "command"));
	}
	html_folded_table_end(out);
	return 0;
}
