/* SPDX-License-Identifier: MIT */
/*
 * fastinst trace: each call as it happens, of a program that is run with the agent in it, or of one
 * that has it.
 */
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

#include "probes/command/command.h"
#include "probes/command/trace_read.h"
#include "probes/command/trace_write.h"
#include "probes/command/why.h"
#include "probes/launch/ending.h"
#include "probes/text/text.h"

#define PAUSE_US   2000
#define LOSERS_MAX 10

static const char help[] =
	"Usage: fastinst trace [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       fastinst trace [OPTION]... --pid PID\n"
	"Shows entries and exits of functions, markers and blocks as they are run, with time, "
	"process,\n"
	"thread, and what debug information tells: arguments, results, lines of the source.\n"
	"\n"
	"  --on PATTERN   these only, \"*\" unless said: FUNCTION, OBJECT:FUNCTION, /REGEX/;\n"
	"                 may be given several times; once with --pid\n"
	"  --entries[=OBJECT]\n"
	"                 functions as well that nothing was compiled into, of the program or of\n"
	"                 objects of these names (a glob)\n"
	"  --limit N      so many events and no more; the program goes on\n"
	"  --format F     text (unless said), json (lines), chrome (for Perfetto, "
	"chrome://tracing)\n"
	"  --output FILE  there instead of to standard error\n"
	"  --pid PID      a process that \"fastinst run\" has started, until it ends or until "
	"Ctrl-C\n"
	"  --no-control   no control socket, and no thread for it\n"
	"  --help         this text\n";

struct trace {
	char *on;
	const char *output;
	const struct trace_format *format;
	uint64_t limit;
	long pid;
	bool no_control;
	const char *entries;
	FILE *out;
	struct trace_read *read;
	struct trace_sum sum;
	_Atomic bool over; /* the program has ended, or its agent cannot trace */
};

static void on_pipe(int signal)
{
	(void)signal;
}

/* --- While it runs ---------------------------------------------------------------------------- */

static void show_event(const struct shown *shown, void *arg)
{
	struct trace *trace = arg;

	if (trace->sum.limited)
		return;
	trace->format->event(trace->out, shown);
	if (++trace->sum.shown < trace->limit && !ferror(trace->out))
		return;
	trace->sum.limited = true;
	trace_stop(trace->read);
}

static void show_lost(uint64_t lost, int pid, int tid, uint64_t time, void *arg)
{
	struct trace *trace = arg;

	if (!trace->sum.limited)
		trace->format->lost(trace->out, lost, pid, tid, time);
}

static bool is_over(const struct trace *trace)
{
	if (atomic_load_explicit(&trace->over, memory_order_acquire))
		return true;
	return trace->pid &&
	       (ending_noted() || trace->sum.limited || ending_is_over((pid_t)trace->pid));
}

/* Until nothing comes any more after the end. */
static void *follow(void *arg)
{
	struct trace *trace = arg;
	bool over;

	do {
		over = is_over(trace);
		if (trace_poll(trace->read)) {
			over = false;
			continue;
		}
		fflush(trace->out);
		if (!over)
			usleep(PAUSE_US);
	} while (!over && !(trace->pid && trace->sum.limited));
	return NULL;
}

/* --- Afterwards ------------------------------------------------------------------------------- */

struct loser {
	const struct count *count;
	uint64_t seen;
};

static void add_seen(const struct traced *probe, void *arg)
{
	struct loser *loser = arg;

	if (!strcmp(probe->word, loser->count->kind) &&
	    !strcmp(probe->function, loser->count->function) &&
	    !strcmp(probe->object, loser->count->object))
		loser->seen += probe->seen;
}

/* By what the agents counted: each call that is not among the events. */
static void tell_losers(const struct trace *trace, const struct counts *counts)
{
	unsigned told = 0;

	for (size_t i = 0; i < counts->n && told < LOSERS_MAX; i++) {
		struct loser loser = { .count = &counts->count[i] };

		trace_each(trace->read, add_seen, &loser);
		if (loser.seen >= loser.count->count)
			continue;
		fputs("fastinst: ", stderr);
		text_put(stderr, loser.count->function);
		fprintf(stderr, ": %" PRIu64 " of %" PRIu64 " events lost\n",
			loser.count->count - loser.seen, loser.count->count);
		told++;
	}
	if (told == LOSERS_MAX)
		fputs("fastinst: and of others\n", stderr);
}

static void tell_end(struct trace *trace)
{
	trace->sum.lost = trace_lost(trace->read);
	if (trace->format->end)
		trace->format->end(trace->out, &trace->sum);
	if (trace->sum.limited && !ferror(trace->out))
		fprintf(stderr,
			"fastinst: these are the first %" PRIu64 " events; --limit left "
			"out the others\n",
			trace->sum.shown);
	else if (trace->sum.lost)
		fprintf(stderr,
			"fastinst: %" PRIu64 " events lost: they came faster than they "
			"could be written; trace fewer functions by --on\n",
			trace->sum.lost);
}

/* --- A program that is run -------------------------------------------------------------------- */

static int run_program(struct trace *trace, char **argv)
{
	struct launch launch = { .agent = "libfastinst-agent.so", .lost = "its last counts are" };
	struct counts counts = { 0 };
	pthread_t thread;
	int status, lost;

	if (trace->no_control)
		setenv("FASTINST_CONTROL", "off", 1);
	setenv("FASTINST_ON", trace->on ? trace->on : "*", 1);
	if (trace->entries)
		setenv("FASTINST_ENTRIES", trace->entries, 1);
	setenv("FASTINST_TRACE", trace_folder(trace->read), 1);
	if (pthread_create(&thread, NULL, follow, trace)) {
		fputs("fastinst: no thread can be started\n", stderr);
		return STATUS_FAILED;
	}
	status = launch_program(&launch, argv);
	atomic_store_explicit(&trace->over, true, memory_order_release);
	pthread_join(thread, NULL);
	tell_end(trace);
	if (!launch.folder[0])
		return status;
	lost = launch_reports(launch.folder, counts_line, &counts);
	if (lost >= 0) {
		counts_join(&counts);
		if (!trace->sum.limited)
			tell_losers(trace, &counts);
	}
	if (!lost)
		why_none(argv[0], &counts, true);
	counts_free(&counts);
	return status;
}

/* --- One that runs ---------------------------------------------------------------------------- */

static void *ask(void *arg)
{
	struct trace *trace = arg;
	struct counts none = { 0 };
	char *request;
	int status = STATUS_FAILED;

	if (asprintf(&request, "trace %s %s", trace_folder(trace->read),
		     trace->on ? trace->on : "*") >= 0) {
		status = control_ask(trace->pid, request, &none);
		free(request);
	}
	counts_free(&none);
	/* Then there is nothing to wait for. */
	if (status != STATUS_OK)
		atomic_store_explicit(&trace->over, true, memory_order_release);
	return (void *)(intptr_t)status;
}

static int trace_process(struct trace *trace)
{
	struct counts none = { 0 };
	pthread_t thread;
	void *status;
	char *request;

	ending_note();
	/* Its agent asks back before it answers. */
	if (pthread_create(&thread, NULL, ask, trace))
		return STATUS_FAILED;
	follow(trace);
	pthread_join(thread, &status);
	trace_stop(trace->read);
	/* Where it failed, some may be on. */
	if (control_listens(trace->pid) &&
	    asprintf(&request, "untrace %s", trace->on ? trace->on : "*") >= 0) {
		control_ask(trace->pid, request, &none);
		counts_free(&none);
		free(request);
	}
	tell_end(trace);
	return (int)(intptr_t)status;
}

/* --- The command ------------------------------------------------------------------------------ */

static int start(struct trace *trace, char **argv)
{
	const struct trace_to to = { show_event, show_lost, trace };
	int status, failed;

	/*
	 * A reader that has left shows as an error of the stream, and the folder has to be removed.
	 * A handler, as the program that is run would inherit that it is ignored.
	 */
	if (signal(SIGPIPE, on_pipe) == SIG_IGN)
		signal(SIGPIPE, SIG_IGN);
	control_sweep();
	ending_hold();
	trace->read = trace_open(&to);
	if (!trace->read) {
		fprintf(stderr, "fastinst: no folder for events in /dev/shm or /tmp: %s\n",
			strerror(errno));
		return STATUS_FAILED;
	}
	trace->out = trace->output ? fopen(trace->output, "we") : stderr;
	if (!trace->out) {
		fprintf(stderr, "fastinst: %s: %s\n", trace->output, strerror(errno));
		trace_close(trace->read);
		return STATUS_FAILED;
	}
	if (trace->format->begin)
		trace->format->begin(trace->out, trace->pid ? "" : argv[0]);
	status = trace->pid ? trace_process(trace) : run_program(trace, argv);
	trace_close(trace->read);
	failed = ferror(trace->out) ? EIO : 0;
	if (trace->out != stderr && fclose(trace->out))
		failed = errno;
	if (!failed)
		return status;
	fprintf(stderr, "fastinst: %s: %s\n", trace->output ? trace->output : "standard error",
		strerror(failed));
	return status ? status : STATUS_FAILED;
}

static int take_option(struct trace *trace, int option)
{
	if (option == 'p')
		return launch_pattern(&trace->on, optarg);
	if (option == 'o')
		trace->output = optarg;
	else if (option == 'l')
		trace->limit = strtoull(optarg, NULL, 10);
	else if (option == 'i')
		trace->pid = strtol(optarg, NULL, 10);
	else if (option == 'c')
		trace->no_control = true;
	else if (option == 'e')
		trace->entries = optarg ? optarg : "";
	else if (option == 'f')
		trace->format = trace_format(optarg);
	return option == '?' || !trace->format || !trace->limit || trace->pid < 0 ? -EINVAL : 0;
}

int trace_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "on", required_argument, NULL, 'p' },
		{ "limit", required_argument, NULL, 'l' },
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "pid", required_argument, NULL, 'i' },
		{ "no-control", no_argument, NULL, 'c' },
		{ "entries", optional_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct trace trace = { .format = trace_format("text"), .limit = UINT64_MAX };
	int option, status;

	while ((option = getopt_long(argc, argv, "+o:h", options, NULL)) >= 0) {
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (take_option(&trace, option) < 0)
			return usage_error("trace");
	}
	if ((optind == argc) != (trace.pid != 0) ||
	    (trace.pid && trace.on && strchr(trace.on, ' '))) {
		fprintf(stderr, "fastinst: trace takes a program to run, or --pid\n");
		return usage_error("trace");
	}
	status = start(&trace, argv + optind);
	free(trace.on);
	return status;
}
