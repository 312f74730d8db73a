/* SPDX-License-Identifier: MIT */
/* The two figures of tears against waits: the ladder, and figure 9 of the paper. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "commands/report/report.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"

#define EITHER (1 - (1 - CONFIDENCE) / 2) /* confidence of either end of a bar */

/* Of hot sites: those at rest have another rate. */
void rate_points(struct tally *points, const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		/* A cell that hung or was killed has shown no more than its tears. */
		bool cut = r->result.outcome == OUTCOME_KILLED || r->result.outcome == OUTCOME_HANG;
		struct tally_row p = {
			.key = { (uint64_t)claim_of(r->cell.crossing), !r->cell.waits.stretch,
				 r->cell.waits.first },
			.events = cell_result_tears(&r->result),
			.trials = cut ? 0 : r->result.toggles,
		};

		if (r->cell.protocol == PROTOCOL_WAIT && r->cell.oracle == ORACLE_COUNT &&
		    claim_of(r->cell.crossing) >= 0 && r->result.toggles > 0 &&
		    r->cell.rest != CELL_RESTED)
			tally_add(points, &p);
	}
}

/* --- The ladder ------------------------------------------------------------------------------- */

struct ladder_data {
	const struct html_page *page;
	struct tally points;
	unsigned rows; /* out */
};

void print_rung(FILE *out, const struct rung_row *r)
{
	if (r->changes)
		fprintf(out, "%s %d %.9g %.9g %" PRIu64 " %" PRIu64 " %.9g %.9g %.9g\n",
			claim_name(r->claim), r->is_constant, r->wait, r->bound, r->changes,
			r->tears, r->cost, bound_lower(r->tears, r->changes, EITHER),
			bound_upper(r->tears, r->changes, r->tears ? EITHER : CONFIDENCE));
}

/* As the last estimate has them; without one, what the cells have counted. */
static void print_ladder(FILE *out, const void *arg)
{
	const struct ladder_data *d = arg;
	const json_t *e = line_last(d->page->data, "estimate"), *level, *claim;
	size_t i;

	for (int c = 0; c < CLAIMS; c++)
		json_array_foreach(json_object_get(e, "levels"), i, level)
		{
			claim = json_find(json_object_get(level, "claims"), "crossing",
					  claim_name(c));
			print_rung(out, &(struct rung_row){
						c, !(json_real_of(level, "stretch") > 0),
						ticks_us(d->page, json_real_of(level, "first")),
						json_real_of(claim, "upper_p"),
						json_count(json_object_get(claim, "toggles")),
						json_count(json_object_get(claim, "tears")),
						fmax(0, ticks_us(d->page,
								 json_real_of(level, "ticks"))) });
		}
	for (const struct tally_row *p = d->points.row;
	     !json_object_get(e, "levels") && p < d->points.row + d->points.count; p++)
		print_rung(out, &(struct rung_row){ (int)p->key[0], p->key[1] != 0,
						    ticks_us(d->page, (double)p->key[2]), 1,
						    p->trials, p->events, 0 });
}

const char ladder_caption[] =
	"Tears per change against the wait. Lines: the bound, of 95 %. Dots: what was counted, "
	"with its "
	"95 % interval; triangles: none tore, and the 95 % bound of that. A bound below what the "
	"same "
	"row's count allows rests on the shorter waits too: it is pooled. Along the bottom: what a "
	"change takes.";

int put_ladder_figure(struct html_page *page)
{
	const json_t *paper = json_object_get(line_last(page->data, "estimate"), "paper");
	struct ladder_data d = { .page = page };
	char mark[32] = "";
	const char *const args[] = { "us", mark, NULL };
	const struct page_figure figure = {
		.name = "ladder",
		.picture = { print_ladder, &d, "ladder.gp", args },
		.label = "Tears per change against the wait.",
		.caption = ladder_caption,
	};
	int rc = 1;

	if (json_is_true(json_object_get(paper, "found")))
		snprintf(mark, sizeof(mark), "%.9g", ticks_us(page, json_real_of(paper, "wait")));
	rate_points(&d.points, page->data);
	if (d.points.failed)
		rc = -ENOMEM;
	else if (d.points.count ||
		 json_array_size(json_object_get(line_last(page->data, "estimate"), "levels")))
		rc = page_figure(page, &figure);
	tally_free(&d.points);
	return rc;
}

/* --- Figure 9 -------------------------------------------------------------------- */

int section_figure9(struct html_page *page)
{
	static const struct {
		enum oracle oracle;
		struct page_figure figure;
	} nines[] = {
		{ ORACLE_COUNT,
		  { .name = "figure9",
		    .label = "Tears per toggle, by split, against the wait.",
		    .caption =
			    "Cells whose two waits are equal. Tears are counted, not died of." } },
		{ ORACLE_CRASH,
		  { .name = "figure9-crash",
		    .label = "Share of runs that failed, by split, against the wait.",
		    .caption = "The paper's own oracle: a run fails when its child dies." } },
	};
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	bool drawn = false;
	int rc = 0;

	for (size_t i = 0; i < sizeof(nines) / sizeof(nines[0]) && !rc; i++) {
		rc = page_path(page, nines[i].figure.name, prefix, sizeof(prefix));
		if (!rc)
			rc = figure9_write(page->data, nines[i].oracle, prefix, why, sizeof(why));
		if (rc != -ENODATA) {
			rc = page_picture(page, &nines[i].figure, rc, why);
			drawn = true;
		} else {
			rc = 0;
		}
	}
	return rc ? rc : !drawn;
}
