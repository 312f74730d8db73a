/* SPDX-License-Identifier: MIT */
/*
 * The verdict and the ladder, as the last estimate of the journals has them, and the counts behind
 * them.
 */
#include <string.h>

#include "calibrate/statistics/bound.h"
#include "commands/report/report.h"

/* The answer in a sentence, and how sure it is. */
static void put_answer(FILE *out, const json_t *e)
{
	const char *verdict = json_text_of(e, "verdict");
	bool known = strcmp(verdict, "pass") == 0 || strcmp(verdict, "fail") == 0;
	bool long_run = strcmp(json_text_of(e, "scope"), "long-run") == 0;
	double runs = json_real_of(e, "runs");

	fprintf(out, "<div class=\"verdict %s\">", known ? verdict : "inconclusive");
	html_between(out, "<p><strong>", "</strong>: ", "%s", verdict);
	html_between(out, "", "</p>\n", "%s.", json_text_of(e, "reason"));
	html_paragraph(out, "With %s %% confidence for %s %s run%s%s.",
		       NUMBER(100 * json_real_of(e, "confidence")),
		       long_run ? "the long run, from" : "the time of", NUMBER(runs), S(runs),
		       long_run ? "" : ", and no more");
	fputs("</div>\n", out);
}

/* What else there is to choose from, and the paper's number. */
static void put_others(const struct html_page *page, const json_t *e)
{
	const json_t *window = json_object_get(e, "window"), *paper = json_object_get(e, "paper");
	double barrier = json_real_of(e, "membarrier_ticks");
	double bound = json_real_of(window, "upper_p");
	FILE *out = page->out;

	if (barrier > 0)
		html_paragraph(out, "A change by membarrier takes %s us.",
			       NUMBER(ticks_us(page, barrier)));
	if (json_is_true(json_object_get(window, "word_tore")))
		html_paragraph(out, "A single store tore: nothing can be relied on here.");
	else if (window)
		html_paragraph(out, "One store inside %s bytes: no tear in %s stores%s%s.",
			       NUMBER_OF(window, "bytes"), NUMBER_OF(window, "toggles"),
			       bound < 1 ? ", bound " : "; a bound takes runs in more hours",
			       bound < 1 ? NUMBER(bound) : "");
	if (json_is_true(json_object_get(paper, "found")))
		html_paragraph(
			out, "The paper's T_max, the lowest constant wait without a tear: %s us%s.",
			NUMBER(ticks_us(page, json_real_of(paper, "wait"))),
			json_is_true(json_object_get(paper, "stays"))
				? ""
				: "; longer waits tore again");
	else if (json_is_true(json_object_get(paper, "known")))
		html_paragraph(out, "The paper's T_max: none, every constant wait tore.");
}

/* A bound that is lower than its own counts allow rests on those of shorter waits too. */
static void put_claim(FILE *out, const json_t *claim)
{
	double p = json_real_of(claim, "upper_p");
	uint64_t toggles = json_count(json_object_get(claim, "toggles"));
	uint64_t tears = json_count(json_object_get(claim, "tears"));
	bool pooled = toggles && tears <= toggles && bound_upper(tears, toggles, CONFIDENCE) > p;

	html_cells(out, "nnn", "%s%s\t%s\t%s", NUMBER(p), pooled ? " pooled" : "", NUMBER(toggles),
		   NUMBER(tears));
}

static void put_ladder(const struct html_page *page, const json_t *e, bool stretched)
{
	FILE *out = page->out;
	const json_t *level;
	size_t i;

	html_table(out,
		   stretched ? "The ladder. A wait is as long as it says, or four times what the "
			       "store before it took. Pooled: with what shorter waits counted."
			     : NULL,
		   "#wait, us\t#change, us\t#line: at most\t#of changes\t#tore\t#page: at most\t"
		   "#of changes\t#tore");
	json_array_foreach(json_object_get(e, "levels"), i, level)
	{
		if ((json_real_of(level, "stretch") > 0) != stretched)
			continue;
		html_line(out, NULL, "nn", "%s\t%s",
			  NUMBER(ticks_us(page, json_real_of(level, "first"))),
			  NUMBER(ticks_us(page, json_real_of(level, "ticks"))));
		for (int c = 0; c < CLAIMS; c++)
			put_claim(out, json_find(json_object_get(level, "claims"), "crossing",
						 claim_name(c)));
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
		       "Half a round trip of a cache line between the two CPUs took %s us or "
		       "more, which is far, in %s %% of the slices.",
		       NUMBER(ticks_us(page, DISTANCE_TICKS)), NUMBER(100 * far / (near + far)));
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
	int rc;

	if (!json_object_get(e, "levels"))
		return put_ladder_figure(page);
	put_answer(out, e);
	rc = put_ladder_figure(page);
	if (rc < 0)
		return rc;
	while (line_next(page->data, "estimate", &i))
		estimates++;
	if (estimates > 1)
		html_paragraph(out, "This is the last of %zu estimates, of %s.", estimates,
			       json_text_of(e, "date"));
	put_others(page, e);
	put_ladder(page, e, true);
	html_fold(out, "The paper's constant waits, and how the rate differs");
	put_ladder(page, e, false);
	put_distances(page, e);
	json_array_foreach(json_object_get(e, "long_levels"), i, level)
	{
		if (json_real_of(level, "upper_p") >= 1)
			continue;
		html_paragraph(
			out,
			"Changes that are started and finished later: two waits of %s us keep "
			"tears below %s per change. That is counted in gaps between the fetches "
			"of one instruction; per store there are at least 1/%s as many of them "
			"across a line, and 1/%s across a page, as tears per change.",
			NUMBER(ticks_us(page, json_real_of(level, "first"))),
			NUMBER_OF(level, "upper_p"), NUMBER_OF(e, "factor_line"),
			NUMBER_OF(e, "factor_page"));
		break;
	}
	html_paragraph(
		out,
		"From slice to slice the rate of tears differs, with the place of the site and "
		"the time: its variance is %s times the square of its mean across a line, and %s "
		"times across a page. The bounds allow for that.",
		NUMBER_OF(e, "spread_line"), NUMBER_OF(e, "spread_page"));
	html_fold_end(out);
	return 0;
}
