/* SPDX-License-Identifier: MIT */
/*
 * The two figures of tears against waits.
 */
#include "calibrate/report/report_rate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"
#include "calibrate/statistics/bound.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"

#define TAIL_POINTS 60
#define TAIL_REACH  1e4 /* times the threshold */
#define TAIL_LEAST  1e-13
#define BAND	    (1 - (1 - CONFIDENCE) / 2) /* of either limit of a band */

/* --- Points ------------------------------------------------------------------ */

static struct rate_point rate_point(const struct cell_record *r, unsigned which)
{
	static const enum tear_kind kinds[] = { TEAR_OLD_FRONT, TEAR_NEW_FRONT };
	const struct cell_result *result = &r->result;
	bool cut = result->outcome == OUTCOME_KILLED || result->outcome == OUTCOME_HANG;
	struct rate_point p = {
		.crossing = r->cell.crossing,
		.which = which,
		.provoked = r->cell.provokers != 0,
		.wait = which ? r->cell.second_wait : r->cell.first_wait,
		.tears = result->tears[kinds[which]],
		.toggles = cut ? 0 : result->toggles,
	};

	sum_add(&p.tears, result->tears[TEAR_OTHER]);
	return p;
}

static int compare_rate_points(const void *a, const void *b)
{
	const struct rate_point *p = a, *q = b;

	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->which != q->which)
		return p->which < q->which ? -1 : 1;
	if (p->provoked != q->provoked)
		return p->provoked ? 1 : -1;
	return (p->wait > q->wait) - (p->wait < q->wait);
}

static size_t merge_rate_points(struct rate_point *points, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept && compare_rate_points(&points[kept - 1], &points[i]) == 0) {
			sum_add(&points[kept - 1].tears, points[i].tears);
			sum_add(&points[kept - 1].toggles, points[i].toggles);
		} else {
			points[kept++] = points[i];
		}
	}
	return kept;
}

struct rate_point *rate_points(const struct journal_data *data, size_t *count)
{
	struct rate_point *points = calloc(2 * data->count + 1, sizeof(*points));
	size_t n = 0;

	if (!points)
		return NULL;
	for (size_t i = 0; i < data->count; i++)
		for (unsigned which = 0; which < 2 && is_wait_cell(&data->records[i]); which++)
			points[n++] = rate_point(&data->records[i], which);
	qsort(points, n, sizeof(*points), compare_rate_points);
	*count = merge_rate_points(points, n);
	return points;
}

/* --- Rate against wait --------------------------------------------------------- */

struct rate_data {
	const struct journal_data *data;
	const struct rate_point *points;
	size_t count;
};

/* Rows "P crossing which provoked wait tears toggles rate low high". */
static void print_point(FILE *stream, const struct rate_point *p)
{
	double low = bound_lower(p->tears, p->toggles, BAND);
	double high = bound_upper(p->tears, p->toggles, p->tears ? BAND : CONFIDENCE);

	if (!p->toggles)
		return;
	fprintf(stream, "P %u %u %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %g %g %g\n",
		crossing_bytes(p->crossing), p->which, p->provoked, p->wait, p->tears, p->toggles,
		(double)p->tears / (double)p->toggles, low, high);
}

/* Share of the stores whose gap is longer than wait, by the fit. */
static double tail_share(const json_t *fit, double wait)
{
	double xi = json_real_of(fit, "xi"), sigma = json_real_of(fit, "sigma");
	double z = (wait - json_real_of(fit, "threshold")) / sigma;
	double share = json_real_of(fit, "exceedances") / json_real_of(fit, "stores");

	if (fabs(xi) < 1e-9)
		return share * exp(-z);
	return 1 + xi * z > 0 ? share * pow(1 + xi * z, -1 / xi) : 0;
}

static bool is_of_machine(const json_t *fit)
{
	return json_is_true(json_object_get(fit, "accepted")) &&
	       strcmp(json_text_of(fit, "source"), "gaps") == 0 &&
	       crossing_parse(json_text_of(fit, "crossing")) >= 0 &&
	       json_real_of(fit, "threshold") > 0;
}

/* Rows "T crossing which provoked wait share". */
static void print_tail(FILE *stream, const json_t *fit)
{
	int crossing = crossing_parse(json_text_of(fit, "crossing"));
	int which = strcmp(json_text_of(fit, "kind"), "old-front") != 0;
	int provoked = strcmp(json_text_of(fit, "provokers"), "none") != 0;
	double threshold = json_real_of(fit, "threshold");

	for (int i = 0; i < TAIL_POINTS; i++) {
		double wait = threshold * pow(TAIL_REACH, (double)i / (TAIL_POINTS - 1));
		double share = tail_share(fit, wait);

		if (!(share > TAIL_LEAST))
			return;
		fprintf(stream, "T %u %d %d %.1f %g\n", crossing_bytes((enum crossing)crossing),
			which, provoked, wait, share);
	}
}

static void print_rates(FILE *stream, const void *arg)
{
	const struct rate_data *d = arg;
	const json_t *fit;
	size_t i = 0;

	fputs("# P crossing which provoked wait tears toggles rate low high\n"
	      "# T crossing which provoked wait share: fitted tail of the fetch gaps\n"
	      "# which: 0 old front against the first wait, 1 old back against the second\n",
	      stream);
	for (size_t n = 0; n < d->count; n++)
		print_point(stream, &d->points[n]);
	while ((fit = line_next(d->data, "tail", &i)))
		if (is_of_machine(fit))
			print_tail(stream, fit);
}

/* "64 4096": the panels that exist. */
static void list_crossings(const struct rate_data *d, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < d->count; i++)
		if (!i || d->points[i].crossing != d->points[i - 1].crossing)
			length += (size_t)snprintf(text + length, size - length, "%s%u",
						   length ? " " : "",
						   crossing_bytes(d->points[i].crossing));
}

static bool any_toggles(const struct rate_data *d)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->points[i].toggles)
			return true;
	return false;
}

static bool any_stretch(const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++)
		if (is_wait_cell(&data->records[i]) && data->records[i].cell.stretch)
			return true;
	return false;
}

static int put_rates(struct page *page, const struct rate_data *d)
{
	char crossings[48];
	const char *const args[] = { crossings, NULL };
	const struct page_figure figure = {
		.name = "rate",
		.script = "rate.gp",
		.label = "Tears per toggle against the wait, with confidence bands",
		.caption =
			"Tears per toggle against the wait that was too short for them: old front "
			"with new back against the first wait, new front with old back against the "
			"second; all placements, splits and pairs together. Bars and bands: 95 % "
			"(Clopper-Pearson); open triangles: none seen, 95 % upper bound. Dashed: "
			"the fitted tail of the fetch gaps, where there is one.",
		.print = print_rates,
		.arg = d,
		.args = args,
	};

	if (!any_toggles(d)) {
		html_missing(page->out,
			     "No cell of the library's protocol with the counting oracle, "
			     "so no rate.");
		return 0;
	}
	list_crossings(d, crossings, sizeof(crossings));
	if (any_stretch(d->data))
		html_paragraph(page->out,
			       "Some cells stretched their waits with the time that a store "
			       "took. They stand at the wait asked for, and waited longer.");
	return page_figure(page, &figure);
}

int section_rate(struct page *page)
{
	struct rate_data d = { .data = page->data };
	struct rate_point *points = rate_points(page->data, &d.count);
	int rc;

	if (!points)
		return -ENOMEM;
	d.points = points;
	rc = put_rates(page, &d);
	free(points);
	return rc;
}

/* --- Figure 9 -------------------------------------------------------------------- */

struct nine {
	enum oracle oracle;
	struct page_figure figure;
	const char *missing;
};

static int put_nine(struct page *page, const struct nine *nine)
{
	char prefix[PICTURE_PATH], why[PICTURE_PATH + 64] = "";
	int rc = page_path(page, nine->figure.name, prefix, sizeof(prefix));

	if (!rc)
		rc = figure9_write_oracle(page->data, nine->oracle, prefix, why, sizeof(why));
	if (rc == -ENODATA) {
		html_missing(page->out, "%s", nine->missing);
		return 0;
	}
	if (rc && rc != -ENOENT && rc != -EIO)
		return rc;
	return page_picture(page, &nine->figure, rc, why);
}

int section_figure9(struct page *page)
{
	static const struct nine nines[] = {
		{ ORACLE_COUNT,
		  { .name = "figure9",
		    .label = "Tears per million toggles against the wait, by split",
		    .caption = "Cells whose two waits are equal. Tears are counted, not died of." },
		  "No cell with the counting oracle and two equal waits across a line or a page." },
		{ ORACLE_CRASH,
		  { .name = "figure9-crash",
		    .label = "Failed runs in 100 against the wait, by split",
		    .caption = "The paper's own oracle: a run fails when its child dies." },
		  "No cell with the paper's own oracle, which dies of a tear." },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(nines) / sizeof(nines[0]) && !rc; i++)
		rc = put_nine(page, &nines[i]);
	return rc;
}
