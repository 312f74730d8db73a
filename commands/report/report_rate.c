/* SPDX-License-Identifier: MIT */
/* The two figures of tears against waits. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "commands/report/report.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"

#define EITHER	  (1 - (1 - CONFIDENCE) / 2) /* confidence of either end of a bar */
#define LABEL_MAX 600

void rate_points(struct tally *points, const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		const uint64_t wait[] = { r->cell.waits.first, r->cell.waits.second };

		for (unsigned which = 0; which < 2 && is_wait_cell(r); which++) {
			struct tally_row p = {
				.key = { crossing_bytes(r->cell.crossing), r->cell.waits.stretch,
					 which + 2 * (r->cell.provokers != 0), wait[which] },
				.events = r->result.tears[which ? TEAR_NEW_FRONT : TEAR_OLD_FRONT],
				.trials = record_toggles(r),
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

/* Of each panel: the rate at its shortest wait, and its longest wait that tore. */
static void print_label(const struct tally *points, const char *what, char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "%s against the wait.", what);

	for (size_t i = 0, end; i < points->count && length < size; i = end) {
		const uint64_t *key = points->row[i].key;
		uint64_t tears = 0, toggles = 0, least = UINT64_MAX, torn = 0, most = 0;
		bool any = false;

		for (end = i; end < points->count && (end == i || !tally_begins(points, end, 2));
		     end++) {
			const struct tally_row *p = &points->row[end];

			if (p->key[RATE_WAIT] < least) {
				least = p->key[RATE_WAIT];
				tears = toggles = 0;
			}
			if (p->key[RATE_WAIT] == least) {
				sum_add(&tears, p->events);
				sum_add(&toggles, p->trials);
			}
			if (p->events && p->key[RATE_WAIT] >= torn) {
				torn = p->key[RATE_WAIT];
				any = true;
			}
			if (p->key[RATE_WAIT] > most)
				most = p->key[RATE_WAIT];
		}
		length += (size_t)snprintf(text + length, size - length,
					   " Across %s bytes, %s waits: %s at %s ticks; longest "
					   "wait that tore: %s, of up to %s.",
					   NUMBER(key[RATE_CROSSING]),
					   key[RATE_STRETCH] ? "stretched" : "constant",
					   NUMBER((double)tears / (double)toggles), NUMBER(least),
					   any ? NUMBER(torn) : "none", NUMBER(most));
	}
}

int section_rate(struct page *page)
{
	struct rate_data d = { .data = page->data };
	char crossings[96], stretches[96], label[LABEL_MAX];
	const char *const args[] = { crossings, stretches, NULL };
	const struct page_figure figure = {
		.name = "rate",
		.picture = { print_rates, &d, "rate.gp", args },
		.label = label,
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
	print_label(&d.points, "Tears per toggle", label, sizeof(label));
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

int section_figure9(struct page *page)
{
	static const struct {
		enum oracle oracle;
		const char *name, *what, *caption, *missing;
	} nines[] = {
		{ ORACLE_COUNT, "figure9", "Tears per toggle, by split,",
		  "Cells whose two waits are equal. Tears are counted, not died of.",
		  "No cell with the counting oracle and two equal waits across a line or a page." },
		{ ORACLE_CRASH, "figure9-crash", "Share of runs that failed, by split,",
		  "The paper's own oracle: a run fails when its child dies.",
		  "No cell with the paper's own oracle, which dies of a tear." },
	};
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "", label[LABEL_MAX];
	int rc = 0;

	for (size_t i = 0; i < sizeof(nines) / sizeof(nines[0]) && !rc; i++) {
		const struct page_figure figure = { .name = nines[i].name,
						    .label = label,
						    .caption = nines[i].caption };

		struct tally points = { 0 };

		for (size_t n = 0; n < page->data->count; n++) {
			const struct cell_record *r = &page->data->records[n];
			bool crash = nines[i].oracle == ORACLE_CRASH;
			struct tally_row point = {
				.key = { crossing_bytes(r->cell.crossing), r->cell.waits.stretch, 0,
					 r->cell.waits.first },
				.events = crash ? r->result.outcome == OUTCOME_CRASH
						: record_tears(r),
				.trials = crash ? 1 : r->result.toggles,
			};

			if (figure9_takes(r, nines[i].oracle) && (crash || !r->cell.waits.stretch))
				tally_add(&points, &point);
		}
		print_label(&points, nines[i].what, label, sizeof(label));
		tally_free(&points);
		rc = page_path(page, figure.name, prefix, sizeof(prefix));
		if (!rc)
			rc = figure9_write(page->data, nines[i].oracle, prefix, why, sizeof(why));
		if (rc == -ENODATA) {
			html_missing(page->out, "%s", nines[i].missing);
			rc = 0;
		} else {
			rc = page_picture(page, &figure, rc, why);
		}
	}
	return rc;
}
