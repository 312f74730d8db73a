/* SPDX-License-Identifier: MIT */
/*
 * The "estimate" line of a journal.
 */
#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"

static json_t *section_json(const struct section *s)
{
	const struct count *c = &s->count;

	return json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I}", "placement",
			 placement_name(s->placement), "slices", (json_int_t)c->slices, "toggles",
			 (json_int_t)c->toggles, "tears", (json_int_t)c->tears, "upper_p",
			 s->upper_p, "worst_tears", (json_int_t)c->worst_tears, "worst_toggles",
			 (json_int_t)c->worst_toggles);
}

static json_t *claim_json(const struct claim *claim, int which)
{
	const struct count *c = &claim->count;
	json_t *sections = json_array();

	for (unsigned i = 0; i < claim->sections; i++)
		json_array_append_new(sections, section_json(&claim->section[i]));
	return json_pack("{s:s, s:I, s:I, s:I, s:f, s:o}", "crossing", claim_name(which), "slices",
			 (json_int_t)c->slices, "toggles", (json_int_t)c->toggles, "tears",
			 (json_int_t)c->tears, "upper_p", claim->upper_p, "sections", sections);
}

static json_t *level_json(const struct level *level)
{
	json_t *claims = json_array();

	for (int c = 0; c < CLAIMS; c++)
		json_array_append_new(claims, claim_json(&level->claim[c], c));
	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:o}", "first", (json_int_t)level->rung.first,
			 "second", (json_int_t)level->rung.second, "stretch",
			 (json_int_t)level->rung.stretch, "ticks", level->ticks, "upper_p",
			 level->upper_p, "claims", claims);
}

static json_t *window_json(const struct window *w)
{
	return json_pack("{s:i, s:I, s:f, s:b}", "bytes", (int)w->bytes, "toggles",
			 (json_int_t)w->toggles, "upper_p", w->upper_p, "word_tore", w->word_tore);
}

static json_t *paper_json(const struct paper_wait *p)
{
	return json_pack("{s:b, s:b, s:I, s:b}", "known", p->known, "found", p->found, "wait",
			 (json_int_t)p->wait, "stays", p->stays);
}

json_t *estimate_to_json(const struct estimate *e)
{
	json_t *levels = json_array(), *longs = json_array();

	for (unsigned i = 0; i < e->ladder.count; i++)
		json_array_append_new(levels, level_json(&e->level[i]));
	for (unsigned i = 0; i < LONG_WAITS; i++)
		json_array_append_new(longs, level_json(&e->long_level[i]));
	return json_pack(
		"{s:s, s:s, s:f, s:f, s:i, s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:f, s:f, s:o}",
		"verdict", verdict_name(e->verdict), "reason", e->reason, "require_p", e->require_p,
		"confidence", CONFIDENCE, "runs", (int)e->runs, "scope",
		e->long_run ? "long-run" : "this-run", "membarrier_ticks", e->membarrier_ticks,
		"spread_line", e->spread[CLAIM_LINE], "spread_page", e->spread[CLAIM_PAGE],
		"window", window_json(&e->window), "paper", paper_json(&e->paper), "levels", levels,
		"factor_line", e->factor[CLAIM_LINE], "factor_page", e->factor[CLAIM_PAGE],
		"long_levels", longs);
}
