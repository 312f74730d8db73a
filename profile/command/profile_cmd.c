/* SPDX-License-Identifier: MIT */
/* fastinst profile: run a program with an agent in it, and write its profile at the end. */
#include "profile/command/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/launch/inject.h"
#include "agent/launch/launch.h"
#include "base/exit_status.h"
#include "base/spelling.h"
#include "base/text.h"

struct profile_request {
	struct asked asked;
	double epoch, budget; /* epoch, period and phase in ms */
	unsigned samples;
	bool no_times;
	bool edges;
	double period, phase;
	uint64_t pid;
	double seconds;
	const char *formats;
	struct launch launch;
};

static int calls_format_known(const char *name)
{
	return profile_format(name, false) ? 0 : -1;
}

static int edges_format_known(const char *name)
{
	return profile_format(name, true) ? 0 : -1;
}

#define FORMATS                                                                                    \
	"table, json, collapsed, speedscope, callgrind, llvm, pprof, html or chrome; of edges "    \
	"table, json, llvm, gcov, autofdo, chrome or html"

static bool check_formats(const struct profile_request *run)
{
	int (*is_known)(const char *name) = run->edges ? edges_format_known : calls_format_known;
	char *copy = strdup(run->formats), *rest = copy, words[WORD_LIST_ROOM];
	const char *name;
	bool known = copy != NULL;

	while (known && (name = strsep(&rest, ","))) {
		known = is_known(name) == 0;
		if (known)
			continue;
		words_known(FORMATS, is_known, words);
		refuse_name(run->edges ? "format of edges" : "format", name, words);
	}
	free(copy);
	if (!known || run->asked.output || !strchr(run->formats, ','))
		return known;
	refuse_usage("several formats need --output");
	return false;
}

/* --- A process that runs --------------------------------------------------------------------- */

/* The agent is put into the process, called to start, and some time later to stop. */
static int call_agent(const struct profile_request *run, const char *text)
{
	struct inject inject = {
		.pid = (pid_t)run->pid,
		.library = run->launch.path,
		.entry = "fastinst_profile",
		.text = text,
	};
	int ret = inject_library(&inject);

	if (!ret && inject.result == -EBUSY)
		remark("process %d is profiled already", (int)inject.pid);
	else if (ret < 0 || inject.result < 0)
		inject_complain(&inject, ret, "profile");
	return ret < 0 ? ret : inject.result;
}

/* The process writes there, as its own user. */
static int make_folder(struct profile_request *run)
{
	char path[32];
	struct stat owner;

	snprintf(path, sizeof(path), "/proc/%d", (int)run->pid);
	if (stat(path, &owner) < 0)
		return complain(-ESRCH, 0, "there is no process %d", (int)run->pid);
	if (launch_folder(&run->launch) < 0)
		return -EIO;
	if (owner.st_uid != geteuid() && chown(run->launch.folder, owner.st_uid, owner.st_gid) < 0)
		remark("process %d cannot write to %s", (int)run->pid, run->launch.folder);
	return 0;
}

/* The agent gets as text what a preloaded agent reads from the environment. */
static int start_profile(const struct profile_request *run, const char *options)
{
	const char *wish = getenv("FASTINST_ENTRIES");
	char text[4096], *functions = text_escaped(run->asked.on ? run->asked.on : "*");
	char *entries = text_escaped(wish ? wish : "");
	int len =
		snprintf(text, sizeof(text), "start\n%s\n%s\n%s\n%s%s", run->launch.folder, options,
			 functions ? functions : "", wish ? "=" : "", entries ? entries : "");

	free(functions);
	free(entries);
	if (len < (int)sizeof(text))
		return call_agent(run, text);
	return complain(-ENAMETOOLONG, 0, "the patterns are too long");
}

/*
 * Profile a process for so many seconds (0: until it ends, or ^C), and leave it. The reports are in
 * launch.folder then. STATUS_OK, or STATUS_* after a complaint: folder is empty.
 */
static int attach_profile(struct profile_request *run, const char *options)
{
	pid_t pid = (pid_t)run->pid;

	if (launch_find(&run->launch) < 0)
		return STATUS_NOT_FOUND;
	if (make_folder(run) < 0)
		return STATUS_FAILED;
	if (start_profile(run, options) < 0) {
		folder_remove(run->launch.folder);
		run->launch.folder[0] = '\0';
		return STATUS_FAILED;
	}
	ending_note();
	ending_until(pid, run->seconds);
	/* A process that has ended has left its report. */
	if (ending_is_over(pid) || call_agent(run, "stop") == 0)
		return STATUS_OK;
	return ending_is_over(pid) ? STATUS_OK : STATUS_FAILED;
}

/* --- The profile ----------------------------------------------------------------------------- */

static int write_one(const char *path, const char *format, const struct profile *profile)
{
	FILE *out = open_output(path);
	int ret, closed;

	if (!out)
		return -EIO;
	ret = profile_format(format, profile->edges)(profile, out);
	if (ret < 0 && ret != -EIO)
		complain(0, ret, "cannot write %s", path ? path : "to standard error");
	closed = close_output(out, path);
	return ret ? ret : closed;
}

static int write_formats(const struct profile_request *run, const struct profile *profile)
{
	bool several = strchr(run->formats, ',');
	char *copy = strdup(run->formats), *rest = copy, path[PATH_MAX];
	const char *name;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && (name = strsep(&rest, ","))) {
		if (several)
			snprintf(path, sizeof(path), "%s.%s", run->asked.output, name);
		ret = write_one(several ? path : run->asked.output, name, profile);
	}
	free(copy);
	return ret;
}

static int by_calls(const void *a, const void *b)
{
	const struct arc *one = a, *two = b;

	if (one->calls != two->calls)
		return one->calls > two->calls ? -1 : 1;
	if (one->from != two->from)
		return one->from < two->from ? -1 : 1;
	return one->to < two->to ? -1 : one->to > two->to;
}

/* There are blocks, and no edge was counted. */
static void complain_of_nothing(const struct quality *quality)
{
	if (quality->epochs > 0)
		remark("nothing was counted: no thread ran two of the %.0f blocks in the %.4f s "
		       "that were in phases",
		       quality->blocks, quality->on);
	else
		remark("nothing was counted: the program ended after %.4f s, before its blocks "
		       "were on for the first time",
		       quality->seconds);
}

static int show_profile(const struct profile_request *run, const char *program)
{
	struct profile profile = { .program = strdup(program), .edges = run->edges };
	const char *on = run->asked.on;
	int ret = gather(&profile, run->launch.folder);

	if (run->edges && profile.arcs)
		qsort(profile.arc, profile.arcs, sizeof(*profile.arc), by_calls);
	else if (ret >= 0 && run->edges && profile.quality.blocks > 0)
		complain_of_nothing(&profile.quality);
	if (ret < 0)
		complain(0, ret, "the profile cannot be read");
	else if (!(profile.quality.processes > 0) && ret)
		; /* gather() has complained. */
	else if (!(profile.quality.processes > 0))
		remark("no process left a profile: the program is linked statically, or the loader "
		       "did not take the agent");
	else if (!profile.functions && run->edges)
		remark("no block could be watched: is the program compiled with "
		       "-fsanitize-coverage=trace-pc and linked with -lfastinst, and has it "
		       "symbols?");
	else if (!profile.functions)
		ret = complain(on ? -ENOENT : 0, 0,
			       "no function %s%s could be watched: is the program compiled with "
			       "-fpatchable-function-entry=5? Else take --entries; \"fastinst "
			       "list\" tells",
			       on ? "that matches " : "of it", on ? on : "");
	else
		ret = write_formats(run, &profile);
	profile_free(&profile);
	return ret < 0 ? STATUS_FAILED : STATUS_OK;
}

static int run_program(struct profile_request *run, char **argv)
{
	struct launch *launch = &run->launch;
	char path[64], program[PATH_MAX], options[128];
	ssize_t len;
	int status, shown;

	launch->agent = run->edges ? "libfastinst-edges.so" : "libfastinst-profile.so";
	launch->lost = "its profile is";
	if (run->edges)
		snprintf(options, sizeof(options), "%g %g", run->period / 1000, run->phase / 1000);
	else
		snprintf(options, sizeof(options), "%g %g %u %d", run->epoch / 1000, run->budget,
			 run->samples, run->no_times);
	setenv("FASTINST_PROFILE", options, 1);
	setenv("FASTINST_FUNCTIONS", run->asked.on ? run->asked.on : "*", 1);
	if (run->asked.entries)
		setenv("FASTINST_ENTRIES", run->asked.entries, 1);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)run->pid);
	len = readlink(path, program, sizeof(program) - 1);
	program[len < 0 ? 0 : len] = '\0';
	status = run->pid > 0 ? attach_profile(run, options) : launch_program(launch, argv);
	if (!launch->folder[0])
		return status;
	shown = show_profile(run, run->pid > 0 ? program : argv[0]);
	return status ? status : shown;
}

/* Take a number, or a percentage, from min to max millionths. */
static bool take_real(const struct option_row *row, const char *text, void *request, char *why)
{
	double value, least = (double)row->min / 1e6, most = (double)row->max / 1e6;
	char *end;

	value = strtod(text, &end);
	if (*end == '%' && !end[1]) {
		value /= 100;
		end++;
	}
	if (end == text || *end || !(value >= least && value <= most)) {
		snprintf(why, OPTION_WHY, "must be a number from %g to %g", least, most);
		return false;
	}
	*(double *)((char *)request + row->at) = value;
	return true;
}

#define REAL(member, least, most)                                                                  \
	OPTION_INTO(take_real, struct profile_request, member),                                    \
		.min = (uint64_t)((least)*1e6 + .5), .max = (uint64_t)((most)*1e6)

static const struct option_row options[] = {
	{ "overhead", "SHARE", "what the profile may cost, as 2% or 0.02 (1%)",
	  REAL(budget, 0.0001, 1) },
	{ "epoch", "MS", "the shortest time between two windows of a function (10)",
	  REAL(epoch, 0.1, 1000) },
	{ "samples", "N", "calls to count in a window, about (10)",
	  OPTION_NUMBER(struct profile_request, samples, 2, 10000) },
	{ "no-times", NULL, "leave exits of functions alone: calls are counted, and not timed",
	  OPTION_FLAG(struct profile_request, no_times) },
	{ "edges", NULL,
	  "which basic block is run behind which, in short phases, of a program compiled with "
	  "-fsanitize-coverage=trace-pc",
	  OPTION_FLAG(struct profile_request, edges) },
	{ "period", "MS", "time between two such phases, half of it more or less (100)",
	  REAL(period, 1, 100000) },
	{ "phase", "MS", "length of a phase (2)", REAL(phase, 0.1, 10000) },
	{ "pid", "PID", "a process that runs already, which runs on as before afterwards",
	  OPTION_NUMBER(struct profile_request, pid, 1, PID_MOST) },
	{ "for", "TIME",
	  "profile it for that time, such as 10s; until it ends or ^C where it is sooner",
	  OPTION_TIME(struct profile_request, seconds, 0) },
	{ "format", "FORMAT", FORMATS "; several, joined by commas, go to FILE.FORMAT (table)",
	  OPTION_TEXT(struct profile_request, formats) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM [ARGUMENT]... | --pid PID",
	.program = true,
	.about = "Run a program and estimate how often each of its functions is called, by which,\n"
		 "and where exits can be seen, for how long.\n",
	.options = { options, asked_options },
	.end = "The exit status is the program's, or 128 and the signal that ended it.\n",
};

static int check_request(const struct profile_request *run, bool has_program)
{
	if (!check_formats(run))
		return EXIT_USAGE;
	if (run->edges && (run->asked.on || run->asked.entries))
		return refuse_usage("--edges is about all blocks, and takes no --on or --entries");
	if (run->edges && run->phase > run->period / 2)
		return refuse_usage("a --phase is at most half as long as the --period");
	if (has_program == (run->pid > 0))
		return refuse_usage("it takes either a program to run or --pid");
	if (run->seconds > 0 && !run->pid)
		return refuse_usage("--for goes with --pid");
	return STATUS_OK;
}

int profile_command(int argc, char **argv)
{
	struct profile_request run = { .epoch = 10,
				       .budget = 0.01,
				       .samples = 10,
				       .period = 100,
				       .phase = 2,
				       .formats = "table" };
	int status = command_line_parse(&line, argc, argv, &run, NULL);

	if (status == STATUS_OK)
		status = check_request(&run, optind < argc);
	if (status == STATUS_OK)
		status = run_program(&run, argv + optind);
	free(run.asked.on);
	return status;
}
