/* SPDX-License-Identifier: MIT */
/*
 * The verdict and the ladder, as the last estimate of the journals has them.
 */
#include <math.h>
#include <string.h>

#include "calibrate/ladder/ladder.h"
#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"

#define RUNG_TEXT 64

static size_t count_lines(const struct journal_data *data, const char *type)
{
	size_t i = 0, count = 0;

	while (line_next(data, type, &i))
		count++;
	return count;
}

static uint64_t whole_number(const json_t *object, const char *name)
{
	double value = json_real_of(object, name);

	return value >= 0 && value < 1e18 ? (uint64_t)value : 0;
}

static char *rung_of_level(const json_t *level, char *buf)
{
	struct rung rung = { whole_number(level, "first"), whole_number(level, "second"),
			     whole_number(level, "stretch") };

	return rung_text(&rung, buf, RUNG_TEXT);
}

static const json_t *claim_of_level(const json_t *level, const char *crossing)
{
	const json_t *claim;
	size_t i;

	json_array_foreach(json_object_get(level, "claims"), i, claim)
	{
		if (strcmp(json_text_of(claim, "crossing"), crossing) == 0)
			return claim;
	}
	return NULL;
}

/* --- The box ---------------------------------------------------------------------------------- */

/* The cheapest level that keeps p; NULL: none. */
static const json_t *best_level(const json_t *e, double p)
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

static void put_scope(FILE *out, const json_t *e)
{
	bool long_run = strcmp(json_text_of(e, "scope"), "long-run") == 0;
	double runs = json_real_of(e, "runs");

	html_paragraph(out,
		       long_run ? "With %s %% confidence for the long run, from %s runs."
				: "With %s %% confidence for the time of %s run(s), and no more.",
		       NUMBER(100 * json_real_of(e, "confidence")), NUMBER(runs));
}

static void put_best(struct page *page, const json_t *e)
{
	char text[RUNG_TEXT];
	FILE *out = page->out;

	for (int decade = 3; decade <= 9; decade++) {
		const json_t *level = best_level(e, pow(10, -decade));

		if (!level)
			break;
		html_paragraph(out, "T_max(1e-%d) = %s ticks: %s us a change.", decade,
			       rung_of_level(level, text),
			       NUMBER(ticks_us(page, json_real_of(level, "ticks"))));
	}
	html_paragraph(out, "A change by membarrier takes %s us.",
		       NUMBER(ticks_us(page, json_real_of(e, "membarrier_ticks"))));
	put_scope(out, e);
}

/* What versions before the ladder concluded: one pair of waits. */
static void put_waits(struct page *page, const json_t *e)
{
	html_paragraph(
		page->out,
		"Of an older version, which looked for one pair of waits: %s and %s ticks, at "
		"most %s tears per toggle.",
		NUMBER(json_real_of(e, "first_wait")), NUMBER(json_real_of(e, "second_wait")),
		NUMBER(json_real_of(e, "upper_p")));
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
	if (json_object_get(e, "levels"))
		put_best(page, e);
	else
		put_waits(page, e);
	fputs("</div>\n", out);
}

/* --- The tables ------------------------------------------------------------------------------- */

static void put_ladder(struct page *page, const json_t *e)
{
	static const char *const headings[] = { "waits",  "#a change, us", "#line: toggles",
						"#tears", "#p below",	   "#page: toggles",
						"#tears", "#p below",	   NULL };
	static const char *const crossings[] = { "line", "page" };
	FILE *out = page->out;
	const json_t *level;
	char text[RUNG_TEXT];
	size_t i;

	html_table(
		out,
		"The ladder: waits in ticks, each also at least so many times the latency of the "
		"store before it as behind the x. Those without are the paper's.",
		headings);
	json_array_foreach(json_object_get(e, "levels"), i, level)
	{
		html_row(out, NULL);
		html_cell(out, "%s", rung_of_level(level, text));
		html_number(out, "%s", NUMBER(ticks_us(page, json_real_of(level, "ticks"))));
		for (int c = 0; c < 2; c++) {
			const json_t *claim = claim_of_level(level, crossings[c]);

			html_number(out, "%s", NUMBER(json_real_of(claim, "toggles")));
			html_number(out, "%s", NUMBER(json_real_of(claim, "tears")));
			html_number(out, "%s", NUMBER(json_real_of(claim, "upper_p")));
		}
	}
	html_table_end(out);
}

static void put_section(FILE *out, const json_t *level, const json_t *claim, const json_t *section)
{
	double worst =
		json_real_of(section, "worst_tears") / json_real_of(section, "worst_toggles");
	char text[RUNG_TEXT];

	html_row(out, json_real_of(section, "tears") > 0 ? "bad" : NULL);
	html_cell(out, "%s", rung_of_level(level, text));
	html_cell(out, "%s", json_text_of(claim, "crossing"));
	html_cell(out, "%s", json_text_of(section, "placement"));
	html_number(out, "%s", NUMBER(json_real_of(section, "slices")));
	html_number(out, "%s", NUMBER(json_real_of(section, "toggles")));
	html_number(out, "%s", NUMBER(json_real_of(section, "tears")));
	html_number(out, "%s", NUMBER(json_real_of(section, "upper_p")));
	html_number(out, "%s", isfinite(worst) ? NUMBER(worst) : "0");
}

static void put_sections(struct page *page, const json_t *e)
{
	static const char *const headings[] = { "waits",    "crossing",	    "placement",
						"#slices",  "#toggles",	    "#tears",
						"#p below", "#worst slice", NULL };
	const json_t *level, *claim, *section;
	size_t i, k, n;

	html_table(page->out, "The same by placement, with the rate of the worst slice.", headings);
	json_array_foreach(json_object_get(e, "levels"), i, level)
	{
		json_array_foreach(json_object_get(level, "claims"), k, claim)
		{
			json_array_foreach(json_object_get(claim, "sections"), n, section)
			{
				put_section(page->out, level, claim, section);
			}
		}
	}
	html_table_end(page->out);
}

static void put_long(struct page *page, const json_t *e)
{
	const json_t *level;
	size_t i;

	json_array_foreach(json_object_get(e, "long_levels"), i, level)
	{
		if (json_real_of(level, "upper_p") >= 1)
			continue;
		html_paragraph(
			page->out,
			"Changes that are started and finished later: two waits of %s ticks keep "
			"tears below %s per toggle. That is counted in gaps between the fetches "
			"of one instruction; per store there are at least 1/%s as many of them "
			"across a line, and 1/%s across a page, as tears per toggle.",
			NUMBER(json_real_of(level, "first")),
			NUMBER(json_real_of(level, "upper_p")),
			NUMBER(json_real_of(e, "factor_line")),
			NUMBER(json_real_of(e, "factor_page")));
		return;
	}
}

static void put_rest(struct page *page, const json_t *e)
{
	const json_t *window = json_object_get(e, "window"), *paper = json_object_get(e, "paper");
	FILE *out = page->out;

	html_paragraph(out, "Atomic window: %s bytes (p below %s, %s stores without a tear).",
		       NUMBER(json_real_of(window, "bytes")),
		       NUMBER(json_real_of(window, "upper_p")),
		       NUMBER(json_real_of(window, "toggles")));
	if (json_is_true(json_object_get(paper, "found")))
		html_paragraph(out,
			       "The paper's T_max, the lowest constant wait without a tear: %s "
			       "ticks%s.",
			       NUMBER(json_real_of(paper, "wait")),
			       json_is_true(json_object_get(paper, "stays"))
				       ? ""
				       : ", but longer waits tore again");
	html_paragraph(
		out,
		"Between slices, by the place of the site and the time, the rate varies by %s "
		"times its mean squared across a line, and %s across a page. The bounds count "
		"with that.",
		NUMBER(json_real_of(e, "spread_line")), NUMBER(json_real_of(e, "spread_page")));
}

int section_verdict(struct page *page)
{
	const json_t *e = line_last(page->data, "estimate");
	size_t estimates = count_lines(page->data, "estimate");

	if (!e) {
		html_missing(page->out, "The journals hold no estimate: no calibration has ended, "
					"so there is no verdict and no T_max.");
		return 0;
	}
	put_verdict_box(page, e);
	if (estimates > 1)
		html_paragraph(page->out, "This is the last of %zu estimates, of %s.", estimates,
			       json_text_of(e, "date"));
	if (!json_object_get(e, "levels"))
		return 0;
	put_ladder(page, e);
	put_long(page, e);
	put_rest(page, e);
	put_sections(page, e);
	return 0;
}
