/* SPDX-License-Identifier: MIT */
/* fastinst trace: each call as it happens, of a program that is run, or of a process. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/demangle.h"
#include "base/number.h"
#include "base/text.h"
#include "commands/fastinst/trace.h"

#define PAUSE_US   2000
#define LOST_SHOWN 10
#define LOOK	   0.02 /* seconds between two looks at a process */

/* Reads events until none is left after the end. */
static void *follow_events(void *arg)
{
	struct trace *trace = arg;

	while (true) {
		bool over = atomic_load_explicit(&trace->over, memory_order_acquire);

		if (trace_poll(trace))
			continue;
		fflush(trace->out);
		if (over)
			return NULL;
		usleep(PAUSE_US);
	}
}

/* --- Afterwards ------------------------------------------------------------------------------- */

/* Leaves in counts what agents counted, and no event tells of. */
static void find_lost_events(struct trace *trace, struct counts *counts)
{
	struct counts seen = { 0 };

	for (size_t i = 0; i < trace->probes; i++) {
		const struct traced *probe = &trace->probe[i];

		counts_add(&seen, probe->seen, 0, kind_name(probe->kind), probe->function,
			   probe->object);
	}
	counts_join(&seen);
	counts_missing(counts, &seen, trace->pid);
	counts_free(&seen);
}

static void print_lost_events(const struct counts *counts)
{
	for (size_t i = 0; i < counts->n && i < LOST_SHOWN; i++) {
		const struct function_count *count = &counts->count[i];

		fprintf(stderr, "%s: ", program_invocation_name);
		text_put(stderr, name_for_people(count->function, true));
		fprintf(stderr, ": %" PRIu64 " of %" PRIu64 " event%s lost\n", count->lost,
			count->count, S(count->count));
	}
	if (counts->n > LOST_SHOWN)
		remark("and of %zu others", counts->n - LOST_SHOWN);
}

/* How many functions were entered and have no probes at exits. */
static size_t count_open(const struct trace *trace)
{
	size_t n = 0;

	for (const struct traced *probe = trace->probe; probe < trace->probe + trace->probes;
	     probe++)
		n += probe->seen && probe->kind == FI_ENTRY && probe->pair == SIZE_MAX;
	return n;
}

static void print_end(struct trace *trace, struct counts *counts)
{
	size_t open = count_open(trace);

	trace_finish(trace);
	if (open && filter_is_of_calls(&trace->filter))
		remark("the exits of %zu function%s cannot be seen, so it is not known what they "
		       "call and for how long; fastinst(7) says how to compile",
		       open, S(open));
	/* With --limit, events that were left out were counted as well. */
	if (!trace->limited && counts->processes) {
		find_lost_events(trace, counts);
		trace->functions = counts;
	}
	if (trace->format->end)
		trace->format->end(trace->out, trace);
	if (trace->limited && !ferror(trace->out))
		remark("%" PRIu64 " event%s shown; --limit left out the others", trace->shown,
		       S(trace->shown));
	else if (trace->lost)
		remark("%" PRIu64 " event%s lost: the program makes them faster than this command "
		       "can write them; trace fewer functions by --on",
		       trace->lost, S(trace->lost));
	if (trace->functions)
		print_lost_events(counts);
}

/* --- A program that is run, or a process ------------------------------------------------------ */

/* Before the agent answers, it tells follow_events() of its probes. */
static int trace_process(struct trace *trace, struct counts *counts)
{
	struct counts before = { 0 }, none = { 0 };
	const char *patterns = trace->asked.on ? trace->asked.on : "*";
	pid_t pid = (pid_t)trace->pid;
	int status = control_ask(trace->pid, &before, "counts");

	ending_note();
	if (status == STATUS_OK && trace->asked.writable)
		status = control_ask(trace->pid, &none, "writable on");
	if (status == STATUS_OK)
		status = control_ask(trace->pid, &none, "trace %s %s", trace->folder, patterns);
	while (status == STATUS_OK && !trace->limited && !ending_noted() && !ending_is_over(pid))
		ending_until(pid, LOOK);
	/* Also after a failure: some probes may be on. */
	if (control_listens(trace->pid))
		control_ask(trace->pid, &none, "untrace %s", patterns);
	if (status == STATUS_OK && control_listens(trace->pid))
		control_ask(trace->pid, counts, "counts");
	counts_join(&before);
	counts_join(counts);
	counts_since(counts, &before, NULL);
	counts_free(&before);
	counts_free(&none);
	return status;
}

static int run_trace(struct trace *trace, char **argv)
{
	struct launch launch = { .agent = "libfastinst-agent.so", .lost = "its last counts are" };
	struct counts counts = { 0 };
	pthread_t thread;
	bool unmatched = false;
	int status;

	set_environment(&trace->asked);
	setenv("FASTINST_TRACE", trace->folder, 1);
	if (pthread_create(&thread, NULL, follow_events, trace))
		return complain(STATUS_FAILED, 0, "no thread can be started");
	status = trace->pid ? trace_process(trace, &counts) : launch_program(&launch, argv);
	atomic_store_explicit(&trace->over, true, memory_order_release);
	pthread_join(thread, NULL);
	if (launch.folder[0])
		unmatched = collect_counts(&launch, argv[0], &trace->asked, &counts) > 0;
	print_end(trace, &counts);
	counts_free(&counts);
	return !status && unmatched ? STATUS_FAILED : status;
}

static int start_trace(struct trace *trace, char **argv)
{
	int status, ret;

	/* A closed pipe is a write error: the folder has to be removed before the end. */
	ending_ignore(SIGPIPE);
	control_sweep();
	ending_hold();
	trace->format = trace_format(trace->format_name);
	trace->filter.pid = (int)trace->pid;
	ret = trace_open(trace);
	if (ret)
		return complain(STATUS_FAILED, ret, "no folder for events in /dev/shm or /tmp");
	trace->out = open_output(trace->asked.output);
	if (!trace->out) {
		trace_close(trace);
		return STATUS_FAILED;
	}
	if (trace->format->begin)
		trace->format->begin(trace->out, trace->pid ? "" : argv[0]);
	status = run_trace(trace, argv);
	trace_close(trace);
	if (close_output(trace->out, trace->asked.output) && !status)
		status = STATUS_FAILED;
	return status;
}

static int format_known(const char *name)
{
	return trace_format(name) ? 0 : -1;
}

static const struct option_row options[] = {
	{ "filter", "FUNCTION",
	  "only what FUNCTION, or OBJECT:FUNCTION, and what it calls do (globs)",
	  OPTION_TEXT(struct trace, filter.from), .letter = 'F' },
	{ "depth", "N", "only so many levels of calls",
	  OPTION_NUMBER(struct trace, filter.depth, 1, UINT32_MAX), .letter = 'D' },
	{ "time-filter", "TIME", "only calls that take as long, as 10us (nanoseconds)",
	  OPTION_INTO(take_ns, struct trace, filter.longer), .letter = 't' },
	{ "when", "CONDITION",
	  "only where an argument is so, as 'n>5' or 'name==text' (== != < <= > >=); may be given "
	  "several times",
	  OPTION_INTO(take_when, struct trace, filter.when) },
	{ "tid", "TIDS", "only these threads (ids, joined by commas)",
	  OPTION_TEXT(struct trace, filter.tids) },
	{ "no-children", NULL, "not in processes that the program starts",
	  OPTION_FLAG(struct trace, filter.no_children) },
	{ "limit", "N", "so many events and no more; the program goes on",
	  OPTION_NUMBER(struct trace, limit, 1, UINT64_MAX) },
	{ "format", "FORMAT",
	  "text, json (lines) or chrome (for Perfetto, chrome://tracing) (text)",
	  OPTION_TEXT(struct trace, format_name), .parse = format_known },
	{ "pid", "PID",
	  "a process that \"fastinst run\" has started, until it ends or until Ctrl-C",
	  OPTION_NUMBER(struct trace, pid, 1, PID_MOST) },
	{ "no-control", NULL, "no control socket, and no thread for it",
	  OPTION_FLAG(struct trace, asked.no_control) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM [ARGUMENT]... | --pid PID",
	.program = true,
	.about = "Show entries and exits of functions, markers and blocks as they are run, with\n"
		 "time, process, thread, and what debug information tells: arguments, results,\n"
		 "lines of the source.\n",
	.options = { asked_options, options },
	.end = "The exit status is the program's, or 128 and the signal that ended it.\n",
};

int trace_command(int argc, char **argv)
{
	struct trace trace = { .format_name = "text", .limit = UINT64_MAX };
	int status = command_line_parse(&line, argc, argv, &trace, NULL);

	if (status == STATUS_OK && (optind == argc) != (trace.pid != 0))
		status = refuse_usage("it takes either a program to run or --pid");
	if (status == STATUS_OK && !source_ready())
		remark("libdw.so.1 is not here: arguments, results and lines are not shown");
	if (status == STATUS_OK)
		status = start_trace(&trace, argv + optind);
	filter_free(&trace.filter);
	free(trace.asked.on);
	return status;
}
