/* SPDX-License-Identifier: MIT */
/* Traces: events that agents send, which of them are shown, and how. */
#ifndef COMMANDS_FASTINST_TRACE_H
#define COMMANDS_FASTINST_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/counts/ring.h"
#include "commands/fastinst/command.h"
#include "probes/dwarf/source.h"
#include "probes/include/fastinst.h"

/* A probe of a process that has turned it on. */
struct traced {
	uint64_t key; /* of the table of its process, and its id there */
	enum fi_kind kind;
	char *function, *object; /* one behind the other */
	uint64_t addr;		 /* in the object's file */
	size_t pair; /* the entry of the same function, or itself; SIZE_MAX: without exits */
	bool has_types;
	struct source_function types;
	uint64_t how; /* RING_HOW_* */
	uint64_t seen;
};

/* A function that a thread is in, and whose exits are seen. */
struct trace_frame {
	size_t pair;
	uint64_t since; /* as shown.time */
	unsigned tree;	/* which frame begins the call tree that is shown, or */
#define TRACE_NO_TREE UINT32_MAX
	bool is_shown; /* its entry is shown */
	char *pending; /* or kept as text until it is known how long the call takes */
};

struct shown {
	uint64_t lost; /* so many events were lost before the next one; probe and event are NULL */
	const struct traced *probe;
	const struct trace_event *event;
	uint64_t time; /* ns since the trace began */
	int pid, tid;
	unsigned depth;		    /* of functions that are entered and not left */
	unsigned left;		    /* functions that were shown, and are left by this exit */
	struct trace_frame *frames; /* those, the outermost first */
	struct trace_frame *frame;  /* of this entry or exit, behind those; NULL: none */
};

/* A condition on an argument, NAME OPERATOR VALUE. */
struct trace_condition;

struct trace_filter {
	const char *tids;	      /* of threads, with a comma between; NULL: all */
	const char *from;	      /* the call trees of functions of this pattern; NULL: all */
	uint64_t depth;		      /* of a call tree; 0: all */
	uint64_t longer;	      /* ns that a call shown takes at least */
	struct trace_condition *when; /* all of them hold */
	bool no_children;
	int pid; /* the process that --no-children shows: the first that connects */
};

struct trace;

struct trace_format {
	const char *name;
	void (*begin)(FILE *out, const char *program);
	void (*event)(FILE *out, const struct shown *shown);
	void (*end)(FILE *out, const struct trace *trace);
};

struct trace {
	struct asked asked;
	const char *format_name;
	const struct trace_format *format;
	uint64_t limit;
	struct trace_filter filter;
	long pid;
	FILE *out;
	uint64_t shown;
	uint64_t lost;			/* events of all threads */
	_Atomic bool limited;		/* there may have been more */
	const struct counts *functions; /* events of these were lost; NULL: not known */
	_Atomic bool over;		/* the program has ended, or writes no more */
	/* What is read. */
	char folder[40];
	int listener;
	unsigned tables; /* processes that have told of their probes */
	uint64_t start;
	struct traced *probe; /* of all processes, by key */
	size_t probes;
	struct stream *streams;
};

/* --- Reading ---------------------------------------------------------------------------------- */

/* trace_open - with a folder of its own, and the socket in it. A negative errno. */
int trace_open(struct trace *trace);

/* trace_poll - handles events and connections that have come; how many. */
size_t trace_poll(struct trace *trace);

/* trace_finish - ends all threads: no more events are read. trace_close - does so, too. */
void trace_finish(struct trace *trace);
void trace_close(struct trace *trace);

/* --- Which events a trace shows --------------------------------------------------------------- */

/* take_ns - an option's time, "10us", "2ms", "1s"; a number alone is nanoseconds. */
option_take take_ns;

/* take_when - one more condition, for the struct trace_filter that the row says. */
option_take take_when;

/* filter_is_of_calls - whether exits are needed. */
bool filter_is_of_calls(const struct trace_filter *filter);
void filter_free(struct trace_filter *filter);

/*
 * show_event - what the filter takes, when it is known how long its call takes. show_open - the
 * last event of a thread has come; it has not left these functions.
 */
void show_event(struct trace *trace, struct shown *shown);
void show_open(struct trace *trace, struct trace_frame *frames, unsigned n, uint64_t time);

/* --- Formats, and values of arguments and results --------------------------------------------- */

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
