/* SPDX-License-Identifier: MIT */
/*
 * Fetch gaps: their histogram, the runs behind it, and the fits of their tail.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

struct bucket {
	enum crossing crossing;
	unsigned which; /* 0: old front, 1: new front */
	bool provoked;
	double low, high, count;
};

struct buckets {
	struct bucket *bucket;
	size_t count;
	double stores[CROSSING_COUNT][2]; /* by provocation */
};

/* --- Collecting ------------------------------------------------------------------ */

static const json_t *cell_of(const json_t *run)
{
	return json_object_get(run, "cell");
}

static bool is_provoked(const json_t *run)
{
	const char *provokers = json_string_value(json_object_get(cell_of(run), "provokers"));

	return provokers && strcmp(provokers, "none") != 0;
}

/* Runs whose stores are fenced apart are a control, and have no place in a figure. */
static bool is_control(const json_t *run)
{
	return strcmp(json_text_of(cell_of(run), "protocol"), "membarrier") == 0;
}

static bool take_bucket(struct buckets *b, struct bucket bucket, const json_t *row)
{
	bucket.low = json_number_value(json_array_get(row, 0));
	bucket.high = json_number_value(json_array_get(row, 1));
	bucket.count = json_number_value(json_array_get(row, 2));
	if (!(bucket.count > 0))
		return true;
	if ((b->count & (b->count - 1)) == 0) {
		size_t room = b->count ? 2 * b->count : 1;
		struct bucket *grown = reallocarray(b->bucket, room, sizeof(*grown));

		if (!grown)
			return false;
		b->bucket = grown;
	}
	b->bucket[b->count++] = bucket;
	return true;
}

static bool take_kind(struct buckets *b, struct bucket bucket, const json_t *kind)
{
	const json_t *row;
	size_t i;

	bucket.which = strcmp(json_text_of(kind, "kind"), "old-front") != 0;
	json_array_foreach(json_object_get(kind, "histogram"), i, row)
	{
		if (!take_bucket(b, bucket, row))
			return false;
	}
	return true;
}

static bool take_run(struct buckets *b, const json_t *run)
{
	int crossing = crossing_parse(json_text_of(cell_of(run), "crossing"));
	struct bucket bucket = { .provoked = is_provoked(run) };
	double stores = json_real_of(run, "stores");
	const json_t *kind;
	size_t i;

	if (crossing < 0 || !(stores > 0) || is_control(run))
		return true;
	bucket.crossing = (enum crossing)crossing;
	b->stores[crossing][bucket.provoked] += stores;
	json_array_foreach(json_object_get(run, "kinds"), i, kind)
	{
		if (!take_kind(b, bucket, kind))
			return false;
	}
	return true;
}

static int compare_buckets(const void *a, const void *b)
{
	const struct bucket *p = a, *q = b;

	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->which != q->which)
		return p->which < q->which ? -1 : 1;
	if (p->provoked != q->provoked)
		return p->provoked ? 1 : -1;
	if (p->low < q->low || p->low > q->low)
		return p->low < q->low ? -1 : 1;
	return (p->high > q->high) - (p->high < q->high);
}

static void merge_buckets(struct buckets *b)
{
	size_t kept = 0;

	if (b->count)
		qsort(b->bucket, b->count, sizeof(*b->bucket), compare_buckets);
	for (size_t i = 0; i < b->count; i++) {
		if (kept && compare_buckets(&b->bucket[kept - 1], &b->bucket[i]) == 0)
			b->bucket[kept - 1].count += b->bucket[i].count;
		else
			b->bucket[kept++] = b->bucket[i];
	}
	b->count = kept;
}

/* --- The figure ------------------------------------------------------------------ */

static void print_buckets(FILE *stream, const void *arg)
{
	const struct buckets *b = arg;

	fputs("# crossing which provoked low high gaps stores\n"
	      "# which: 0 old front with new back, 1 new front with old back; ticks\n",
	      stream);
	for (size_t i = 0; i < b->count; i++) {
		const struct bucket *k = &b->bucket[i];

		fprintf(stream, "%u %u %d %.0f %.0f %.0f %.0f\n", crossing_bytes(k->crossing),
			k->which, k->provoked, k->low, k->high, k->count,
			b->stores[k->crossing][k->provoked]);
	}
}

static int put_histogram(struct page *page, const struct buckets *b)
{
	char crossings[48] = "";
	const char *const args[] = { crossings, NULL };
	const struct page_figure figure = {
		.name = "gaps",
		.script = "gaps.gp",
		.label = "Histogram of the fetch gaps by kind and crossing",
		.caption =
			"Fetch gaps per million stores, by kind and crossing. Each gap is a lower "
			"bound of the time between the two fetches of one instruction.",
		.print = print_buckets,
		.arg = b,
		.args = args,
	};
	size_t length = 0;

	if (!b->count) {
		html_missing(page->out, "No gap was seen in these runs.");
		return 0;
	}
	for (size_t i = 0; i < b->count; i++)
		if (!i || b->bucket[i].crossing != b->bucket[i - 1].crossing)
			length += (size_t)snprintf(crossings + length, sizeof(crossings) - length,
						   "%s%u", length ? " " : "",
						   crossing_bytes(b->bucket[i].crossing));
	return page_figure(page, &figure);
}

/* --- The runs ---------------------------------------------------------------------- */

static const json_t *kind_of(const json_t *run, const char *name)
{
	const json_t *kind;
	size_t i;

	json_array_foreach(json_object_get(run, "kinds"), i, kind)
	{
		if (strcmp(json_text_of(kind, "kind"), name) == 0)
			return kind;
	}
	return NULL;
}

static void put_kind(FILE *out, const json_t *kind)
{
	const json_t *longest = json_array_get(json_object_get(kind, "tail"), 0);

	html_number(out, "%s", NUMBER(json_real_of(kind, "count")));
	html_number(out, "%s",
		    json_is_number(longest) ? NUMBER(json_number_value(longest)) : "none");
}

/* How, if it did not run to its end. */
static const char *ended_early(const json_t *run)
{
	const char *outcome = json_string_value(json_object_get(run, "outcome"));

	return outcome && strcmp(outcome, "done") != 0 ? outcome : NULL;
}

static void put_run(FILE *out, const json_t *run)
{
	const json_t *cell = cell_of(run);
	double ratio = json_real_of(run, "rate") / json_real_of(run, "bare_rate");
	const char *ended = ended_early(run);

	html_row(out, NULL);
	html_cell(out, "%s", json_text_of(cell, "crossing"));
	html_number(out, "%s", NUMBER(json_real_of(cell, "split")));
	html_cell(out, "%s%s%s%s", json_text_of(cell, "provokers"),
		  is_control(run) ? " (membarrier between: control)" : "", ended ? ", " : "",
		  ended ? ended : "");
	html_number(out, "%s", NUMBER(json_real_of(run, "stores")));
	put_kind(out, kind_of(run, "old-front"));
	put_kind(out, kind_of(run, "new-front"));
	html_number(out, "%s", NUMBER(json_real_of(run, "faked")));
	html_number(out, "%s", isfinite(ratio) ? NUMBER(ratio) : "?");
	html_number(out, "%s", NUMBER(json_real_of(run, "offset_error")));
	fputs("<td><code>", out);
	html_text(out, json_text_of(run, "command"));
	fputs("</code></td>", out);
}

static void put_runs(struct page *page)
{
	static const char *const headings[] = { "crossing",   "#split",	  "provokers",	"#stores",
						"#old front", "#longest", "#new front", "#longest",
						"#discarded", "#speed",	  "#TSC error", "command",
						NULL };
	const json_t *run;
	size_t i = 0;

	html_table(
		page->out,
		"Runs of the gap oracle; longest and TSC error in ticks. Discarded: pairs that a "
		"pre-emption, a late stamp or a wrapped generation may have faked. Speed: stores "
		"per second by those of a bare loop.",
		headings);
	while ((run = line_next(page->data, "gaps", &i)))
		put_run(page->out, run);
	html_table_end(page->out);
}

int section_gaps(struct page *page)
{
	struct buckets b = { 0 };
	const json_t *run;
	bool whole = true;
	size_t i = 0;
	int rc;

	if (!line_last(page->data, "gaps")) {
		html_missing(page->out,
			     "The journals hold no run of the gap oracle (tmax gaps), so "
			     "there is no histogram of fetch gaps.");
		return 0;
	}
	while (whole && (run = line_next(page->data, "gaps", &i)))
		whole = take_run(&b, run);
	merge_buckets(&b);
	rc = whole ? put_histogram(page, &b) : -ENOMEM;
	free(b.bucket);
	if (!rc)
		put_runs(page);
	return rc;
}

/* --- Fits ---------------------------------------------------------------------------- */

static void put_level(FILE *out, const json_t *fit, const char *name)
{
	double level = json_real_of(fit, name);

	html_number(out, "%s", isnan(level) ? "none" : NUMBER(round(level)));
}

static void put_fit(FILE *out, const json_t *fit)
{
	static const char *const numbers[] = {
		"stores",	  "threshold",	    "exceedances", "xi", "sigma",
		"independence_p", "stationarity_p", "fit_p",	   NULL
	};
	bool accepted = json_is_true(json_object_get(fit, "accepted"));

	html_row(out, accepted ? NULL : "gap");
	html_cell(out, "%s", json_text_of(fit, "crossing"));
	html_cell(out, "%s", json_text_of(fit, "kind"));
	html_cell(out, "%s%s", json_text_of(fit, "provokers"),
		  strcmp(json_text_of(fit, "source"), "gaps") == 0 ? "" : " (simulated)");
	html_cell(out, "%s%s",
		  accepted ? "accepted" : "refused: ", accepted ? "" : json_text_of(fit, "reason"));
	put_level(out, fit, "level");
	put_level(out, fit, "level_upper");
	for (size_t i = 0; numbers[i]; i++)
		html_number(out, "%s", NUMBER(json_real_of(fit, numbers[i])));
}

int section_tail(struct page *page)
{
	static const char *const headings[] = {
		"crossing",	   "kind",	   "provokers", "outcome",
		"#level (ticks)",  "#upper limit", "#stores",	"#threshold",
		"#exceedances",	   "#xi",	   "#sigma",	"#independence p",
		"#stationarity p", "#fit p",	   NULL
	};
	const json_t *fit = line_last(page->data, "tail");
	size_t i = 0;

	if (!fit) {
		html_missing(page->out,
			     "The journals hold no fit of a tail: nothing is extrapolated "
			     "here.");
		return 0;
	}
	html_paragraph(
		page->out,
		"Peaks over threshold with a generalised Pareto tail. An accepted fit proposes "
		"the wait that gaps exceed with probability %s per store (upper limit at %.0f %% "
		"confidence); nothing rests on it. A refused one proposes nothing.",
		NUMBER(json_real_of(fit, "target_p")), 100 * json_real_of(fit, "confidence"));
	html_table(page->out, NULL, headings);
	while ((fit = line_next(page->data, "tail", &i)))
		put_fit(page->out, fit);
	html_table_end(page->out);
	return 0;
}
