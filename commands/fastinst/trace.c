/* SPDX-License-Identifier: MIT */
/* fastinst trace: each call as it happens, of a program that is run, or of a process. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "agent/launch/launch.h"
#include "base/demangle.h"
#include "base/number.h"
#include "base/text.h"
#include "commands/fastinst/command.h"
#include "commands/fastinst/counts.h"
#include "commands/fastinst/trace.h"
#include "probes/dwarf/source.h"

#define PAUSE_US   2000
#define LOST_SHOWN 10
#define LOOK	   0.02 /* seconds between two looks at a process */

struct trace {
	struct asked asked;
	const struct trace_format *format;
	uint64_t limit;
	struct trace_filter filter;
	long pid;
	FILE *out;
	struct trace_read *read;
	struct trace_sum sum;
	_Atomic bool over; /* the program has ended, or writes no more */
};

/* --- While it runs ---------------------------------------------------------------------------- */

static void count_shown(struct trace *trace)
{
	if (++trace->sum.shown < trace->limit && !ferror(trace->out))
		return;
	trace->sum.limited = true;
	trace_stop(trace->read);
}

static void write_event(struct trace *trace, struct shown *shown)
{
	if (trace->sum.limited)
		return;
	trace->format->event(trace->out, shown);
	if (shown->frame)
		shown->frame->is_shown = true;
	count_shown(trace);
}

static void keep_entry(const struct trace *trace, struct shown *shown)
{
	size_t size;
	FILE *text = open_memstream(&shown->frame->pending, &size);

	if (!text)
		return;
	trace->format->event(text, shown);
	fclose(text);
}

/* A call that takes longer than --time-filter has callers that do so, too. */
static void write_pending(struct trace *trace, struct trace_frame *frames, size_t n)
{
	for (size_t i = 0; i < n && !trace->sum.limited; i++) {
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
	if (shown->probe->kind == FI_ENTRY) {
		keep_entry(trace, shown);
	} else if (shown->time - shown->frame->since >= trace->filter.longer) {
		shown->left += shown->frame->pending != NULL;
		write_pending(trace, shown->frames, (size_t)(shown->frame - shown->frames) + 1);
		write_event(trace, shown);
	}
}

static void show_event(struct shown *shown, void *arg)
{
	struct trace *trace = arg;

	trace->filter.pid = trace->pid ? (int)trace->pid : trace->read->first;
	if (!filter_takes(&trace->filter, shown))
		return;
	if (trace->filter.longer)
		show_long(trace, shown);
	else
		write_event(trace, shown);
}

/* Calls that have not ended lasted until the last event at least. */
static void show_open(struct trace_frame *frames, unsigned n, uint64_t time, void *arg)
{
	struct trace *trace = arg;

	while (n && time - frames[n - 1].since < trace->filter.longer)
		n--;
	write_pending(trace, frames, n);
}

static void show_lost(uint64_t lost, int pid, int tid, uint64_t time, void *arg)
{
	struct trace *trace = arg;

	if (!trace->sum.limited)
		trace->format->lost(trace->out, lost, pid, tid, time);
}

/* Reads events until none is left after the end. */
static void *follow_events(void *arg)
{
	struct trace *trace = arg;
	bool over;

	do {
		over = atomic_load_explicit(&trace->over, memory_order_acquire);
		if (trace_poll(trace->read)) {
			over = false;
			continue;
		}
		fflush(trace->out);
		if (!over)
			usleep(PAUSE_US);
	} while (!over);
	return NULL;
}

/* --- Afterwards ------------------------------------------------------------------------------- */

/* Leaves in counts what agents counted, and no event tells of. */
static void find_lost_events(struct trace *trace, struct counts *counts)
{
	struct counts seen = { 0 };

	for (size_t t = 0; t < trace->read->tables; t++)
		for (size_t i = 0; i < trace->read->table[t].n; i++) {
			const struct traced *probe = &trace->read->table[t].probe[i];

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
		const struct count *count = &counts->count[i];

		fprintf(stderr, "%s: ", program_invocation_name);
		text_put(stderr, name_for_people(count->function, true));
		fprintf(stderr, ": %" PRIu64 " of %" PRIu64 " event%s lost\n", count->lost,
			count->count, S(count->count));
	}
	if (counts->n > LOST_SHOWN)
		complain(0, 0, "and of %zu others", counts->n - LOST_SHOWN);
}

/* How many functions were entered and have no probes at exits. */
static size_t count_open(const struct trace_read *read)
{
	size_t n = 0;

	for (size_t t = 0; t < read->tables; t++)
		for (size_t i = 0; i < read->table[t].n; i++) {
			const struct traced *probe = &read->table[t].probe[i];

			n += probe->seen && probe->kind == FI_ENTRY && probe->pair == SIZE_MAX;
		}
	return n;
}

static void print_end(struct trace *trace, struct counts *counts)
{
	size_t open = count_open(trace->read);

	trace_finish(trace->read);
	if (open && filter_is_of_calls(&trace->filter))
		complain(0, 0,
			 "the exits of %zu function%s cannot be seen, so it is not known what they "
			 "call and for how long; fastinst(7) says how to compile",
			 open, S(open));
	/* With --limit, events that were left out were counted as well. */
	if (!trace->sum.limited && counts->processes) {
		find_lost_events(trace, counts);
		trace->sum.functions = counts;
	}
	trace->sum.lost = trace->read->lost;
	if (trace->format->end)
		trace->format->end(trace->out, &trace->sum);
	if (trace->sum.limited && !ferror(trace->out))
		complain(0, 0, "%" PRIu64 " event%s shown; --limit left out the others",
			 trace->sum.shown, S(trace->sum.shown));
	else if (trace->sum.lost)
		complain(0, 0,
			 "%" PRIu64 " event%s lost: the program makes them faster than this "
			 "command can write them; trace fewer functions by --on",
			 trace->sum.lost, S(trace->sum.lost));
	if (trace->sum.functions)
		print_lost_events(counts);
}

/* --- A program that is run, or a process ------------------------------------------------------ */

static const char *patterns_of(const struct trace *trace)
{
	return trace->asked.on ? trace->asked.on : "*";
}

/* Before the agent answers, it tells follow_events() of its probes. */
static int trace_process(struct trace *trace, struct counts *counts)
{
	struct counts before = { 0 }, none = { 0 };
	pid_t pid = (pid_t)trace->pid;
	int status = control_ask(trace->pid, &before, "counts");

	ending_note();
	if (status == STATUS_OK && trace->asked.writable)
		status = control_ask(trace->pid, &none, "writable on");
	if (status == STATUS_OK)
		status = control_ask(trace->pid, &none, "trace %s %s", trace->read->folder,
				     patterns_of(trace));
	while (status == STATUS_OK && !trace->sum.limited && !ending_noted() &&
	       !ending_is_over(pid))
		ending_until(pid, LOOK);
	/* Also after a failure: some probes may be on. */
	if (control_listens(trace->pid))
		control_ask(trace->pid, &none, "untrace %s", patterns_of(trace));
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
	bool unmatched = false;
	pthread_t thread;
	int status;

	set_environment(&trace->asked);
	setenv("FASTINST_TRACE", trace->read->folder, 1);
	if (pthread_create(&thread, NULL, follow_events, trace))
		return complain(STATUS_FAILED, 0, "no thread can be started");
	status = trace->pid ? trace_process(trace, &counts) : launch_program(&launch, argv);
	atomic_store_explicit(&trace->over, true, memory_order_release);
	pthread_join(thread, NULL);
	if (launch.folder[0])
		collect_counts(&launch, argv[0], &trace->asked, &counts, &unmatched);
	print_end(trace, &counts);
	counts_free(&counts);
	return !status && unmatched ? STATUS_FAILED : status;
}

/* --- The command ------------------------------------------------------------------------------ */

static int start_trace(struct trace *trace, char **argv)
{
	const struct trace_to to = { show_event, show_open, show_lost, trace };
	int status;

	/* A closed pipe is a write error: the folder has to be removed before the end. */
	ending_ignore(SIGPIPE);
	control_sweep();
	ending_hold();
	trace->read = trace_open(&to);
	if (!trace->read)
		return complain(STATUS_FAILED, -errno, "no folder for events in /dev/shm or /tmp");
	trace->out = open_output(trace->asked.output);
	if (!trace->out) {
		trace_close(trace->read);
		return STATUS_FAILED;
	}
	if (trace->format->begin)
		trace->format->begin(trace->out, trace->pid ? "" : argv[0]);
	status = run_trace(trace, argv);
	trace_close(trace->read);
	if (close_output(trace->out, trace->asked.output) && !status)
		status = STATUS_FAILED;
	return status;
}

static bool take_format(const struct option_row *row, const char *text, void *request, char *why)
{
	struct trace *trace = request;

	(void)row;
	(void)why;
	trace->format = trace_format(text);
	return true;
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
	  .take = take_format, .parse = format_known },
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
	struct trace trace = { .format = trace_format("text"), .limit = UINT64_MAX };
	int status = command_line_parse(&line, argc, argv, &trace, NULL);

	if (status == STATUS_OK && (optind == argc) != (trace.pid != 0))
		status = refuse_usage("it takes either a program to run or --pid");
	if (status == STATUS_OK && trace.asked.entries)
		status = refuse_entries();
	if (status == STATUS_OK && !source_ready())
		complain(0, 0,
			 "libdw is not here: arguments, results and lines are not shown; install "
			 "libdw-dev, and if fastinst was built without it, build it again");
	if (status == STATUS_OK)
		status = start_trace(&trace, argv + optind);
	filter_free(&trace.filter);
	free(trace.asked.on);
	return status;
}
