/* SPDX-License-Identifier: MIT */
/*
 * The formats that are JSON.
 */
#include <errno.h>

#include <jansson.h>

#include "probes/profile/write/write.h"

static int put(json_t *root, FILE *out)
{
	int ret = root ? json_dumpf(root, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : -1;

	json_decref(root);
	fputc('\n', out);
	return ret < 0 || ferror(out) ? -EIO : 0;
}

/* Symbols are bytes, and JSON is UTF-8. */
static json_t *text(const char *string)
{
	json_t *json = json_string(string);

	return json ? json : json_string("(no UTF-8)");
}

static json_t *indices(const struct stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; i < stack->frames; i++)
		json_array_append_new(array, json_integer((json_int_t)stack->frame[i]));
	return array;
}

static json_t *functions(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->functions; i++) {
		const struct function *one = &profile->function[i];

		json_array_append_new(
			array, json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:s*}", "name",
					 text(one->name), "object", text(one->object), "calls",
					 one->calls, "low", one->low, "high", one->high, "counted",
					 one->counted, "problem", one->problem));
	}
	return array;
}

static json_t *stacks(const struct profile *profile)
{
	json_t *array = json_array();

	for (size_t i = 0; i < profile->stacks; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:f}", "frames", indices(&profile->stack[i]),
						"calls", profile->stack[i].calls));
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
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "seconds", quality->seconds,
			 "epochs", quality->epochs, "budget", quality->budget, "cost",
			 quality->cost, "toggles", quality->toggles, "lost", quality->lost,
			 "refused", quality->refused, "processes", quality->processes);
}

int write_json(const struct profile *profile, FILE *out)
{
	return put(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "format", "fastinst profile 1",
			     "unit", "calls", "program", text(profile->program), "quality",
			     quality(&profile->quality), "functions", functions(profile), "stacks",
			     stacks(profile), "phases", phases(profile)),
		   out);
}

int write_speedscope(const struct profile *profile, FILE *out)
{
	json_t *frames = json_array(), *samples = json_array(), *weights = json_array();
	double end = 0;

	for (size_t i = 0; i < profile->functions; i++)
		json_array_append_new(frames, json_pack("{s:o, s:o}", "name",
							text(profile->function[i].name), "file",
							text(profile->function[i].object)));
	for (size_t i = 0; i < profile->stacks; i++) {
		json_array_append_new(samples, indices(&profile->stack[i]));
		json_array_append_new(weights, json_real(profile->stack[i].calls));
		end += profile->stack[i].calls;
	}
	return put(json_pack("{s:s, s:s, s:s, s:{s:o}, s:[{s:s, s:s, s:s, s:i, s:f, s:o, s:o}]}",
			     "$schema", "https://www.speedscope.app/file-format-schema.json",
			     "exporter", "fastinst", "name", profile->program, "shared", "frames",
			     frames, "profiles", "type", "sampled", "name", "calls", "unit", "none",
			     "startValue", 0, "endValue", end, "samples", samples, "weights",
			     weights),
		   out);
}

/* Counters, in microseconds. */
int write_chrome(const struct profile *profile, FILE *out)
{
	json_t *events = json_array();

	json_array_append_new(events,
			      json_pack("{s:s, s:s, s:i, s:{s:o}}", "name", "process_name", "ph",
					"M", "pid", 1, "args", "name", text(profile->program)));
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
	return put(json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events), out);
}
