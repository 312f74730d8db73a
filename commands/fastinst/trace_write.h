/* SPDX-License-Identifier: MIT */
/* Formats of events, and the values of their arguments and results. */
#ifndef COMMANDS_FASTINST_TRACE_WRITE_H
#define COMMANDS_FASTINST_TRACE_WRITE_H

#include <jansson.h>
#include <stdio.h>

#include "commands/fastinst/counts.h"
#include "commands/fastinst/trace_read.h"

/* What the end of a trace tells. */
struct trace_sum {
	uint64_t shown;
	uint64_t lost;
	_Atomic bool limited;		/* there may have been more */
	const struct counts *functions; /* events of these were lost; NULL: not known */
};

struct trace_format {
	const char *name;
	void (*begin)(FILE *out, const char *program);
	void (*event)(FILE *out, const struct shown *shown);
	void (*lost)(FILE *out, uint64_t lost, int pid, int tid, uint64_t time);
	void (*end)(FILE *out, const struct trace_sum *sum);
};

/* shown_value - the i-th argument or operand of an event, or result of an exit; NULL: no more. */
const struct source_value *shown_value(const struct shown *shown, unsigned i);

/* trace_format - text, json (lines) or chrome; NULL: no such format. */
const struct trace_format *trace_format(const char *name);

/* value_put - as text; a question mark if it was not recorded. */
void value_put(FILE *out, const struct trace_event *event, const struct source_value *value);

/* value_json - null if it was not recorded. */
json_t *value_json(const struct trace_event *event, const struct source_value *value);

/* value_is_cut - whether it goes on: a string, an array, or a struct. */
bool value_is_cut(const struct trace_event *event, const struct source_value *value);

#endif
