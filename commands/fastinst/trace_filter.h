/* SPDX-License-Identifier: MIT */
/* Which events a trace shows. */
#ifndef COMMANDS_FASTINST_TRACE_FILTER_H
#define COMMANDS_FASTINST_TRACE_FILTER_H

#include "base/command_line.h"
#include "commands/fastinst/trace_read.h"

/* A condition on an argument, NAME OPERATOR VALUE. */
struct trace_condition;

struct trace_filter {
	const char *tids;	      /* of threads, with a comma between; NULL: all */
	const char *from;	      /* the call trees of functions of this pattern; NULL: all */
	uint64_t depth;		      /* of a call tree; 0: all */
	uint64_t longer;	      /* ns that a call shown takes at least */
	struct trace_condition *when; /* all of them hold */
	bool no_children;
	int pid; /* the process that --no-children shows */
};

/* take_ns - an option's time, "10us", "2ms", "1s"; a number alone is nanoseconds. */
option_take take_ns;

/* take_when - one more condition, for the struct trace_filter that the row says. */
option_take take_when;

/*
 * filter_takes - whether an event is shown, however long its call takes; depth becomes that in the
 * shown call tree. filter_is_of_calls - whether exits are needed.
 */
bool filter_takes(const struct trace_filter *filter, struct shown *shown);
bool filter_is_of_calls(const struct trace_filter *filter);

void filter_free(struct trace_filter *filter);

#endif
