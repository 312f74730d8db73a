/* SPDX-License-Identifier: MIT */
/* What is printed as JSON, and the formats that are JSON. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/text.h"
#include "profile/command/command.h"

json_t *name_json(const char *name)
{
	char *text = name ? text_utf8(name) : NULL;
	json_t *json = json_string(text);

	free(text);
	return json;
}

json_t *demangled_json(const char *name)
{
	const char *shown = name_for_people(name, true);

	return shown == name ? NULL : name_json(shown);
}

void count_more(json_t *object, const char *name, json_int_t more)
{
	more += json_integer_value(json_object_get(object, name));
	json_object_set_new(object, name, json_integer(more));
}

int print_json_line(FILE *out, json_t *object)
{
	int ret = object ? 0 : -ENOMEM;

	if (object && (json_dumpf(object, out, JSON_COMPACT) < 0 || putc('\n', out) == EOF))
		ret = -EIO;
	json_decref(object);
	return ret;
}

int print_json(FILE *out, const char *type, json_t *body)
{
	char date[DATE_ROOM];
	json_t *object;

	object = json_pack("{s:s, s:i, s:s, s:s}", "type", type, "schema", JSON_SCHEMA, "tool",
			   PACKAGE_STRING, "date", date_text(time(NULL), false, date));
	/* A body that is missing is no object: without it nothing is told. */
	if (object && json_object_update_missing(object, body) < 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(body);
	return print_json_line(out, object);
}

/* --- A profile -------------------------------------------------------------------------------- */

typedef json_t *packer(const struct profile *profile, size_t i);

static json_t *array_of(const struct profile *profile, size_t n, packer *pack)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, pack(profile, i));
	return array;
}

static json_t *pack_stack_frames(const struct profile *profile, size_t i)
{
	const struct arc *one = &profile->arc[i];

	if (one->from == NO_CALLER)
		return json_pack("[I]", (json_int_t)one->to);
	return json_pack("[I, I]", (json_int_t)one->from, (json_int_t)one->to);
}

static json_t *pack_interval(const struct interval *time, const char *problem)
{
	return json_pack("{s:f, s:f, s:f, s:s*}", "seconds", time->value, "low", time->low, "high",
			 time->high, "problem", problem);
}

/* NULL: nothing is known. */
static json_t *pack_times(const struct function *function)
{
	const struct times *times = &function->times;
	const struct duration *time = &function->evidence.measured.time;

	if (!has_times(function) && !(time->torn + time->cut > 0))
		return NULL;
	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:s*}", "self",
			 pack_interval(&times->self, times->self.problem), "total",
			 pack_interval(&times->total, NULL), "wall", times->wall, "timed",
			 time->timed, "torn", time->torn, "cut", time->cut, "problem",
			 times->total.problem);
}

static json_t *pack_function(const struct profile *profile, size_t i)
{
	const struct function *one = &profile->function[i];

	return json_pack("{s:o, s:o*, s:o, s:f, s:f, s:f, s:f, s:s*, s:o*}", "name",
			 name_json(one->name), "demangled", demangled_json(one->name), "object",
			 name_json(one->object), "calls", one->calls.value, "low", one->calls.low,
			 "high", one->calls.high, "counted", one->evidence.measured.calls.counted,
			 "problem", one->calls.problem, "times", pack_times(one));
}

static json_t *pack_stack(const struct profile *profile, size_t i)
{
	const struct arc *one = &profile->arc[i];

	return json_pack("{s:o, s:f, s:f}", "frames", pack_stack_frames(profile, i), "calls",
			 one->calls, "seconds", one->seconds);
}

static json_t *pack_phase(const struct profile *profile, size_t i)
{
	const struct phase *one = &profile->phase[i];

	return json_pack("{s:f, s:f, s:f, s:f}", "start", one->start, "length", one->length,
			 "calls", one->calls, "cost", one->cost);
}

static json_t *pack_quality(const struct quality *quality)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "seconds",
			 quality->seconds, "epochs", quality->epochs, "budget", quality->budget,
			 "cost", quality->cost, "toggles", quality->toggles, "toggling",
			 quality->toggling, "lost", quality->lost, "refused", quality->refused,
			 "processes", quality->processes, "exits", quality->exits, "torn",
			 quality->torn, "cut", quality->cut);
}

/* --- Of edges --------------------------------------------------------------------------------- */

static json_t *pack_block(const struct profile *profile, size_t f)
{
	const struct function *one = &profile->function[f];

	return json_pack("{s:o, s:o*, s:o}", "block", name_json(one->name), "demangled",
			 demangled_json(one->name), "object", name_json(one->object));
}

static json_t *pack_edge(const struct profile *profile, size_t i)
{
	const struct arc *one = &profile->arc[i];

	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:f}", "from", pack_block(profile, one->from),
			 "to", pack_block(profile, one->to), "count", one->calls, "odd",
			 one->half[0], "even", one->half[1], "seen", one->seen);
}

static json_t *pack_moment(const struct profile *profile, size_t i)
{
	const struct phase *one = &profile->phase[i];

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "start", one->start, "length",
			 one->length, "phases", one->phases, "on", one->on, "toggling",
			 one->toggling, "entries", one->calls, "share",
			 one->length > 0 ? one->on / one->length : 0);
}

static int write_edges(const struct profile *profile, FILE *out)
{
	const struct quality *sum = &profile->quality;

	return print_json(
		out, "edges",
		json_pack("{s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
			  "program", name_json(profile->program), "processes", (int)sum->processes,
			  "phases", sum->epochs, "seconds", sum->seconds, "seconds_in_phases",
			  sum->on, "seconds_toggling", sum->toggling, "blocks", sum->blocks,
			  "blocks_refused", sum->refused, "outside_of_phases", sum->late, "lost",
			  sum->lost, "agreement_of_halves", profile_agreement(profile), "edges",
			  array_of(profile, profile->arcs, pack_edge), "over_time",
			  array_of(profile, profile->phases, pack_moment)));
}

int write_json(const struct profile *profile, FILE *out)
{
	if (profile->edges)
		return write_edges(profile, out);
	return print_json(out, "profile",
			  json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "unit", "calls", "program",
				    name_json(profile->program), "quality",
				    pack_quality(&profile->quality), "functions",
				    array_of(profile, profile->functions, pack_function), "stacks",
				    array_of(profile, profile->arcs, pack_stack), "phases",
				    array_of(profile, profile->phases, pack_phase)));
}

static json_t *pack_frame(const struct profile *profile, size_t i)
{
	const struct function *one = &profile->function[i];

	return json_pack("{s:o, s:o}", "name", name_json(name_for_people(one->name, true)), "file",
			 name_json(one->object));
}

int write_speedscope(const struct profile *profile, FILE *out)
{
	bool timed = profile_has_times(profile);
	json_t *weights = json_array();
	double end = 0;

	for (size_t i = 0; i < profile->arcs; i++) {
		double weight = timed ? profile->arc[i].seconds : profile->arc[i].calls;

		json_array_append_new(weights, json_real(weight));
		end += weight;
	}
	return print_json_line(
		out,
		json_pack("{s:s, s:s, s:o, s:{s:o}, s:[{s:s, s:s, s:s, s:i, s:f, s:o, s:o}]}",
			  "$schema", "https://www.speedscope.app/file-format-schema.json",
			  "exporter", "fastinst", "name", name_json(profile->program), "shared",
			  "frames", array_of(profile, profile->functions, pack_frame), "profiles",
			  "type", "sampled", "name", timed ? "self time" : "calls", "unit",
			  timed ? "seconds" : "none", "startValue", 0, "endValue", end, "samples",
			  array_of(profile, profile->arcs, pack_stack_frames), "weights", weights));
}

/* --- Trace events ----------------------------------------------------------------------------- */

static json_t *pack_counter(const char *name, const char *unit, double time, double value)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", name, "ph", "C", "pid", 1, "ts",
			 time * 1e6, "args", unit, value);
}

static void add_phase(json_t *events, const struct phase *one, bool edges)
{
	double length = edges ? one->on : one->length;
	double share = !edges ? one->cost : one->length > 0 ? one->on / one->length : 0;

	if (edges)
		json_array_append_new(events,
				      json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:{s:f, s:f}}",
						"name", one->phases > 1 ? "phases" : "phase", "ph",
						"X", "pid", 1, "tid", 1, "ts", one->start * 1e6,
						"dur", (one->on + one->toggling) * 1e6, "args",
						"entries", one->calls, "phases", one->phases));
	json_array_append_new(
		events, pack_counter(edges ? "blocks per second in phases" : "calls per second",
				     edges ? "blocks" : "calls", one->start,
				     length > 0 ? one->calls / length : 0));
	json_array_append_new(events,
			      pack_counter(edges ? "time in phases, %" : "cost of the profile, %",
					   edges ? "share" : "cost", one->start, 100 * share));
}

/* Microseconds. */
int write_chrome(const struct profile *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name",
						"ph", "M", "pid", 1, "args", "name",
						name_json(profile->program)));
	for (size_t i = 0; i < profile->phases; i++)
		add_phase(events, &profile->phase[i], profile->edges);
	return print_json_line(
		out, json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}
