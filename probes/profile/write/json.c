/* SPDX-License-Identifier: MIT */
/*
 * The formats that are JSON.
 */
#include <jansson.h>

#include "probes/profile/write/write.h"
#include "probes/text/demangle.h"
#include "probes/told/told.h"

static json_t *frames(const struct arc *arc)
{
	if (arc->from == NO_CALLER)
		return json_pack("[I]", (json_int_t)arc->to);
	return json_pack("[I, I]", (json_int_t)arc->from, (json_int_t)arc->to);
}

static json_t *range(const struct range *range)
{
	return json_pack("{s:f, s:f, s:f}", "seconds", range->value, "low", range->low, "high",
			 range->high);
}

/* NULL: nothing is known. */
static json_t *times(const struct times *times)
{
	json_t *self;

	if (!profile_known(times) && !(times->torn + times->cut > 0))
		return NULL;
	self = range(&times->self);
	if (times->self_problem)
		json_object_set_new(self, "problem", json_string(times->self_problem));
	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:s*}", "self", self, "total",
			 range(&times->total), "wall", times->wall, "timed", times->timed, "torn",
			 times->torn, "cut", times->cut, "problem", times->problem);
}

static json_t *functions(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->functions; i++) {
		const struct function *one = &profile->function[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:o*, s:o, s:f, s:f, s:f, s:f, s:s*, s:o*}", "name",
				  told_text(one->name), "demangled", told_demangled(one->name),
				  "object", told_text(one->object), "calls", one->calls, "low",
				  one->low, "high", one->high, "counted", one->counted, "problem",
				  one->problem, "times", times(&one->times)));
	}
	return array;
}

static json_t *stacks(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->arcs; i++)
		json_array_append_new(array, json_pack("{s:o, s:f, s:f}", "frames",
						       frames(&profile->arc[i]), "calls",
						       profile->arc[i].calls, "seconds",
						       profile->arc[i].seconds));
	return array;
}

static json_t *phases(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->phases; i++) {
		const struct phase *one = &profile->phase[i];

		json_array_append_new(array, json_pack("{s:f, s:f, s:f, s:f}", "start", one->start,
						       "length", one->length, "calls", one->calls,
						       "cost", one->cost));
	}
	return array;
}

static json_t *quality(const struct quality *quality)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "seconds",
			 quality->seconds, "epochs", quality->epochs, "budget", quality->budget,
			 "cost", quality->cost, "toggles", quality->toggles, "toggling",
			 quality->toggling, "lost", quality->lost, "refused", quality->refused,
			 "processes", quality->processes, "exits", quality->exits, "torn",
			 quality->torn, "cut", quality->cut);
}

/* --- Of edges --------------------------------------------------------------------------------- */

static json_t *block(const struct profile *profile, size_t f)
{
	const struct function *one = &profile->function[f];

	return json_pack("{s:o, s:o*, s:o}", "block", told_text(one->name), "demangled",
			 told_demangled(one->name), "object", told_text(one->object));
}

static json_t *edges(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *one = &profile->arc[i];

		json_array_append_new(array, json_pack("{s:o, s:o, s:f, s:f, s:f, s:f}", "from",
						       block(profile, one->from), "to",
						       block(profile, one->to), "count", one->calls,
						       "odd", one->half[0], "even", one->half[1],
						       "seen", one->seen));
	}
	return array;
}

static json_t *over_time(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->phases; i++) {
		const struct phase *one = &profile->phase[i];

		json_array_append_new(
			array, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "start", one->start,
					 "length", one->length, "phases", one->phases, "on",
					 one->on, "toggling", one->toggling, "entries", one->calls,
					 "share", one->length > 0 ? one->on / one->length : 0));
	}
	return array;
}

static int write_edges(const struct profile *profile, FILE *out)
{
	const struct quality *sum = &profile->quality;

	return told(out, "edges",
		    json_pack("{s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
			      "program", told_text(profile->program), "processes",
			      (int)sum->processes, "phases", sum->epochs, "seconds", sum->seconds,
			      "seconds_in_phases", sum->on, "seconds_toggling", sum->toggling,
			      "blocks", sum->blocks, "blocks_refused", sum->refused,
			      "outside_of_phases", sum->late, "lost", sum->lost,
			      "agreement_of_halves", profile_agreement(profile), "edges",
			      edges(profile), "over_time", over_time(profile)));
}

int write_json(const struct profile *profile, FILE *out)
{
	if (profile->edges)
		return write_edges(profile, out);
	return told(out, "profile",
		    json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "unit", "calls", "program",
			      told_text(profile->program), "quality", quality(&profile->quality),
			      "functions", functions(profile), "stacks", stacks(profile), "phases",
			      phases(profile)));
}

int write_speedscope(const struct profile *profile, FILE *out)
{
	json_t *names = json_array(), *samples = json_array(), *weights = json_array();
	bool timed = profile_timed(profile);
	double end = 0;

	for (size_t i = 0; i < profile->functions; i++)
		json_array_append_new(
			names,
			json_pack("{s:o, s:o}", "name",
				  told_text(name_for_people(profile->function[i].name, true)),
				  "file", told_text(profile->function[i].object)));
	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *arc = &profile->arc[i];
		double weight = timed ? arc->seconds : arc->calls;

		json_array_append_new(samples, frames(arc));
		json_array_append_new(weights, json_real(weight));
		end += weight;
	}
	return told_line(
		out, json_pack("{s:s, s:s, s:o, s:{s:o}, s:[{s:s, s:s, s:s, s:i, s:f, s:o, s:o}]}",
			       "$schema", "https://www.speedscope.app/file-format-schema.json",
			       "exporter", "fastinst", "name", told_text(profile->program),
			       "shared", "frames", names, "profiles", "type", "sampled", "name",
			       timed ? "self time" : "calls", "unit", timed ? "seconds" : "none",
			       "startValue", 0, "endValue", end, "samples", samples, "weights",
			       weights));
}

/* --- Trace events ----------------------------------------------------------------------------- */

static json_t *slice(const struct phase *one)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:{s:f, s:f}}", "name",
			 one->phases > 1 ? "phases" : "phase", "ph", "X", "pid", 1, "tid", 1, "ts",
			 one->start * 1e6, "dur", (one->on + one->toggling) * 1e6, "args",
			 "entries", one->calls, "phases", one->phases);
}

static json_t *counter(const char *name, const char *unit, double time, double value)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", name, "ph", "C", "pid", 1, "ts",
			 time * 1e6, "args", unit, value);
}

static void add_phase(json_t *events, const struct phase *one, bool edges)
{
	double length = edges ? one->on : one->length;
	double share = !edges ? one->cost : one->length > 0 ? one->on / one->length : 0;

	if (edges)
		json_array_append_new(events, slice(one));
	json_array_append_new(events,
			      counter(edges ? "blocks per second in phases" : "calls per second",
				      edges ? "blocks" : "calls", one->start,
				      length > 0 ? one->calls / length : 0));
	json_array_append_new(events,
			      counter(edges ? "time in phases, %" : "cost of the profile, %",
				      edges ? "share" : "cost", one->start, 100 * share));
}

/* Microseconds. */
int write_chrome(const struct profile *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name",
						"ph", "M", "pid", 1, "args", "name",
						told_text(profile->program)));
	for (size_t i = 0; i < profile->phases; i++)
		add_phase(events, &profile->phase[i], profile->edges);
	return told_line(out,
			 json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}
