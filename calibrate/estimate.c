/* SPDX-License-Identifier: MIT */
#include "calibrate/estimate.h"

#include <string.h>

#include "calibrate/bound.h"

static const char *const verdict_names[] = {
	[VERDICT_PASS] = "pass",
	[VERDICT_FAIL] = "fail",
	[VERDICT_INCONCLUSIVE] = "inconclusive",
};

const char *verdict_name(enum verdict verdict)
{
	return verdict_names[verdict];
}

static void torn_raise(struct torn *torn, unsigned which, uint64_t wait)
{
	if (!torn->seen[which] || wait > torn->wait[which])
		torn->wait[which] = wait;
	torn->seen[which] = true;
}

void torn_add(struct torn *torn, const struct cell_record *record)
{
	const uint64_t *tears = record->result.tears;

	if (record->cell.protocol != PROTOCOL_WAIT)
		return;
	/* What cannot be told apart is blamed on both. */
	if (tears[TEAR_OLD_FRONT] || tears[TEAR_OTHER])
		torn_raise(torn, 0, record->cell.first_wait);
	if (tears[TEAR_NEW_FRONT] || tears[TEAR_OTHER])
		torn_raise(torn, 1, record->cell.second_wait);
}

static struct section *section_of(struct estimate *e, const struct cell *cell)
{
	struct section *s;

	for (unsigned i = 0; i < e->sections; i++) {
		s = &e->section[i];
		if (s->placement == cell->placement && s->crossing == cell->crossing)
			return s;
	}
	s = &e->section[e->sections++];
	*s = (struct section){ .placement = cell->placement, .crossing = cell->crossing };
	return s;
}

static double rate(const struct cell_record *r)
{
	return r->result.toggles ? (double)cell_result_tears(&r->result) / (double)r->result.toggles
				 : 1;
}

/* The wait that a record's tears speak against. */
static uint64_t torn_wait(const struct cell_record *r)
{
	struct torn torn = { 0 };

	torn_add(&torn, r);
	return torn.wait[0] > torn.wait[1] ? torn.wait[0] : torn.wait[1];
}

static void consider_worst(struct estimate *e, const struct cell_record *r)
{
	if (cell_result_tears(&r->result) == 0)
		return;
	if (e->have_worst && torn_wait(r) < torn_wait(&e->worst))
		return;
	if (e->have_worst && torn_wait(r) == torn_wait(&e->worst) && rate(r) <= rate(&e->worst))
		return;
	e->worst = *r;
	e->have_worst = true;
}

static void add_wait_cell(struct estimate *e, const struct cell_record *r)
{
	struct section *s = section_of(e, &r->cell);

	torn_add(&e->torn, r);
	torn_add(&s->torn, r);
	consider_worst(e, r);
	/* The bracket chose the waits; only the campaign may speak for them. */
	if (strcmp(r->stage, "campaign") != 0 || r->cell.first_wait != e->first_wait ||
	    r->cell.second_wait != e->second_wait)
		return;
	s->tears += cell_result_tears(&r->result);
	e->tears += cell_result_tears(&r->result);
	/* A cell that hung or was killed has shown no more than its tears. */
	if (r->result.outcome == OUTCOME_KILLED || r->result.outcome == OUTCOME_HANG)
		return;
	s->toggles += r->result.toggles;
	e->toggles += r->result.toggles;
}

/* Window w stands if no boundary inside it tore: 8 is inside 16, 16 inside 32, ... */
static void judge_window(struct estimate *e, const uint64_t toggles[], const uint64_t tears[])
{
	e->window = 8;
	e->word_tore = tears[CROSSING_NONE] > 0;
	e->window_toggles = toggles[CROSSING_NONE];
	e->window_p = bound_upper(tears[CROSSING_NONE], toggles[CROSSING_NONE], CONFIDENCE);
	for (int c = CROSSING_8; !e->word_tore && c <= CROSSING_32; c++) {
		double p = bound_upper(tears[c], toggles[c], CONFIDENCE);

		if (tears[c] || toggles[c] == 0)
			return;
		if (c == CROSSING_8 || p > e->window_p)
			e->window_p = p;
		if (c == CROSSING_8)
			e->window_toggles = 0;
		e->window_toggles += toggles[c];
		e->window = crossing_bytes((enum crossing)c) * 2;
	}
}

static void add_window_cell(const struct cell_record *r, uint64_t toggles[], uint64_t tears[])
{
	toggles[r->cell.crossing] += r->result.toggles;
	tears[r->cell.crossing] += cell_result_tears(&r->result);
}

static double margin_of(const struct estimate *e)
{
	double margin = 0;
	const uint64_t wait[2] = { e->first_wait, e->second_wait };

	for (unsigned i = 0; i < 2; i++) {
		double m;

		if (!e->torn.seen[i] || e->torn.wait[i] == 0)
			continue;
		m = (double)wait[i] / (double)e->torn.wait[i];
		if (margin == 0 || m < margin)
			margin = m;
	}
	return margin;
}

static void bound_sections(struct estimate *e)
{
	for (unsigned i = 0; i < e->sections; i++) {
		struct section *s = &e->section[i];

		s->upper_p = bound_upper(s->tears, s->toggles, CONFIDENCE);
		if (i == 0 || s->upper_p > e->upper_p)
			e->upper_p = s->upper_p;
	}
	e->pooled_p = bound_upper(e->tears, e->toggles, CONFIDENCE);
}

void estimate_make(struct estimate *e, const struct cell_record *records, size_t count,
		   uint64_t first_wait, uint64_t second_wait)
{
	uint64_t window_toggles[CROSSING_COUNT] = { 0 }, window_tears[CROSSING_COUNT] = { 0 };

	*e = (struct estimate){
		.first_wait = first_wait,
		.second_wait = second_wait,
		.upper_p = 1,
	};
	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];

		if (r->cell.protocol == PROTOCOL_WAIT)
			add_wait_cell(e, r);
		else if (r->cell.protocol == PROTOCOL_ATOMIC)
			add_window_cell(r, window_toggles, window_tears);
		else if (r->cell.protocol == PROTOCOL_NAIVE && cell_result_tears(&r->result))
			e->tears_here = true;
	}
	judge_window(e, window_toggles, window_tears);
	bound_sections(e);
	e->margin = margin_of(e);
}

static json_t *torn_json(const struct torn *torn, unsigned which)
{
	return torn->seen[which] ? json_integer((json_int_t)torn->wait[which]) : json_null();
}

static json_t *section_json(const struct section *s)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:o, s:o}", "placement",
			 placement_name(s->placement), "crossing", crossing_name(s->crossing),
			 "toggles", (json_int_t)s->toggles, "tears", (json_int_t)s->tears,
			 "upper_p", s->upper_p, "torn_first", torn_json(&s->torn, 0), "torn_second",
			 torn_json(&s->torn, 1));
}

json_t *estimate_to_json(const struct estimate *e)
{
	json_t *sections = json_array(), *body;

	for (unsigned i = 0; i < e->sections; i++)
		json_array_append_new(sections, section_json(&e->section[i]));
	body = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:f, s:b, s:i, s:I, s:f, "
		"s:o}",
		"verdict", verdict_name(e->verdict), "reason", e->reason, "first_wait",
		(json_int_t)e->first_wait, "second_wait", (json_int_t)e->second_wait, "toggles",
		(json_int_t)e->toggles, "tears", (json_int_t)e->tears, "upper_p", e->upper_p,
		"pooled_p", e->pooled_p, "confidence", CONFIDENCE, "torn_first",
		torn_json(&e->torn, 0), "torn_second", torn_json(&e->torn, 1), "margin", e->margin,
		"tears_here", e->tears_here, "window", (int)e->window, "window_toggles",
		(json_int_t)e->window_toggles, "window_p", e->window_p, "sections", sections);
	if (body && e->have_worst)
		json_object_set_new(body, "worst", json_string(e->worst.key));
	return body;
}
