/* SPDX-License-Identifier: MIT */
#include "calibrate/report/report_provokers.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/page/html.h"
#include "calibrate/report/sections.h"
#include "calibrate/statistics/bound.h"

/* --- Combinations ------------------------------------------------------------------ */

/* The paper's waits, which stand still, are never provoked. Before the ladder a stage was. */
static bool is_provoke_cell(const struct cell_record *r)
{
	if (strcmp(r->stage, "ladder") == 0)
		return r->cell.stretch && is_wait_cell(r);
	return strcmp(r->stage, "provoke") == 0 && is_wait_cell(r);
}

/* The same measurement but for what was done to provoke tears. */
static bool alike(const struct cell *a, const struct cell *b)
{
	return a->placement == b->placement && a->crossing == b->crossing && a->pair == b->pair &&
	       a->split == b->split && a->executors == b->executors &&
	       a->first_wait == b->first_wait && a->second_wait == b->second_wait &&
	       a->stretch == b->stretch;
}

static const struct cell_record *reference(const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++)
		if (is_provoke_cell(&data->records[i]) && !data->records[i].cell.provokers)
			return &data->records[i];
	return NULL;
}

/* Cells without provokers, at the reference's rhythm. */
static bool is_plain(const struct cell_record *r, const struct cell_record *reference)
{
	return is_provoke_cell(r) && reference && !r->cell.provokers &&
	       r->cell.rest == reference->cell.rest && r->cell.loop == reference->cell.loop;
}

static bool belongs(const struct provoked *p, const struct cell_record *r)
{
	return is_provoke_cell(r) && r->cell.crossing == p->crossing &&
	       r->cell.provokers == p->provokers && r->cell.rest == p->rest &&
	       r->cell.loop == p->loop;
}

static struct provoked *combination(struct provoked *list, size_t *count, const struct cell *c)
{
	for (size_t i = 0; i < *count; i++) {
		struct provoked *p = &list[i];

		if (p->crossing == c->crossing && p->provokers == c->provokers &&
		    p->rest == c->rest && p->loop == c->loop)
			return p;
	}
	list[*count] = (struct provoked){
		.crossing = c->crossing, .provokers = c->provokers, .rest = c->rest, .loop = c->loop
	};
	return &list[(*count)++];
}

static bool has_plain(const struct journal_data *data, const struct cell_record *r,
		      const struct cell_record *ref)
{
	for (size_t i = 0; i < data->count; i++)
		if (is_plain(&data->records[i], ref) && alike(&data->records[i].cell, &r->cell))
			return true;
	return false;
}

static bool has_provoked(const struct journal_data *data, const struct cell_record *plain,
			 const struct provoked *p)
{
	for (size_t i = 0; i < data->count; i++)
		if (belongs(p, &data->records[i]) && alike(&data->records[i].cell, &plain->cell))
			return true;
	return false;
}

static void match_provoked(struct provoked *p, const struct journal_data *data,
			   const struct cell_record *ref)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (belongs(p, r) && has_plain(data, r, ref)) {
			sum_add(&p->matched_tears, record_tears(r));
			sum_add(&p->matched_toggles, record_toggles(r));
		}
		if (is_plain(r, ref) && has_provoked(data, r, p)) {
			sum_add(&p->none_tears, record_tears(r));
			sum_add(&p->none_toggles, record_toggles(r));
		}
	}
}

static int by_crossing(const void *a, const void *b)
{
	const struct provoked *p = a, *q = b;

	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->provokers != q->provokers)
		return p->provokers < q->provokers ? -1 : 1;
	if (p->rest != q->rest)
		return p->rest < q->rest ? -1 : 1;
	return (p->loop > q->loop) - (p->loop < q->loop);
}

struct provoked *provoked_list(const struct journal_data *data, size_t *count)
{
	struct provoked *list = calloc(data->count + 1, sizeof(*list));
	const struct cell_record *ref = reference(data);

	*count = 0;
	for (size_t i = 0; list && i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		struct provoked *p;

		if (!is_provoke_cell(r))
			continue;
		p = combination(list, count, &r->cell);
		sum_add(&p->tears, record_tears(r));
		sum_add(&p->toggles, record_toggles(r));
	}
	for (size_t i = 0; list && i < *count; i++)
		match_provoked(&list[i], data, ref);
	if (list)
		qsort(list, *count, sizeof(*list), by_crossing);
	return list;
}

static double odds(double p)
{
	return p < 1 ? p / (1 - p) : INFINITY;
}

struct ratio provoked_ratio(const struct provoked *p, double confidence)
{
	uint64_t k = p->matched_tears, all = k;
	double each = 1 - (1 - confidence) / 2;
	double exposure = (double)p->none_toggles / (double)p->matched_toggles;

	sum_add(&all, p->none_tears);
	if (!all || !p->none_toggles || !p->matched_toggles)
		return (struct ratio){ NAN, 0, INFINITY };
	return (struct ratio){
		.value = odds((double)k / (double)all) * exposure,
		.low = odds(bound_lower(k, all, each)) * exposure,
		.high = odds(bound_upper(k, all, each)) * exposure,
	};
}

/* --- The table ----------------------------------------------------------------------- */

static void put_rate(FILE *out, uint64_t tears, uint64_t toggles)
{
	html_number(out, "%s", NUMBER(toggles));
	html_number(out, "%s", NUMBER(tears));
	html_number(out, "%s", toggles ? NUMBER((double)tears / (double)toggles) : "none");
}

static void put_ratio(FILE *out, const struct provoked *p)
{
	struct ratio r = provoked_ratio(p, CONFIDENCE);
	char high[NUMBER_TEXT] = "any";

	if (!p->none_toggles) {
		html_number(out, "nothing to compare");
		return;
	}
	if (isfinite(r.high))
		number_text(high, r.high);
	if (isnan(r.value))
		html_number(out, "no tear in either");
	else
		html_number(out, "%s (%s to %s)",
			    isfinite(r.value) ? NUMBER(r.value) : "none without", NUMBER(r.low),
			    high);
}

static void put_combination(FILE *out, const struct provoked *p, const struct provoked *plain)
{
	bool is_reference = !p->provokers && p->rest == plain->rest && p->loop == plain->loop;
	char names[PROVOKERS_MAX];

	html_row(out, NULL);
	html_cell(out, "%s", crossing_name(p->crossing));
	html_cell(out, "%s", provokers_name(p->provokers, names));
	html_number(out, "%s", NUMBER(p->rest));
	html_number(out, "%u", p->loop);
	put_rate(out, p->tears, p->toggles);
	if (is_reference)
		html_number(out, "1, by definition");
	else
		put_ratio(out, p);
}

static const struct provoked *plain_of(const struct page *page, struct provoked *plain)
{
	const struct cell_record *ref = reference(page->data);

	plain->rest = ref ? ref->cell.rest : 0;
	plain->loop = ref ? ref->cell.loop : UINT32_MAX;
	return plain;
}

static void put_list(struct page *page, const struct provoked *list, size_t count)
{
	static const char *const headings[] = { "crossing", "provokers",	  "#rest",
						"#loop",    "#toggles",		  "#tears",
						"#rate",    "#times none (95 %)", NULL };
	struct provoked plain = { 0 };

	plain_of(page, &plain);
	if (!reference(page->data))
		html_missing(page->out,
			     "No cell without a provoker is among them, so there is nothing "
			     "to compare with.");
	html_table(page->out,
		   "Tears per toggle with each combination, and how many times that of none at the "
		   "same waits, placement, split and pair. The limits take tears for independent.",
		   headings);
	for (size_t i = 0; i < count; i++)
		put_combination(page->out, &list[i], &plain);
	html_table_end(page->out);
}

int section_provokers(struct page *page)
{
	size_t count;
	struct provoked *list = provoked_list(page->data, &count);

	if (!list)
		return -ENOMEM;
	if (count)
		put_list(page, list, count);
	else
		html_missing(page->out,
			     "The journals hold no cell of the ladder, so nothing tells how much "
			     "a provoker raises the rate.");
	free(list);
	return 0;
}
