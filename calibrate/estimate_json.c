/* SPDX-License-Identifier: MIT */
/*
 * The "estimate" line of a journal.
 */
#include "calibrate/bound.h"
#include "calibrate/estimate.h"

static json_t *torn_json(const struct torn *torn, unsigned which)
{
	return torn->seen[which] ? json_integer((json_int_t)torn->wait[which]) : json_null();
}

static json_t *claim_json(const struct claim *c)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:o, s:o}", "crossing",
			 crossing_name(c->crossing), "first_wait", (json_int_t)c->waits.first,
			 "second_wait", (json_int_t)c->waits.second, "toggles",
			 (json_int_t)c->toggles, "tears", (json_int_t)c->tears, "far_toggles",
			 (json_int_t)c->far_toggles, "far_tears", (json_int_t)c->far_tears,
			 "upper_p", c->upper_p, "drift_p", c->drift_p, "drifted", c->drifted,
			 "torn_first", torn_json(&c->torn, 0), "torn_second",
			 torn_json(&c->torn, 1));
}

static json_t *section_json(const struct section *s)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:o, s:o}", "placement",
			 placement_name(s->placement), "crossing", crossing_name(s->crossing),
			 "toggles", (json_int_t)s->toggles, "tears", (json_int_t)s->tears,
			 "upper_p", s->upper_p, "torn_first", torn_json(&s->torn, 0), "torn_second",
			 torn_json(&s->torn, 1));
}

static json_t *arm_json(const struct arm *a)
{
	char names[PROVOKERS_MAX];

	return json_pack("{s:s, s:I, s:i, s:I, s:I, s:f, s:f, s:f, s:o, s:f}", "provokers",
			 provokers_name(a->provokers, names), "rest", (json_int_t)a->rest, "loop",
			 (int)a->loop, "toggles", (json_int_t)a->toggles, "tears",
			 (json_int_t)a->tears, "rate", a->rate, "lower", a->lower, "upper",
			 a->upper, "ratio", a->ratio >= 0 ? json_real(a->ratio) : json_null(), "p",
			 a->p);
}

static json_t *worst_json(const struct worst *w)
{
	char command[1024];

	cell_command(&w->cell, command, sizeof(command));
	return json_pack("{s:s, s:I, s:I}", "command", command, "toggles", (json_int_t)w->toggles,
			 "tears", (json_int_t)w->tears);
}

static json_t *distance_json(const struct distance *d)
{
	json_t *placements = json_array();

	for (int p = 0; p < PLACEMENT_COUNT; p++)
		if (d->least[p])
			json_array_append_new(placements,
					      json_pack("{s:s, s:I, s:I}", "placement",
							placement_name((enum placement)p), "least",
							(json_int_t)d->least[p], "greatest",
							(json_int_t)d->greatest[p]));
	return json_pack("{s:I, s:I, s:o}", "cells", (json_int_t)d->cells, "far",
			 (json_int_t)d->far, "placements", placements);
}

static void add_lists(json_t *body, const struct estimate *e)
{
	json_t *claims = json_array(), *sections = json_array(), *arms = json_array(),
	       *worst = json_array();

	for (unsigned i = 0; i < CLAIMS; i++)
		json_array_append_new(claims, claim_json(&e->claim[i]));
	for (unsigned i = 0; i < e->sections; i++)
		json_array_append_new(sections, section_json(&e->section[i]));
	for (unsigned i = 0; i < e->arms.count; i++)
		json_array_append_new(arms, arm_json(&e->arms.arm[i]));
	for (unsigned i = 0; i < e->worsts; i++)
		json_array_append_new(worst, worst_json(&e->worst[i]));
	json_object_set_new(body, "claims", claims);
	json_object_set_new(body, "sections", sections);
	json_object_set_new(body, "arms", arms);
	json_object_set_new(body, "worst", worst);
}

json_t *estimate_to_json(const struct estimate *e)
{
	json_t *body = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:b, s:i, s:I, s:f, "
		"s:I, s:I}",
		"verdict", verdict_name(e->verdict), "reason", e->reason, "first_wait",
		(json_int_t)e->waits.first, "second_wait", (json_int_t)e->waits.second, "stretch",
		(json_int_t)e->stretch, "toggles", (json_int_t)e->toggles, "tears",
		(json_int_t)e->tears, "upper_p", e->upper_p, "pooled_p", e->pooled_p, "confidence",
		CONFIDENCE, "torn_first", torn_json(&e->torn, 0), "torn_second",
		torn_json(&e->torn, 1), "tears_here", e->tears_here, "window", (int)e->window,
		"window_toggles", (json_int_t)e->window_toggles, "window_p", e->window_p, "cells",
		(json_int_t)e->cells, "noisy", (json_int_t)e->noisy);

	if (!body)
		return NULL;
	add_lists(body, e);
	json_object_set_new(body, "distance", distance_json(&e->distance));
	if (e->have_torn_cell)
		json_object_set_new(body, "torn_cell", json_string(e->torn_cell.key));
	return body;
}
