/* SPDX-License-Identifier: MIT */
/*
 * The verdict and the ladder, as the last estimate of the journals has them, and the counts behind
 * them.
 */
#include <math.h>
#include <string.h>

#include "commands/report/report.h"

static double ticks_us(const struct html_page *page, double ticks)
{
	uint64_t khz = page->data->identity.tsc_khz;

	return khz ? ticks * 1000 / (double)khz : NAN;
}

static char *waits_of_level(const json_t *level, char buf[WAITS_TEXT])
{
	return waits_text(&(struct waits){ json_count(json_object_get(level, "first")),
					   json_count(json_object_get(level, "second")),
					   json_count(json_object_get(level, "stretch")) },
			  buf);
}

const json_t *level_keeping(const json_t *e, double p)
{
	const json_t *level;
	size_t i;

	json_array_foreach(json_object_get(e, "levels"), i, level)
	{
		if (json_real_of(level, "stretch") > 0 && json_real_of(level, "upper_p") <= p)
			return level;
	}
	return NULL;
}

static void put_answer(struct html_page *page, const json_t *e)
{
	const json_t *window = json_object_get(e, "window"), *paper = json_object_get(e, "paper");
	const json_t *level = level_keeping(e, 1e-3), *next;
	const char *verdict = json_text_of(e, "verdict");
	bool known = strcmp(verdict, "pass") == 0 || strcmp(verdict, "fail") == 0;
	double runs = json_real_of(e, "runs"), barrier = json_real_of(e, "membarrier_ticks");
	char text[WAITS_TEXT], label[48];
	FILE *out = page->out;

	fprintf(out, "<div class=\"verdict %s\">", known ? verdict : "inconclusive");
	html_between(out, "<p><strong>", "</strong>: ", "%s", verdict);
	html_between(out, "", "</p>\n", "%s.", json_text_of(e, "reason"));
	fputs("<dl class=\"tiles\">\n", out);
	if (!level)
		html_tile(out, "T_max", "none", "", "no wait keeps tears below 1e-3");
	/* A level that keeps several decades stands for them at the least of them. */
	for (int decade = 3; decade <= 9 && level; decade++, level = next) {
		next = level_keeping(e, pow(10, -decade - 1));
		if (next == level && decade < 9)
			continue;
		snprintf(label, sizeof(label), "T_max(1e-%d)", decade);
		html_tile(out, label, waits_of_level(level, text), "ticks", "%s us a change",
			  NUMBER(ticks_us(page, json_real_of(level, "ticks"))));
	}
	if (barrier > 0)
		html_tile(out, "membarrier", NUMBER(ticks_us(page, barrier)), "us",
			  "a change, without waits");
	if (json_is_true(json_object_get(window, "word_tore"))) {
		html_tile(out, "A single store", "tears", "", "nothing can be relied on here");
	} else if (window) {
		char bound[NUMBER_TEXT + 8] = "no bound";

		snprintf(label, sizeof(label), "One store in %s bytes", NUMBER_OF(window, "bytes"));
		if (json_real_of(window, "upper_p") < 1)
			snprintf(bound, sizeof(bound), "< %s", NUMBER_OF(window, "upper_p"));
		html_tile(out, label, bound, "", "no tear in %s stores",
			  NUMBER_OF(window, "toggles"));
	}
	if (json_is_true(json_object_get(paper, "found")))
		html_tile(out, "The paper's T_max", NUMBER_OF(paper, "wait"), "ticks",
			  "the lowest constant wait without a tear%s",
			  json_is_true(json_object_get(paper, "stays"))
				  ? ""
				  : "; longer waits tore again");
	else if (json_is_true(json_object_get(paper, "known")))
		html_tile(out, "The paper's T_max", "none", "", "every constant wait tore");
	fputs("</dl>\n", out);
	if (strcmp(json_text_of(e, "scope"), "long-run") == 0)
		html_paragraph(out, "With %s %% confidence for the long run, from %s runs.",
			       NUMBER(100 * json_real_of(e, "confidence")), NUMBER(runs));
	else
		html_paragraph(out, "With %s %% confidence for the time of %s run%s, and no more.",
			       NUMBER(100 * json_real_of(e, "confidence")), NUMBER(runs), S(runs));
	fputs("</div>\n", out);
}

static void put_ladder(FILE *out, const struct html_page *page, const json_t *e, bool stretched)
{
	static const char *const crossings[] = { "line", "page" };
	const json_t *level, *claim[2];
	char text[WAITS_TEXT];
	size_t i;

	html_table(out,
		   stretched
			   ? "The ladder. Waits are ticks; x4: at least four times the latency of "
			     "the store before the wait. us: what a change costs with them. p: "
			     "tears per toggle, across a line and across a page."
			   : NULL,
		   "waits\t#us\t#line: p below\t#page: p below\t#line: toggles\t#tears\t#page: "
		   "toggles\t#tears");
	json_array_foreach(json_object_get(e, "levels"), i, level)
	{
		if ((json_real_of(level, "stretch") > 0) != stretched)
			continue;
		html_line(out, NULL, "tn", "%s\t%s", waits_of_level(level, text),
			  NUMBER(ticks_us(page, json_real_of(level, "ticks"))));
		/* What a small screen shows is the answer; what it rests on comes behind it. */
		for (int c = 0; c < 2; c++) {
			claim[c] = json_find(json_object_get(level, "claims"), "crossing",
					     crossings[c]);
			html_number(out, "%s", NUMBER_OF(claim[c], "upper_p"));
		}
		for (int c = 0; c < 2; c++)
			html_cells(out, "nn", "%s\t%s", NUMBER_OF(claim[c], "toggles"),
				   NUMBER_OF(claim[c], "tears"));
	}
	html_table_end(out);
}

/* Of which state of the CPUs the bounds are the mean. */
static void put_distances(const struct html_page *page, const json_t *e)
{
	double near = json_real_of(e, "slices_near"), far = json_real_of(e, "slices_far");
	double unknown = json_real_of(e, "slices") - near - far;
	FILE *out = page->out;

	if (!(near + far > 0))
		return;
	html_paragraph(out,
		       "Half a round trip of a cache line between the two CPUs took %d ticks or "
		       "more, which is far, in %s %% of the slices.",
		       DISTANCE_TICKS, NUMBER(100 * far / (near + far)));
	if (unknown > 0)
		html_paragraph(out, "Of %s other slices it is not known.", NUMBER(unknown));
	if (!(near > 0) || !(far > 0))
		html_paragraph(out, "What was counted says nothing of a time when they are %s.",
			       far > 0 ? "near each other" : "far apart");
}

int section_verdict(struct html_page *page)
{
	const json_t *e = line_last(page->data, "estimate");
	const json_t *level;
	size_t estimates = 0, i = 0;
	FILE *out = page->out;

	if (!json_object_get(e, "levels")) {
		html_missing(out,
			     "The journals hold no estimate of a ladder: no calibration of it has "
			     "ended, so there is no verdict and no T_max.");
		return 0;
	}
	put_answer(page, e);
	while (line_next(page->data, "estimate", &i))
		estimates++;
	if (estimates > 1)
		html_paragraph(out, "This is the last of %zu estimates, of %s.", estimates,
			       json_text_of(e, "date"));
	put_ladder(out, page, e, true);
	html_fold(out, "The paper's constant waits");
	put_ladder(out, page, e, false);
	html_fold_end(out);
	put_distances(page, e);
	json_array_foreach(json_object_get(e, "long_levels"), i, level)
	{
		if (json_real_of(level, "upper_p") >= 1)
			continue;
		html_paragraph(
			out,
			"Changes that are started and finished later: two waits of %s ticks keep "
			"tears below %s per toggle. That is counted in gaps between the fetches "
			"of one instruction; per store there are at least 1/%s as many of them "
			"across a line, and 1/%s across a page, as tears per toggle.",
			NUMBER_OF(level, "first"), NUMBER_OF(level, "upper_p"),
			NUMBER_OF(e, "factor_line"), NUMBER_OF(e, "factor_page"));
		break;
	}
	html_paragraph(
		out,
		"From slice to slice the rate of tears differs, with the place of the site and "
		"the time: its variance is %s times the square of its mean across a line, and %s "
		"times across a page. The bounds allow for that.",
		NUMBER_OF(e, "spread_line"), NUMBER_OF(e, "spread_page"));
	return 0;
}
