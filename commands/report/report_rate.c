/* SPDX-License-Identifier: MIT */
/* The two figures of tears against waits. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "commands/report/report.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"

#define EITHER (1 - (1 - CONFIDENCE) / 2) /* confidence of either end of a bar */

void rate_points(struct tally *points, const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		const uint64_t wait[] = { r->cell.waits.first, r->cell.waits.second };
		bool speaks = r->cell.protocol == PROTOCOL_WAIT && r->cell.oracle == ORACLE_COUNT &&
			      r->result.toggles > 0;
		/* A cell that hung or was killed has shown no more than its tears. */
		bool cut = r->result.outcome == OUTCOME_KILLED || r->result.outcome == OUTCOME_HANG;

		for (unsigned which = 0; which < 2 && speaks; which++) {
			struct tally_row p = {
				.key = { crossing_bytes(r->cell.crossing), r->cell.waits.stretch,
					 which + 2 * (r->cell.provokers != 0), wait[which] },
				.events = r->result.tears[which ? TEAR_NEW_FRONT : TEAR_OLD_FRONT],
				.trials = cut ? 0 : r->result.toggles,
			};

			sum_add(&p.events, r->result.tears[TEAR_OTHER]);
			tally_add(points, &p);
		}
	}
}

/* --- Rate against wait --------------------------------------------------------- */

struct rate_data {
	const struct journal_data *data;
	struct tally points;
};

/* What each level claims, which of them is chosen, and the constant wait of the paper. */
static void print_claims(FILE *stream, const json_t *e)
{
	const json_t *best = level_keeping(e, json_real_of(e, "require_p"));
	const json_t *paper = json_object_get(e, "paper"), *level, *claim;
	size_t i, k;

	json_array_foreach(json_object_get(e, "levels"), i, level)
		json_array_foreach(json_object_get(level, "claims"), k, claim)
	{
		int crossing = crossing_parse(json_text_of(claim, "crossing"));
		double wait = json_real_of(level, "first"), p = json_real_of(claim, "upper_p");

		if (crossing >= 0 && wait >= 0 && p > 0 && p < 1)
			fprintf(stream, "L %u %.0f %.0f %g %d\n",
				crossing_bytes((enum crossing)crossing),
				fmax(0, json_real_of(level, "stretch")), wait, p, level == best);
	}
	if (json_is_true(json_object_get(paper, "found")))
		for (int crossing = CROSSING_LINE; crossing <= CROSSING_PAGE; crossing++)
			fprintf(stream, "C %u 0 %.0f\n", crossing_bytes((enum crossing)crossing),
				fmax(0, json_real_of(paper, "wait")));
}

static void print_rates(FILE *stream, const void *arg)
{
	const struct rate_data *d = arg;

	fputs("# P crossing stretch curve wait tears toggles rate low high\n"
	      "# L crossing stretch wait p chosen: the bound of a level of the ladder\n"
	      "# C crossing 0 wait: the paper's T_max\n"
	      "# curve: 0 old front against the first wait, 1 old back against the second; 2 and 3 "
	      "the same, provoked\n",
	      stream);
	for (size_t n = 0; n < d->points.count; n++) {
		const struct tally_row *p = &d->points.row[n];

		if (!p->trials)
			continue;
		fputs("P ", stream);
		tally_put(stream, p, RATE_CURVES);
		fprintf(stream, "%" PRIu64 " %g %g %g\n", p->trials,
			(double)p->events / (double)p->trials,
			bound_lower(p->events, p->trials, EITHER),
			bound_upper(p->events, p->trials, p->events ? EITHER : CONFIDENCE));
	}
	print_claims(stream, line_last(d->data, "estimate"));
}

int section_rate(struct html_page *page)
{
	struct rate_data d = { .data = page->data };
	char crossings[96], stretches[96];
	const char *const args[] = { crossings, stretches, NULL };
	const struct page_figure figure = {
		.name = "rate",
		.picture = { print_rates, &d, "rate.gp", args },
		.label = "Tears per toggle against the wait.",
		.caption =
			"Tears per toggle against the wait that was too short for them: old front "
			"with new back against the first wait, new front with old back against the "
			"second; all placements, splits and pairs together. Constant waits "
			"are in panels of their own; those that are stretched with the time that a "
			"store took are drawn at the wait asked for, and were longer. Bars: 95 % "
			"(Clopper-Pearson); open triangles: none seen, 95 % upper bound. Level "
			"strokes: the bound that the ladder claims for a wait; the upright line: "
			"the wait that is chosen, or the paper's T_max where waits are constant.",
	};
	bool any = false;
	int rc = 0;

	rate_points(&d.points, page->data);
	for (size_t i = 0; i < d.points.count; i++)
		any |= d.points.row[i].trials > 0;
	tally_words(&d.points, 2, RATE_CROSSING, crossings, sizeof(crossings));
	tally_words(&d.points, 2, RATE_STRETCH, stretches, sizeof(stretches));
	if (d.points.failed)
		rc = -ENOMEM;
	else if (any)
		rc = page_figure(page, &figure);
	else
		html_missing(page->out, "No cell of the library's protocol with the counting "
					"oracle, so no rate.");
	tally_free(&d.points);
	return rc;
}

/* --- Figure 9 -------------------------------------------------------------------- */

int section_figure9(struct html_page *page)
{
	static const struct {
		enum oracle oracle;
		const char *missing;
		struct page_figure figure;
	} nines[] = {
		{ ORACLE_COUNT,
		  "No cell with the counting oracle and two equal waits across a line or a page.",
		  { .name = "figure9",
		    .label = "Tears per toggle, by split, against the wait.",
		    .caption =
			    "Cells whose two waits are equal. Tears are counted, not died of." } },
		{ ORACLE_CRASH,
		  "No cell with the paper's own oracle, which dies of a tear.",
		  { .name = "figure9-crash",
		    .label = "Share of runs that failed, by split, against the wait.",
		    .caption = "The paper's own oracle: a run fails when its child dies." } },
	};
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	int rc = 0;

	for (size_t i = 0; i < sizeof(nines) / sizeof(nines[0]) && !rc; i++) {
		rc = page_path(page, nines[i].figure.name, prefix, sizeof(prefix));
		if (!rc)
			rc = figure9_write(page->data, nines[i].oracle, prefix, why, sizeof(why));
		if (rc == -ENODATA) {
			html_missing(page->out, "%s", nines[i].missing);
			rc = 0;
		} else {
			rc = page_picture(page, &nines[i].figure, rc, why);
		}
	}
	return rc;
}
