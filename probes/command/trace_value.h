/* SPDX-License-Identifier: MIT */
/*
 * What came with an event, as a value of its type.
 */
#ifndef PROBES_COMMAND_TRACE_VALUE_H
#define PROBES_COMMAND_TRACE_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "probes/source/source.h"
#include "probes/trace/ring.h"

/* value_put - as text; a question mark if it did not come. */
void value_put(FILE *out, const struct trace_event *event, const struct source_value *value);

/* value_json - null if it did not come. */
json_t *value_json(const struct trace_event *event, const struct source_value *value);

/* value_is_cut - whether it goes on: a string, an array, or a struct. */
bool value_is_cut(const struct trace_event *event, const struct source_value *value);

#endif
