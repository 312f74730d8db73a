/* SPDX-License-Identifier: MIT */
/*
 * Filters of "fastinst trace": by thread and process, by the call tree, by values of arguments, and
 * by how long calls take; and what becomes of events that pass them.
 */
#include "commands/fastinst/trace.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

#define OPERATORS "<>=!"

struct trace_condition {
	struct trace_condition *next;
	char *name, *value;
	char sign[3];
};

/* --- Options ---------------------------------------------------------------------------------- */

bool take_ns(const struct option_row *row, const char *text, void *request, char *why)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++) {
		double ns = number * units[i].ns;

		if (strcmp(end, units[i].name) != 0 || !(ns >= 1 && ns <= 1e18))
			continue;
		*(uint64_t *)((char *)request + row->at) = (uint64_t)ns;
		return true;
	}
	return option_refuse(why, "must be a time such as 10us, 2ms or 1s");
}

static char *copy_word(const char *from, size_t len)
{
	while (len && *from == ' ')
		from++, len--;
	while (len && from[len - 1] == ' ')
		len--;
	if (len > 1 && *from == '"' && from[len - 1] == '"')
		from++, len -= 2;
	return strndup(from, len);
}

bool take_when(const struct option_row *row, const char *text, void *request, char *why)
{
	struct trace_condition **list = (struct trace_condition **)((char *)request + row->at),
			       *when;
	size_t name = strcspn(text, OPERATORS), sign = strspn(text + name, OPERATORS);
	const char *value = text + name + sign;

	if (!name || !sign || sign > 2 || !*value || (sign == 2 && value[-1] != '='))
		return option_refuse(why, "must be as 'x>5' or 'name==text'");
	when = calloc(1, sizeof(*when));
	if (!when)
		return option_refuse(why, "finds no memory");
	memcpy(when->sign, text + name, sign);
	when->name = copy_word(text, name);
	when->value = copy_word(value, strlen(value));
	when->next = *list;
	*list = when;
	return true;
}

void filter_free(struct trace_filter *filter)
{
	while (filter->when) {
		struct trace_condition *when = filter->when;

		filter->when = when->next;
		free(when->name);
		free(when->value);
		free(when);
	}
}

/* --- Values ----------------------------------------------------------------------------------- */

static bool number_of(const char *text, long double *number)
{
	char *end;

	*number = strtold(text, &end);
	return end != text && !*end;
}

static bool compare_values(const struct trace_condition *when, const char *text)
{
	long double a, b;
	int order;

	if (number_of(text, &a) && number_of(when->value, &b))
		order = (a > b) - (a < b);
	else
		order = strcmp(text, when->value);
	if (*when->sign == '!')
		return order;
	if (!order)
		return *when->sign == '=' || when->sign[1];
	return *when->sign == (order < 0 ? '<' : '>');
}

/* Compares the text that is shown. An unknown value meets no condition. */
static bool value_meets(const struct trace_condition *when, const struct shown *shown,
			const struct source_value *value)
{
	char *text = NULL, *word = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool is = false;

	if (out) {
		value_put(out, shown->event, value);
		fclose(out);
		word = copy_word(text, size);
		is = word && strcmp(word, "?") != 0 && compare_values(when, word);
	}
	free(word);
	free(text);
	return is;
}

/* Operands of markers and compares are called by their number. */
static bool meets_condition(const struct shown *shown, const struct trace_condition *when)
{
	const struct source_value *value;
	char number[16];

	for (unsigned i = 0; (value = shown_value(shown, i)); i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (!strcmp(*value->name ? value->name : number, when->name))
			return value_meets(when, shown, value);
	}
	return false;
}

static bool meets_conditions(const struct trace_filter *filter, const struct shown *shown)
{
	for (const struct trace_condition *when = filter->when; when; when = when->next)
		if (!meets_condition(shown, when))
			return false;
	return true;
}

/* --- Threads and call trees ------------------------------------------------------------------- */

static bool is_thread(const char *tids, int tid)
{
	char *end;

	for (; tids && *tids; tids = *end ? end + 1 : end)
		if (strtol(tids, &end, 10) == tid || end == tids)
			return end != tids;
	return !tids;
}

/* By the symbol, or by the demangled name. */
static bool is_name(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, 0) ||
	       (is_mangled(name) && !fnmatch(pattern, name_for_people(name, false), 0));
}

/* FUNCTION or OBJECT:FUNCTION, globs. */
static bool is_function(const char *pattern, const struct traced *probe)
{
	const char *colon = strchr(pattern, ':'), *slash = strrchr(probe->object, '/');
	char object[256];

	if (!colon || colon[1] == ':')
		return is_name(pattern, probe->function);
	snprintf(object, sizeof(object), "%.*s", (int)(colon - pattern), pattern);
	return !fnmatch(object, slash ? slash + 1 : probe->object, 0) &&
	       is_name(colon + 1, probe->function);
}

/* The depth at which the shown call tree of the event begins, or TRACE_NO_TREE. */
static unsigned tree_of(const struct trace_filter *filter, const struct shown *shown)
{
	unsigned tree = shown->depth ? shown->frames[shown->depth - 1].tree : TRACE_NO_TREE;

	if (!filter->from)
		return 0;
	if (tree == TRACE_NO_TREE && shown->probe->kind == FI_ENTRY &&
	    is_function(filter->from, shown->probe))
		return shown->depth;
	return tree;
}

bool filter_is_of_calls(const struct trace_filter *filter)
{
	return filter->from || filter->depth || filter->longer;
}

/* Whether an event is shown, however long its call takes; depth becomes that in the shown tree. */
static bool filter_takes(const struct trace_filter *filter, struct shown *shown)
{
	struct trace_frame *frame = shown->frame;
	bool leaves = shown->probe->kind == FI_EXIT;
	unsigned tree = leaves && frame ? frame->tree : tree_of(filter, shown);

	if (frame)
		frame->tree = tree;
	if ((filter->no_children && shown->pid != filter->pid) ||
	    !is_thread(filter->tids, shown->tid) || tree == TRACE_NO_TREE)
		return false;
	shown->depth -= tree;
	if (leaves)
		return frame ? frame->is_shown || frame->pending
			     : !filter_is_of_calls(filter) && !filter->when;
	return (!filter->depth || shown->depth < filter->depth) && (!filter->longer || frame) &&
	       meets_conditions(filter, shown);
}

/* --- What is shown ---------------------------------------------------------------------------- */

static void count_shown(struct trace *trace)
{
	trace->limited = ++trace->shown >= trace->limit || ferror(trace->out);
}

static void write_event(struct trace *trace, struct shown *shown)
{
	if (trace->limited)
		return;
	trace->format->event(trace->out, shown);
	if (shown->frame)
		shown->frame->is_shown = true;
	if (!shown->lost)
		count_shown(trace);
}

/* A call that takes longer than --time-filter has callers that do so, too. */
static void write_pending(struct trace *trace, struct trace_frame *frames, size_t n)
{
	for (size_t i = 0; i < n && !trace->limited; i++) {
		if (!frames[i].pending)
			continue;
		fputs(frames[i].pending, trace->out);
		free(frames[i].pending);
		frames[i].pending = NULL;
		frames[i].is_shown = true;
		count_shown(trace);
	}
}

static void show_long(struct trace *trace, struct shown *shown)
{
	size_t size;
	FILE *text = NULL;

	if (shown->probe->kind == FI_ENTRY) {
		text = open_memstream(&shown->frame->pending, &size);
		if (!text)
			return;
		trace->format->event(text, shown);
		fclose(text);
	} else if (shown->time - shown->frame->since >= trace->filter.longer) {
		shown->left += shown->frame->pending != NULL;
		write_pending(trace, shown->frames, (size_t)(shown->frame - shown->frames) + 1);
		write_event(trace, shown);
	}
}

void show_event(struct trace *trace, struct shown *shown)
{
	if (!shown->lost && !filter_takes(&trace->filter, shown))
		return;
	if (!shown->lost && trace->filter.longer)
		show_long(trace, shown);
	else
		write_event(trace, shown);
}

/* Calls that have not ended lasted until the last event at least. */
void show_open(struct trace *trace, struct trace_frame *frames, unsigned n, uint64_t time)
{
	while (n && time - frames[n - 1].since < trace->filter.longer)
		n--;
	write_pending(trace, frames, n);
}
