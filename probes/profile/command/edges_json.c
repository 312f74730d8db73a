/* SPDX-License-Identifier: MIT */
/*
 * A profile of edges as JSON, as a trace for Perfetto, and as a page that draws the JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/profile/command/edges.h"
#include "probes/text/text.h"
#include "probes/told/told.h"

static json_t *field_json(const char *field, size_t len)
{
	char *name = text_unescaped(field, len);
	json_t *json = told_text(name);

	free(name);
	return json;
}

static json_t *block_json(const char *field)
{
	size_t len = strcspn(field, "\t"), rest = strcspn(field + len + !!field[len], "\t");
	char *name = text_unescaped(field, len);
	json_t *json = json_pack("{s:o, s:o*, s:o*}", "block", told_text(name), "demangled",
				 name ? told_demangled(name) : NULL, "object",
				 field[len] ? field_json(field + len + 1, rest) : NULL);

	free(name);
	return json;
}

static json_t *moments_json(const struct edges *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->moments; i++) {
		const struct moment *one = &profile->moment[i];

		json_array_append_new(
			array, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "start", one->start,
					 "length", one->length, "phases", one->phases, "on",
					 one->on, "toggling", one->toggling, "entries", one->runs,
					 "share", one->length > 0 ? one->on / one->length : 0));
	}
	return array;
}

int edges_write_json(const struct edges *profile, FILE *out)
{
	json_t *edges = json_array();
	json_t *root = json_pack(
		"{s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "program",
		told_text(profile->program), "processes", (int)profile->processes, "phases",
		profile->phases, "seconds", profile->wall, "seconds_in_phases", profile->on,
		"seconds_toggling", profile->toggling, "blocks", profile->blocks, "blocks_refused",
		profile->refused, "outside_of_phases", profile->late, "lost", profile->lost,
		"agreement_of_halves", edges_agreement(profile));

	for (size_t i = 0; i < profile->n; i++) {
		const struct row *row = &profile->row[i];

		json_array_append_new(edges,
				      json_pack("{s:o, s:o, s:f, s:f, s:f, s:f}", "from",
						block_json(row->from), "to", block_json(row->to),
						"count", edges_count(row), "odd", row->half[0],
						"even", row->half[1], "seen", row->seen));
	}
	json_object_set_new(root, "edges", edges);
	json_object_set_new(root, "over_time", moments_json(profile));
	return told(out, "edges", root);
}

/* --- Trace events -------------------------------------------------------------------------------
 */

static json_t *slice(const char *name, double start, double length, const struct moment *moment)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:{s:f, s:f}}", "name", name, "ph", "X",
			 "pid", 1, "tid", 1, "ts", start * 1e6, "dur", length * 1e6, "args",
			 "entries", moment->runs, "phases", moment->phases);
}

static json_t *counter(const char *name, const char *unit, double time, double value)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", name, "ph", "C", "pid", 1, "ts",
			 time * 1e6, "args", unit, value);
}

/* Phases are slices, and how fast blocks were run in them is a counter. Microseconds. */
int edges_write_chrome(const struct edges *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name",
						"ph", "M", "pid", 1, "args", "name",
						told_text(profile->program)));
	for (size_t i = 0; i < profile->moments; i++) {
		const struct moment *one = &profile->moment[i];
		double rate = one->on > 0 ? one->runs / one->on : 0;

		json_array_append_new(events, slice(one->phases > 1 ? "phases" : "phase",
						    one->start, one->on + one->toggling, one));
		json_array_append_new(
			events, counter("blocks per second in phases", "blocks", one->start, rate));
		json_array_append_new(events,
				      counter("time in phases, %", "share", one->start,
					      one->length > 0 ? 100 * one->on / one->length : 0));
	}
	return told_line(out,
			 json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}

/* --- A page -------------------------------------------------------------------------------------
 */

static const char edges_page[] =
#include "probes/profile/command/edges.inc"
	;

static int write_edges(const void *profile, FILE *out)
{
	return edges_write_json(profile, out);
}

int edges_write_page(const struct edges *profile, FILE *out)
{
	return told_page(out, edges_page, write_edges, profile);
}
