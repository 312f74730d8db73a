/* SPDX-License-Identifier: MIT */
/*
 * The verdict and T_max, as the last estimate of the journals has them.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "calibrate/html.h"
#include "calibrate/report_page.h"

static void put_wait(FILE *out, const struct page *page, double ticks)
{
	html_format(out, "%s ticks (%.2f us)", NUMBER(ticks), ticks_us(page, ticks));
}

static void put_waits(struct page *page, const json_t *e, const json_t *claim)
{
	FILE *out = page->out;
	double stretch = json_real_of(e, "stretch");

	fputs("a first wait of ", out);
	put_wait(out, page, json_real_of(claim, "first_wait"));
	fputs(" and a second of ", out);
	put_wait(out, page, json_real_of(claim, "second_wait"));
	if (stretch > 0)
		html_format(out, ", each at least %s times as long as the store before it took",
			    NUMBER(stretch));
}

/* "After a first wait of ... at most 1 toggle in ... tears, ..." */
static void put_bound(struct page *page, const json_t *e, const json_t *claim, const char *where)
{
	double p = json_real_of(claim, "upper_p"), toggles = json_real_of(claim, "toggles");
	double tears = json_real_of(claim, "tears");
	FILE *out = page->out;

	fputs("<p>", out);
	html_text(out, where);
	if (!(toggles > 0) || !(p > 0 && p < 1)) {
		fputs(*where ? "too little was measured after " : "Too little was measured after ",
		      out);
		put_waits(page, e, claim);
		html_format(out, " to say anything of them; %s tear%s seen.",
			    tears > 0 ? NUMBER(tears) : "no", tears == 1 ? "" : "s");
		fputs("</p>\n", out);
		return;
	}
	fputs(*where ? "after " : "After ", out);
	put_waits(page, e, claim);
	html_format(out,
		    ", at most 1 toggle in %s tears, with %.0f %% confidence, measured in %s "
		    "toggles; %s tear%s seen.",
		    NUMBER(1 / p), 100 * json_real_of(e, "confidence"), NUMBER(toggles),
		    tears > 0 ? NUMBER(tears) : "no", tears == 1 ? "" : "s");
	if (json_is_true(json_object_get(claim, "drifted")))
		fputs(" The rate drifted, so this is the bound of the worst time.", out);
	fputs("</p>\n", out);
}

/* Older journals claim the same for all crossings together. */
static void put_bounds(struct page *page, const json_t *e)
{
	const json_t *claims = json_object_get(e, "claims"), *claim;
	size_t i;

	if (!json_array_size(claims))
		put_bound(page, e, e, "");
	json_array_foreach(claims, i, claim)
	{
		bool paged = strcmp(json_text_of(claim, "crossing"), "page") == 0;

		put_bound(page, e, claim,
			  paged ? "Sites that cross a page: "
				: "Sites that cross a line in a page: ");
	}
}

static void put_torn(struct page *page, const json_t *e, const char *name, const char *what)
{
	double wait = json_real_of(e, name);

	if (isnan(wait))
		html_paragraph(page->out,
			       "No %s wait tore, not even 0: it is bounded from above only.", what);
	else
		html_paragraph(page->out,
			       "The longest %s wait that still tore was %s ticks (%.2f us).", what,
			       NUMBER(wait), ticks_us(page, wait));
}

static const char *torn_text(const json_t *section, const char *name, char buf[NUMBER_TEXT])
{
	double wait = json_real_of(section, name);

	return isnan(wait) ? "none" : number_text(buf, wait);
}

/* The section known least well of each crossing is what the crossing can be given. */
struct crossing_sum {
	double p, toggles, tears, torn[2];
};

static void crossing_add(struct crossing_sum *sum, const json_t *section)
{
	static const char *const torn[] = { "torn_first", "torn_second" };

	sum->p = fmax(sum->p, json_real_of(section, "upper_p"));
	sum->toggles += json_real_of(section, "toggles");
	sum->tears += json_real_of(section, "tears");
	for (int i = 0; i < 2; i++)
		sum->torn[i] = fmax(sum->torn[i], json_real_of(section, torn[i]));
}

static struct crossing_sum crossing_sum(const json_t *sections, const char *name)
{
	struct crossing_sum sum = { .torn = { NAN, NAN } };
	const json_t *section;
	size_t i;

	json_array_foreach(sections, i, section) if (strcmp(json_text_of(section, "crossing"),
							    name) == 0) crossing_add(&sum, section);
	return sum;
}

static json_t *torn_json(double wait)
{
	return isnan(wait) ? json_null() : json_real(wait);
}

/* What a claim would be, from an estimate that has none. NULL: no memory. */
static json_t *claim_of_sections(const json_t *e, const char *crossing)
{
	struct crossing_sum sum = crossing_sum(json_object_get(e, "sections"), crossing);

	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "crossing", crossing,
			 "first_wait", json_number_value(json_object_get(e, "first_wait")),
			 "second_wait", json_number_value(json_object_get(e, "second_wait")),
			 "toggles", sum.toggles, "tears", sum.tears, "upper_p", sum.p, "torn_first",
			 torn_json(sum.torn[0]), "torn_second", torn_json(sum.torn[1]));
}

static void put_claim(FILE *out, const json_t *claim)
{
	char torn[2][NUMBER_TEXT];
	double toggles = json_real_of(claim, "toggles"), tears = json_real_of(claim, "tears");

	html_row(out, tears > 0 ? "bad" : NULL);
	html_cell(out, "%s", json_text_of(claim, "crossing"));
	html_number(out, "%s", NUMBER(json_real_of(claim, "first_wait")));
	html_number(out, "%s", NUMBER(json_real_of(claim, "second_wait")));
	html_number(out, "%s", NUMBER(toggles));
	html_number(out, "%s", NUMBER(tears));
	html_number(out, "%s", toggles > 0 ? NUMBER(json_real_of(claim, "upper_p")) : "unknown");
	html_number(out, "%s", torn_text(claim, "torn_first", torn[0]));
	html_number(out, "%s", torn_text(claim, "torn_second", torn[1]));
}

static int put_claims(FILE *out, const json_t *e)
{
	const json_t *claims = json_object_get(e, "claims"), *claim;
	size_t i;

	json_array_foreach(claims, i, claim)
	{
		put_claim(out, claim);
	}
	for (int c = CROSSING_LINE; c <= CROSSING_PAGE && !json_array_size(claims); c++) {
		json_t *made = claim_of_sections(e, crossing_name((enum crossing)c));

		if (!made)
			return -ENOMEM;
		put_claim(out, made);
		json_decref(made);
	}
	return 0;
}

static int put_crossings(struct page *page, const json_t *e)
{
	static const char *const headings[] = {
		"crossing", "#first wait",	   "#second wait",	   "#toggles", "#tears",
		"#p below", "#longest first torn", "#longest second torn", NULL
	};
	int rc;

	html_table(
		page->out,
		"T_max by what a site straddles, in ticks. Who patches no site across a page may "
		"look at the line alone.",
		headings);
	rc = put_claims(page->out, e);
	html_table_end(page->out);
	return rc;
}

/* Where a hypervisor moves its CPUs, that is half of the answer. */
static void put_distance(struct page *page, const json_t *e)
{
	const json_t *distance = json_object_get(e, "distance"), *claim;
	size_t i;

	if (!distance || json_real_of(distance, "far") == 0)
		return;
	html_paragraph(page->out,
		       "The CPUs were far apart in %s of %s cells: a cache line took twice as long "
		       "or more between them than at other times.",
		       NUMBER(json_real_of(distance, "far")),
		       NUMBER(json_real_of(distance, "cells")));
	json_array_foreach(json_object_get(e, "claims"), i, claim) html_paragraph(
		page->out, "Across a %s then: %s tears in %s toggles.",
		json_text_of(claim, "crossing"), NUMBER(json_real_of(claim, "far_tears")),
		NUMBER(json_real_of(claim, "far_toggles")));
}

static void put_sections(struct page *page, const json_t *e)
{
	static const char *const headings[] = { "placement",
						"crossing",
						"#toggles",
						"#tears",
						"#p below",
						"#longest first torn",
						"#longest second torn",
						NULL };
	char torn[2][NUMBER_TEXT];
	const json_t *section;
	FILE *out = page->out;
	size_t i;

	html_table(out, "At these waits, by placement and crossing.", headings);
	json_array_foreach(json_object_get(e, "sections"), i, section)
	{
		html_row(out, json_real_of(section, "tears") > 0 ? "bad" : NULL);
		html_cell(out, "%s", json_text_of(section, "placement"));
		html_cell(out, "%s", json_text_of(section, "crossing"));
		html_number(out, "%s", NUMBER(json_real_of(section, "toggles")));
		html_number(out, "%s", NUMBER(json_real_of(section, "tears")));
		html_number(out, "%s", NUMBER(json_real_of(section, "upper_p")));
		html_number(out, "%s", torn_text(section, "torn_first", torn[0]));
		html_number(out, "%s", torn_text(section, "torn_second", torn[1]));
	}
	html_table_end(out);
}

static void put_rest(struct page *page, const json_t *e)
{
	double margin = json_real_of(e, "margin"), pooled = json_real_of(e, "pooled_p");
	FILE *out = page->out;

	if (margin > 0)
		html_paragraph(out, "Margin of the waits over the longest that tore: %s.",
			       NUMBER(margin));
	if (pooled > 0 && pooled < 1)
		html_paragraph(
			out,
			"The bound is that of the placement and crossing known least well. If "
			"all were alike it would be 1 toggle in %s.",
			NUMBER(1 / pooled));
	if (json_real_of(e, "noisy") > 0)
		html_paragraph(
			out, "%s of the campaign's %s cells were too noisy to count their toggles.",
			NUMBER(json_real_of(e, "noisy")), NUMBER(json_real_of(e, "cells")));
	html_paragraph(out, "Atomic window: %s bytes (p below %s, %s stores).",
		       NUMBER(json_real_of(e, "window")), NUMBER(json_real_of(e, "window_p")),
		       NUMBER(json_real_of(e, "window_toggles")));
	if (json_is_false(json_object_get(e, "tears_here")))
		html_paragraph(out,
			       "Even the unprotected store never tore in this run: nothing here "
			       "shows what the waits are good for.");
}

static void put_verdict_box(struct page *page, const json_t *e)
{
	const char *verdict = json_text_of(e, "verdict");
	FILE *out = page->out;
	bool known = strcmp(verdict, "pass") == 0 || strcmp(verdict, "fail") == 0;

	fprintf(out, "<div class=\"verdict %s\"><p><strong>", known ? verdict : "inconclusive");
	html_text(out, verdict);
	fputs("</strong>: ", out);
	html_format(out, "%s.", json_text_of(e, "reason"));
	fputs("</p>", out);
	put_bounds(page, e);
	fputs("</div>\n", out);
}

static size_t count_lines(const struct journal_data *data, const char *type)
{
	size_t i = 0, count = 0;

	while (line_next(data, type, &i))
		count++;
	return count;
}

int section_verdict(struct page *page)
{
	const json_t *e = line_last(page->data, "estimate");
	size_t estimates = count_lines(page->data, "estimate");
	int rc;

	if (!e) {
		html_missing(page->out, "The journals hold no estimate: no calibration has ended, "
					"so there is no verdict and no T_max.");
		return 0;
	}
	put_verdict_box(page, e);
	if (estimates > 1)
		html_paragraph(page->out, "This is the last of %zu estimates, of %s.", estimates,
			       json_text_of(e, "date"));
	rc = put_crossings(page, e);
	put_distance(page, e);
	put_torn(page, e, "torn_first", "first");
	put_torn(page, e, "torn_second", "second");
	put_rest(page, e);
	put_sections(page, e);
	return rc;
}
