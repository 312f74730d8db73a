/* SPDX-License-Identifier: MIT */
/*
 * The formats that are JSON.
 */
#include <jansson.h>

#include "probes/profile/write/write.h"
#include "probes/text/demangle.h"
#include "probes/told/told.h"

static json_t *indices(const struct stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; i < stack->frames; i++)
		json_array_append_new(array, json_integer((json_int_t)stack->frame[i]));
	return array;
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

	for (size_t i = 0; i < profile->stacks; i++)
		json_array_append_new(array, json_pack("{s:o, s:f, s:f}", "frames",
						       indices(&profile->stack[i]), "calls",
						       profile->stack[i].calls, "seconds",
						       profile->stack[i].seconds));
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

int write_json(const struct profile *profile, FILE *out)
{
	return told(out, "profile",
		    json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "unit", "calls", "program",
			      told_text(profile->program), "quality", quality(&profile->quality),
			      "functions", functions(profile), "stacks", stacks(profile), "phases",
			      phases(profile)));
}

int write_speedscope(const struct profile *profile, FILE *out)
{
	json_t *frames = json_array(), *samples = json_array(), *weights = json_array();
	bool timed = profile_timed(profile);
	double end = 0;

	for (size_t i = 0; i < profile->functions; i++)
		json_array_append_new(
			frames,
			json_pack("{s:o, s:o}", "name",
				  told_text(name_for_people(profile->function[i].name, true)),
				  "file", told_text(profile->function[i].object)));
	for (size_t i = 0; i < profile->stacks; i++) {
		const struct stack *stack = &profile->stack[i];
		double weight = timed ? stack->seconds : stack->calls;

		json_array_append_new(samples, indices(stack));
		json_array_append_new(weights, json_real(weight));
		end += weight;
	}
	return told_line(
		out, json_pack("{s:s, s:s, s:o, s:{s:o}, s:[{s:s, s:s, s:s, s:i, s:f, s:o, s:o}]}",
			       "$schema", "https://www.speedscope.app/file-format-schema.json",
			       "exporter", "fastinst", "name", told_text(profile->program),
			       "shared", "frames", frames, "profiles", "type", "sampled", "name",
			       timed ? "self time" : "calls", "unit", timed ? "seconds" : "none",
			       "startValue", 0, "endValue", end, "samples", samples, "weights",
			       weights));
}

/* Counters, in microseconds. */
int write_chrome(const struct profile *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name",
						"ph", "M", "pid", 1, "args", "name",
						told_text(profile->program)));
	for (size_t i = 0; i < profile->phases; i++) {
		const struct phase *one = &profile->phase[i];
		double rate = one->length > 0 ? one->calls / one->length : 0;

		json_array_append_new(events,
				      json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name",
						"calls per second", "ph", "C", "pid", 1, "ts",
						one->start * 1e6, "args", "calls", rate));
		json_array_append_new(events,
				      json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name",
						"cost of the profile, %", "ph", "C", "pid", 1, "ts",
						one->start * 1e6, "args", "cost", 100 * one->cost));
	}
	return told_line(out,
			 json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events));
}
