/* SPDX-License-Identifier: MIT */
/* The formats of a trace: text, lines of JSON, and the events of chrome://tracing. */
#include "commands/fastinst/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/counts/base.h"
#include "base/demangle.h"
#include "base/text.h"
#include "commands/fastinst/sites.h"
#include "profile/command/command.h"

#define INDENT_MAX 40

/* --- Values ----------------------------------------------------------------------------------- */

/* Operands of markers have no names. */
static const struct source_value *unnamed_value(unsigned i)
{
	static struct source_value values[RING_VALUES];

	values[i] = (struct source_value){ .name = "", .form = SOURCE_SIGNED, .bits = 64 };
	values[i].reg = (uint8_t)i;
	return &values[i];
}

/* All values of such an event are its operands. */
static bool has_values(const struct traced *probe)
{
	return probe->kind == FI_MARKER || probe->kind == FI_COMPARE;
}

/* Arguments, or at an exit results. */
const struct source_value *shown_value(const struct shown *shown, unsigned i)
{
	const struct traced *probe = shown->probe;

	if (!probe->has_types)
		return has_values(probe) && i < shown->event->values ? unnamed_value(i) : NULL;
	if (probe->kind == FI_EXIT)
		return i < probe->types.results ? &probe->types.result[i] : NULL;
	return probe->kind != FI_BLOCK && i < probe->types.args ? &probe->types.arg[i] : NULL;
}

/* A result that is no struct. */
static const struct source_value *single_value(const struct shown *shown)
{
	const struct source_value *value = shown_value(shown, 0);

	return value && !*value->name && !shown_value(shown, 1) ? value : NULL;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_values(FILE *out, const struct shown *shown)
{
	const struct source_value *value;

	for (unsigned i = 0; (value = shown_value(shown, i)); i++) {
		fputs(i ? ", " : "", out);
		text_put(out, value->name);
		fputs(*value->name ? "=" : "", out);
		value_put(out, shown->event, value);
	}
}

static void put_args(FILE *out, const struct shown *shown)
{
	fputc('(', out);
	put_values(out, shown);
	if (shown->probe->types.more ||
	    (shown->probe->kind == FI_ENTRY && !shown->probe->has_types) ||
	    (shown->probe->kind == FI_COMPARE && !shown_value(shown, 0)))
		fputs(shown->probe->types.args ? ", ..." : "...", out);
	fputc(')', out);
}

static void put_result(FILE *out, const struct shown *shown)
{
	bool braces = !single_value(shown);

	if (!shown_value(shown, 0))
		return;
	fputs(braces ? " = {" : " = ", out);
	put_values(out, shown);
	fputs(braces ? "}" : "", out);
}

static void text_event(FILE *out, const struct shown *shown)
{
	static const char signs[] = "><*  -="; /* of each enum fi_kind */
	const struct traced *probe = shown->probe;
	unsigned indent = shown->depth < INDENT_MAX ? shown->depth : INDENT_MAX;
	char source[SOURCE_ROOM];

	fprintf(out, "%6" PRIu64 ".%09" PRIu64 " %7d %7d ", shown->time / 1000000000,
		shown->time % 1000000000, shown->pid, shown->tid);
	if (shown->lost) {
		fprintf(out, "! %" PRIu64 " events lost: there was no room for them\n",
			shown->lost);
		return;
	}
	fprintf(out, "%*s%c ", (int)indent * 2, "", signs[probe->kind]);
	text_put(out, name_for_people(probe->function, false));
	if (probe->kind == FI_ENTRY || has_values(probe))
		put_args(out, shown);
	if (probe->kind == FI_EXIT)
		put_result(out, shown);
	if (probe->kind != FI_EXIT)
		put_source(out, source_text(probe->object, probe->addr, source));
	fputc('\n', out);
}

/* --- JSON lines ------------------------------------------------------------------------------- */

static void json_begin(FILE *out, const char *program)
{
	print_json(out, "trace", json_pack("{s:o}", "program", name_json(program)));
}

static json_t *args_json(const struct shown *shown)
{
	const struct source_value *value;
	json_t *args = json_array();

	for (unsigned i = 0; (value = shown_value(shown, i)); i++)
		json_array_append_new(
			args, json_pack("{s:o*, s:o, s:o*}", "name",
					*value->name ? name_json(value->name) : NULL, "value",
					value_json(shown->event, value), "cut",
					value_is_cut(shown->event, value) ? json_true() : NULL));
	return args;
}

static json_t *result_json(const struct shown *shown)
{
	const struct source_value *only = single_value(shown);

	return only ? value_json(shown->event, only) : args_json(shown);
}

static const char *event_word(enum fi_kind kind)
{
	return kind == FI_ENTRY ? "enter" : kind_name(kind);
}

static void json_event(FILE *out, const struct shown *shown)
{
	const struct traced *probe = shown->probe;
	bool has_value = probe && shown_value(shown, 0), leaves = probe && probe->kind == FI_EXIT;
	json_t *line = json_pack("{s:s, s:i, s:I, s:i, s:i}", "type", probe ? "event" : "lost",
				 "schema", JSON_SCHEMA, "ns", (json_int_t)shown->time, "pid",
				 shown->pid, "tid", shown->tid);

	if (probe) {
		json_object_update_new(
			line,
			json_pack("{s:s, s:o, s:o*, s:o, s:o*, s:o*}", "event",
				  event_word(probe->kind), "function", name_json(probe->function),
				  "demangled", demangled_json(probe->function), "object",
				  name_json(probe->object), "result",
				  has_value && leaves ? result_json(shown) : NULL, "args",
				  has_value && !leaves ? args_json(shown) : NULL));
		source_json(probe->object, probe->addr, line);
	} else {
		json_object_set_new(line, "events", json_integer((json_int_t)shown->lost));
	}
	print_json_line(out, line);
}

static json_t *end_json(const struct trace *trace)
{
	return json_pack("{s:I, s:I, s:b, s:o*}", "events", (json_int_t)trace->shown, "lost",
			 (json_int_t)trace->lost, "limited", (int)trace->limited, "functions",
			 trace->functions ? counts_json(trace->functions) : NULL);
}

static void json_end(FILE *out, const struct trace *trace)
{
	json_t *line = json_pack("{s:s, s:i}", "type", "end", "schema", JSON_SCHEMA);

	json_object_update_new(line, end_json(trace));
	print_json_line(out, line);
}

/* --- For Perfetto and chrome://tracing -------------------------------------------------------- */

static void chrome_begin(FILE *out, const char *program)
{
	json_t *name = name_json(program);

	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"" PACKAGE_STRING
	      "\",\"program\":",
	      out);
	json_dumpf(name, out, JSON_ENCODE_ANY);
	json_decref(name);
	/* Each event has a comma behind it; chrome_end() writes the last one without. */
	fputs("},\"traceEvents\":[\n", out);
}

static void put_chrome(FILE *out, json_t *line)
{
	json_dumpf(line, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
	json_decref(line);
}

static json_t *chrome_args(const struct shown *shown)
{
	const struct source_value *value;
	json_t *args = json_object();
	char source[SOURCE_ROOM], number[16];

	for (unsigned i = 0; (value = shown_value(shown, i)); i++) {
		char *key = text_utf8(value->name);

		snprintf(number, sizeof(number), "%u", i);
		json_object_set_new(args, key && *key ? key : number,
				    value_json(shown->event, value));
		free(key);
	}
	if (source_text(shown->probe->object, shown->probe->addr, source))
		json_object_set_new(args, "source", name_json(source));
	return args;
}

/* An event that is no call, or whose exit is not seen, is a point in time. */
static void chrome_event(FILE *out, const struct shown *shown)
{
	const struct traced *probe = shown->probe;
	bool leaves = probe && probe->kind == FI_EXIT;
	bool is_span = probe && probe->kind == FI_ENTRY && probe->pair != SIZE_MAX;
	const char *phase = leaves ? "E" : is_span ? "B" : "i", *name = "events lost";
	json_t *args = NULL;

	if (shown->lost)
		args = json_pack("{s:I}", "events", (json_int_t)shown->lost);
	else if (!leaves)
		args = chrome_args(shown);
	else if (shown_value(shown, 0))
		args = json_pack("{s:o}", "result", result_json(shown));
	/* An exit ends the calls that were left with it as well. */
	for (unsigned left = leaves ? shown->left : 1; left > 0; left--) {
		if (probe)
			name = left > 1 ? "" : name_for_people(probe->function, true);
		put_chrome(out, json_pack("{s:o, s:s, s:f, s:i, s:i, s:O*, s:s*, s:s*}", "name",
					  name_json(name), "ph", phase, "ts",
					  (double)shown->time / 1e3, "pid", shown->pid, "tid",
					  shown->tid, "args", left > 1 ? NULL : args, "cat",
					  probe && !leaves ? event_word(probe->kind) : NULL, "s",
					  *phase == 'i' ? "t" : NULL));
		fputs(",\n", out);
	}
	json_decref(args);
}

static void chrome_end(FILE *out, const struct trace *trace)
{
	put_chrome(out, json_pack("{s:s, s:s, s:i, s:o}", "name", "fastinst_end", "ph", "M", "pid",
				  0, "args", end_json(trace)));
	fputs("\n]}\n", out);
}

const struct trace_format *trace_format(const char *name)
{
	static const struct trace_format formats[] = {
		{ "text", NULL, text_event, NULL },
		{ "json", json_begin, json_event, json_end },
		{ "chrome", chrome_begin, chrome_event, chrome_end },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
