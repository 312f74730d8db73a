/* SPDX-License-Identifier: MIT */
/* How much a provoker raises the rate of tears. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/report/report.h"
#include "calibrate/statistics/bound.h"

/* What the first keys of a row are; the others say which cells are alike but for them. */
enum {
	CROSSING,
	PROVOKERS,
	REST,
	LOOP,
	COMBINATION /* so many keys tell combinations apart */
};

/* The paper's waits, which stand still, are never provoked. */
static bool is_provoke_cell(const struct cell_record *r)
{
	return strcmp(r->stage, "ladder") == 0 && r->cell.waits.stretch && is_wait_cell(r);
}

/* Of cells without provokers the first one; NULL: there is none. */
static const struct cell *reference(const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++)
		if (is_provoke_cell(&data->records[i]) && !data->records[i].cell.provokers)
			return &data->records[i].cell;
	return NULL;
}

struct provoked *provoked_list(const struct journal_data *data, size_t *count)
{
	const struct cell *ref = reference(data);
	struct tally cells = { 0 };
	struct provoked *list;

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		const struct cell *c = &r->cell;

		if (is_provoke_cell(r))
			tally_add(&cells, &(struct tally_row){
						  .key = { c->crossing, c->provokers, c->rest,
							   c->loop, c->placement, c->pair, c->split,
							   c->executors, c->waits.first,
							   c->waits.second, c->waits.stretch },
						  .events = record_tears(r),
						  .trials = record_toggles(r) });
	}
	*count = 0;
	list = cells.failed ? NULL : calloc(cells.count + 1, sizeof(*list));
	for (size_t i = 0; list && i < cells.count; i++) {
		const struct tally_row *row = &cells.row[i], *none = NULL;
		const uint64_t *key = row->key;
		struct tally_row alike = *row;
		struct provoked *p;

		if (tally_begins(&cells, i, COMBINATION))
			list[(*count)++] = (struct provoked){
				.crossing = (enum crossing)key[CROSSING],
				.provokers = (unsigned)key[PROVOKERS],
				.rest = key[REST],
				.loop = (unsigned)key[LOOP],
				.is_reference = ref && !key[PROVOKERS] && key[REST] == ref->rest &&
						key[LOOP] == ref->loop,
			};
		p = &list[*count - 1];
		sum_add(&p->tears, row->events);
		sum_add(&p->toggles, row->trials);
		if (ref) {
			alike.key[PROVOKERS] = 0;
			alike.key[REST] = ref->rest;
			alike.key[LOOP] = ref->loop;
			none = tally_find(&cells, alike.key);
		}
		if (!none)
			continue;
		sum_add(&p->matched_tears, row->events);
		sum_add(&p->matched_toggles, row->trials);
		sum_add(&p->none_tears, none->events);
		sum_add(&p->none_toggles, none->trials);
	}
	tally_free(&cells);
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

int section_provokers(struct page *page)
{
	size_t count;
	struct provoked *list = provoked_list(page->data, &count), *most = NULL;
	char names[PROVOKERS_MAX];
	FILE *out = page->out;
	double least = 1;

	if (!list)
		return -ENOMEM;
	if (!count) {
		html_missing(out, "The journals hold no cell of the ladder, so nothing tells how "
				  "much a provoker raises the rate.");
		free(list);
		return 0;
	}
	/* In words: which of them raises the rate most, as far as is sure. */
	for (struct provoked *p = list; p < list + count; p++) {
		struct ratio r = provoked_ratio(p, CONFIDENCE);

		if (p->is_reference || !(r.low > least))
			continue;
		least = r.low;
		most = p;
	}
	if (!most)
		html_paragraph(out, "None raises the rate of tears for sure.");
	else
		html_paragraph(
			out,
			"The strongest for sure: %s across a %s, with a rest of %s ticks and "
			"a loop of %u: at least %s times the rate of none.",
			provokers_name(most->provokers, names), crossing_name(most->crossing),
			NUMBER(most->rest), most->loop, NUMBER(least));
	if (!reference(page->data))
		html_missing(out, "No cell without a provoker is among them, so there is nothing "
				  "to compare with.");
	html_fold(out, "%zu combination%s", count, S(count));
	html_table(out,
		   "Tears per toggle with each combination, and how many times that of none at the "
		   "same waits, placement, split and pair. The limits take tears for independent.",
		   "crossing\tprovokers\t#rest\t#loop\t#toggles\t#tears\t#rate\t"
		   "#times none (95 %)");
	for (const struct provoked *p = list; p < list + count; p++) {
		struct ratio r = provoked_ratio(p, CONFIDENCE);

		html_line(out, NULL, "ttnnnnn", "%s\t%s\t%s\t%u\t%s\t%s\t%s",
			  crossing_name(p->crossing), provokers_name(p->provokers, names),
			  NUMBER(p->rest), p->loop, NUMBER(p->toggles), NUMBER(p->tears),
			  p->toggles ? NUMBER((double)p->tears / (double)p->toggles) : "none");
		if (p->is_reference)
			html_number(out, "1, by definition");
		else if (!p->none_toggles)
			html_number(out, "nothing to compare");
		else if (isnan(r.value))
			html_number(out, "no tear in either");
		else
			html_number(out, "%s (%s to %s)",
				    isfinite(r.value) ? NUMBER(r.value) : "none without",
				    NUMBER(r.low), isfinite(r.high) ? NUMBER(r.high) : "any");
	}
	html_folded_table_end(out);
	free(list);
	return 0;
}
