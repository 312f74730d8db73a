/* SPDX-License-Identifier: MIT */
#include "probes/command/trace_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "probes/command/source_of.h"
#include "probes/text/text.h"
#include "probes/told/told.h"

#define INDENT_MAX 40

/* --- Values ----------------------------------------------------------------------------------- */

/* What the register holds of it: the bits above are anything. */
static int64_t cut_to(uint64_t value, const struct source_value *type)
{
	unsigned unused = 64u - type->bits;

	if (type->form == SOURCE_OTHER)
		return 0;
	value >>= type->shift;
	if (type->form == SOURCE_SIGNED || type->form == SOURCE_CHAR)
		return (int64_t)(value << unused) >> unused;
	return (int64_t)(value << unused >> unused);
}

#define FLOAT_BYTES 32

static double float_of(int64_t value, const struct source_value *type)
{
	uint32_t half = (uint32_t)value;
	double whole;
	float single;

	memcpy(&whole, &value, sizeof(whole));
	memcpy(&single, &half, sizeof(single));
	return type->bits == 32 ? (double)single : whole;
}

/* The fewest digits that are read back as the same. */
static const char *float_text(char text[FLOAT_BYTES], int64_t value,
			      const struct source_value *type)
{
	int digits = type->bits == 32 ? 6 : 15, most = type->bits == 32 ? 9 : 17;
	double number = float_of(value, type), back = 0;

	do {
		snprintf(text, FLOAT_BYTES, "%.*g", digits, number);
		back = type->bits == 32 ? (double)strtof(text, NULL) : strtod(text, NULL);
	} while (digits++ < most && (back < number || back > number));
	return text;
}

static void put_string(FILE *out, const char *text, bool cut)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else if (iscntrl((unsigned char)*text))
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputs(cut ? "\"..." : "\"", out);
}

static void put_value(FILE *out, const struct trace_event *event, const struct source_value *type,
		      unsigned at)
{
	int64_t value = cut_to(event->value[at], type);
	char number[FLOAT_BYTES];

	switch (type->form) {
	case SOURCE_SIGNED:
		fprintf(out, "%" PRId64, value);
		break;
	case SOURCE_UNSIGNED:
		fprintf(out, "%" PRIu64, (uint64_t)value);
		break;
	case SOURCE_BOOL:
		fputs(value ? "true" : "false", out);
		break;
	case SOURCE_CHAR:
		if (value >= ' ' && value < 127)
			fprintf(out, "'%c'", (int)value);
		else
			fprintf(out, "%" PRId64, value);
		break;
	case SOURCE_STRING:
		if (event->string[at]) {
			put_string(out, event->string[at], event->cut[at]);
			break;
		}
		/* fall through */
	case SOURCE_POINTER:
		fprintf(out, "0x%" PRIx64, (uint64_t)value);
		break;
	case SOURCE_FLOAT:
		fputs(float_text(number, value, type), out);
		break;
	case SOURCE_OTHER:
		fputc('?', out);
		break;
	}
}

static json_t *value_json(const struct trace_event *event, const struct source_value *type,
			  unsigned at)
{
	int64_t value = cut_to(event->value[at], type);
	char number[FLOAT_BYTES];

	if (type->form == SOURCE_OTHER)
		return json_null();
	/* JSON has no infinity, and nothing that is no number. */
	if (type->form == SOURCE_FLOAT && !isfinite(float_of(value, type)))
		return json_string(float_text(number, value, type));
	if (type->form == SOURCE_FLOAT)
		return json_real(strtod(float_text(number, value, type), NULL));
	if (type->form == SOURCE_BOOL)
		return json_boolean(value != 0);
	if (type->form == SOURCE_STRING && event->string[at])
		return told_text(event->string[at]);
	/* As numbers they would be rounded by most who read them. */
	if (type->form == SOURCE_POINTER || type->form == SOURCE_STRING)
		return json_sprintf("0x%" PRIx64, (uint64_t)value);
	if (type->form == SOURCE_UNSIGNED && value < 0)
		return json_sprintf("%" PRIu64, (uint64_t)value);
	return json_integer(value);
}

/* The note of a marker tells no names. */
static const struct source_value nameless = { .name = "", .form = SOURCE_SIGNED, .bits = 64 };

/* All that came with the event, by itself. */
static bool has_values(const struct traced *probe)
{
	return probe->kind == TRACED_MARKER || probe->kind == TRACED_COMPARE;
}

static const struct source_value *value_of(const struct shown *shown, unsigned i)
{
	const struct traced *probe = shown->probe;

	if (!probe->has_types)
		return has_values(probe) && i < shown->event->values ? &nameless : NULL;
	if (probe->kind == TRACED_LEAVE)
		return !i && probe->types.returns ? &probe->types.result : NULL;
	return probe->kind != TRACED_BLOCK && i < probe->types.args ? &probe->types.arg[i] : NULL;
}

/* Which of the event's; the first if it has too few, as none that is sound does. */
static unsigned place_of(const struct shown *shown, const struct source_value *value, unsigned i)
{
	const struct trace_event *event = shown->event;

	if (!shown->probe->has_types)
		return i;
	if (value->reg >= SOURCE_VECTOR)
		i = event->values + value->reg - SOURCE_VECTOR;
	else
		i = value->reg;
	return i < RING_VALUES ? i : 0;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_args(FILE *out, const struct shown *shown)
{
	const struct source_value *value;

	fputc('(', out);
	for (unsigned i = 0; (value = value_of(shown, i)); i++) {
		fputs(i ? ", " : "", out);
		text_put(out, value->name);
		fputs(*value->name ? "=" : "", out);
		put_value(out, shown->event, value, place_of(shown, value, i));
	}
	if (shown->probe->types.more ||
	    (shown->probe->kind == TRACED_ENTER && !shown->probe->has_types) ||
	    (shown->probe->kind == TRACED_COMPARE && !value_of(shown, 0)))
		fputs(shown->probe->types.args ? ", ..." : "...", out);
	fputc(')', out);
}

static void put_time(FILE *out, uint64_t time, int pid, int tid)
{
	fprintf(out, "%6" PRIu64 ".%09" PRIu64 " %7d %7d ", time / 1000000000, time % 1000000000,
		pid, tid);
}

static void text_event(FILE *out, const struct shown *shown)
{
	static const char signs[] = "><*-=";
	const struct traced *probe = shown->probe;
	unsigned indent = shown->depth < INDENT_MAX ? shown->depth : INDENT_MAX;
	const struct source_value *value;
	char source[512];

	put_time(out, shown->time, shown->pid, shown->tid);
	fprintf(out, "%*s%c ", (int)indent * 2, "", signs[probe->kind]);
	text_put(out, probe->function);
	if (probe->kind == TRACED_ENTER || has_values(probe))
		put_args(out, shown);
	value = probe->kind == TRACED_LEAVE ? value_of(shown, 0) : NULL;
	if (value) {
		fputs(" = ", out);
		put_value(out, shown->event, value, 0);
	}
	strcpy(source, "  ");
	source_text(probe->object, probe->addr, source + 2, sizeof(source) - 2);
	if (source[2] && probe->kind != TRACED_LEAVE)
		text_put(out, source);
	fputc('\n', out);
}

static void text_lost(FILE *out, uint64_t lost, int pid, int tid, uint64_t time)
{
	put_time(out, time, pid, tid);
	fprintf(out, "! %" PRIu64 " events lost: there was no room for them\n", lost);
}

/* --- JSON lines ------------------------------------------------------------------------------- */

static void json_begin(FILE *out, const char *program)
{
	told(out, "trace", json_pack("{s:o}", "program", told_text(program)));
}

static json_t *args_json(const struct shown *shown)
{
	const struct source_value *value;
	json_t *args = json_array();

	for (unsigned i = 0; (value = value_of(shown, i)); i++) {
		unsigned at = place_of(shown, value, i);
		json_t *arg = json_object();

		if (*value->name)
			json_object_set_new(arg, "name", told_text(value->name));
		json_object_set_new(arg, "value", value_json(shown->event, value, at));
		if (value->form == SOURCE_STRING && shown->event->cut[at])
			json_object_set_new(arg, "cut", json_true());
		json_array_append_new(args, arg);
	}
	return args;
}

static const char *const event_words[] = { "enter", "exit", "marker", "block", "compare" };

static void json_event(FILE *out, const struct shown *shown)
{
	const struct traced *probe = shown->probe;
	json_t *line =
		json_pack("{s:s, s:i, s:I, s:i, s:i, s:s, s:o, s:o}", "type", "event", "schema",
			  TOLD_SCHEMA, "ns", (json_int_t)shown->time, "pid", shown->pid, "tid",
			  shown->tid, "event", event_words[probe->kind], "function",
			  told_text(probe->function), "object", told_text(probe->object));
	const struct source_value *value = value_of(shown, 0);
	char source[512], *colon;

	if (!line)
		return;
	if (value && probe->kind == TRACED_LEAVE)
		json_object_set_new(line, "result", value_json(shown->event, value, 0));
	else if (value)
		json_object_set_new(line, "args", args_json(shown));
	colon = strrchr(source_text(probe->object, probe->addr, source, sizeof(source)), ':');
	if (colon) {
		*colon = '\0';
		json_object_set_new(line, "file", told_text(source));
		json_object_set_new(line, "line", json_integer(strtol(colon + 1, NULL, 10)));
	}
	told_line(out, line);
}

static void json_lost(FILE *out, uint64_t lost, int pid, int tid, uint64_t time)
{
	told_line(out, json_pack("{s:s, s:i, s:I, s:i, s:i, s:I}", "type", "lost", "schema",
				 TOLD_SCHEMA, "ns", (json_int_t)time, "pid", pid, "tid", tid,
				 "events", (json_int_t)lost));
}

static void json_end(FILE *out, const struct trace_sum *sum)
{
	told_line(out, json_pack("{s:s, s:i, s:I, s:I, s:b}", "type", "end", "schema", TOLD_SCHEMA,
				 "events", (json_int_t)sum->shown, "lost", (json_int_t)sum->lost,
				 "limited", sum->limited));
}

/* --- For Perfetto and chrome://tracing -------------------------------------------------------- */

static void chrome_begin(FILE *out, const char *program)
{
	json_t *name = told_text(program);

	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"" PACKAGE_STRING
	      "\",\"program\":",
	      out);
	json_dumpf(name, out, JSON_ENCODE_ANY);
	json_decref(name);
	/* Each event is followed by a comma, and the last of all is one of ours. */
	fputs("},\"traceEvents\":[\n", out);
}

static json_t *chrome_line(const char *name, const char *phase, uint64_t time, int pid, int tid)
{
	return json_pack("{s:o, s:s, s:f, s:i, s:i}", "name", told_text(name), "ph", phase, "ts",
			 (double)time / 1e3, "pid", pid, "tid", tid);
}

static void put_chrome(FILE *out, json_t *line)
{
	json_dumpf(line, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
	fputs(",\n", out);
	json_decref(line);
}

static json_t *chrome_args(const struct shown *shown)
{
	const struct source_value *value;
	json_t *args = json_object();
	char source[512], number[16];

	for (unsigned i = 0; (value = value_of(shown, i)); i++) {
		snprintf(number, sizeof(number), "%u", i);
		told_member(args, *value->name ? value->name : number,
			    value_json(shown->event, value, place_of(shown, value, i)));
	}
	if (*source_text(shown->probe->object, shown->probe->addr, source, sizeof(source)))
		json_object_set_new(args, "source", told_text(source));
	return args;
}

/* A function without exits, and what is none, is a point in time. */
static void chrome_event(FILE *out, const struct shown *shown)
{
	const struct traced *probe = shown->probe;
	bool is_span = probe->kind == TRACED_ENTER && probe->pair != SIZE_MAX;
	json_t *line;

	for (unsigned i = 1; i < shown->left; i++)
		put_chrome(out, chrome_line("", "E", shown->time, shown->pid, shown->tid));
	if (probe->kind == TRACED_LEAVE && !shown->left)
		return;
	line = chrome_line(probe->function,
			   probe->kind == TRACED_LEAVE ? "E"
			   : is_span		       ? "B"
						       : "i",
			   shown->time, shown->pid, shown->tid);
	if (probe->kind == TRACED_LEAVE) {
		if (probe->has_types && probe->types.returns)
			json_object_set_new(
				line, "args",
				json_pack("{s:o}", "result",
					  value_json(shown->event, &probe->types.result, 0)));
	} else {
		json_object_set_new(line, "args", chrome_args(shown));
		json_object_set_new(line, "cat", json_string(event_words[probe->kind]));
		if (!is_span)
			json_object_set_new(line, "s", json_string("t"));
	}
	put_chrome(out, line);
}

static void chrome_lost(FILE *out, uint64_t lost, int pid, int tid, uint64_t time)
{
	json_t *line = chrome_line("events lost", "i", time, pid, tid);

	json_object_set_new(line, "s", json_string("t"));
	json_object_set_new(line, "args", json_pack("{s:I}", "events", (json_int_t)lost));
	put_chrome(out, line);
}

static void chrome_end(FILE *out, const struct trace_sum *sum)
{
	json_t *line = json_pack("{s:s, s:s, s:i, s:{s:I, s:I, s:b}}", "name", "fastinst_end", "ph",
				 "M", "pid", 0, "args", "events", (json_int_t)sum->shown, "lost",
				 (json_int_t)sum->lost, "limited", sum->limited);

	json_dumpf(line, out, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputs("\n]}\n", out);
	json_decref(line);
}

const struct trace_format *trace_format(const char *name)
{
	static const struct trace_format formats[] = {
		{ "text", NULL, text_event, text_lost, NULL },
		{ "json", json_begin, json_event, json_lost, json_end },
		{ "chrome", chrome_begin, chrome_event, chrome_lost, chrome_end },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
