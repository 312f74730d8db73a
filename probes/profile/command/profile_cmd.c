/* SPDX-License-Identifier: MIT */
/*
 * fastinst profile: a program with the agent of profiles in it, and its profile at the end.
 */
#include "probes/profile/command/profile_cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/launch/launch.h"
#include "probes/profile/command/attach.h"
#include "probes/profile/command/edges_cmd.h"
#include "probes/profile/command/formats.h"
#include "probes/profile/command/gather.h"
#include "probes/profile/write/write.h"

#define MOST 300 /* times the samples that are wanted, in a window */

static const char help[] =
	"Usage: fastinst profile [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       fastinst profile [OPTION]... --pid PID\n"
	"Runs a program and estimates how often each of its functions is called, by which, and\n"
	"where exits can be seen, for how long.\n"
	"\n"
	"  --overhead SHARE  what the profile may cost, as \"1%\" (unless said) or 0.01\n"
	"  --epoch MS        the shortest time between two looks at a function (10)\n"
	"  --samples N       calls to count in a look, about (10)\n"
	"  --stop-by-count   a look ends by the N-th call, not after a time chosen before; right\n"
	"                    only for calls that come at random\n"
	"  --no-times        leave exits of functions alone: calls are counted, and not timed\n"
	"  --edges           which basic block is run behind which, in short phases, of a program\n"
	"                    compiled with -fsanitize-coverage=trace-pc; formats are table,\n"
	"                    json and llvm (of lines, by the program's debug information)\n"
	"  --period MS       time between two such phases (100), half of it more or less\n"
	"  --phase MS        length of a phase (2)\n"
	"  --pid PID         a process that runs already, which runs on as before afterwards\n"
	"  --for SECONDS     profile it for that time; until it ends or ^C where it is sooner\n"
	"  --on PATTERN      only these functions: FUNCTION, OBJECT:FUNCTION, /REGEX/; may be "
	"given\n"
	"                    several times\n"
	"  --format FORMAT   table (unless said), json, collapsed, speedscope, callgrind, llvm,\n"
	"                    pprof, html or chrome; several, with a comma between, go to "
	"FILE.FORMAT\n"
	"  --output FILE     the profile goes there instead of to standard error\n"
	"  --help            this text\n"
	"\n"
	"The exit status is the program's, or 128 and the signal that ended it.\n";

struct run {
	double epoch, budget;
	unsigned samples;
	bool by_count, no_times;
	bool edges;
	double period, phase;
	double pid, seconds;
	char *on, *formats;
	const char *output;
	struct launch launch;
};

static bool parse_number(const char *text, double least, double most, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (*end == '%' && !end[1]) {
		*value /= 100;
		end++;
	}
	if (end != text && !*end && *value >= least && *value <= most)
		return true;
	fprintf(stderr, "fastinst: \"%s\" is not from %g to %g\n", text, least, most);
	return false;
}

static bool formats_known(const struct run *run)
{
	char *copy = strdup(run->formats), *rest = copy;
	const char *name;
	bool known = copy != NULL, several = strchr(run->formats, ',');

	while (known && (name = strsep(&rest, ","))) {
		known = run->edges ? edges_format(name) : profile_format(name) != NULL;
		if (!known)
			fprintf(stderr, "fastinst: there is no format \"%s\"%s\n", name,
				run->edges ? " of edges" : "");
	}
	free(copy);
	if (known && several && !run->output) {
		fputs("fastinst: several formats need --output FILE\n", stderr);
		return false;
	}
	return known;
}

static bool edges_possible(const struct run *run)
{
	if (run->on)
		fputs("fastinst: --edges is about all blocks, and takes no --on\n", stderr);
	else if (run->phase > run->period / 2)
		fputs("fastinst: a phase is longer than half a period\n", stderr);
	else
		return true;
	return false;
}

static bool parse(struct run *run, int option)
{
	double value;

	switch (option) {
	case 'v':
		return parse_number(optarg, 0.0001, 1, &run->budget);
	case 'e':
		if (!parse_number(optarg, 0.1, 1000, &value))
			return false;
		run->epoch = value / 1000;
		return true;
	case 's':
		if (!parse_number(optarg, 2, 10000, &value))
			return false;
		run->samples = (unsigned)value;
		return true;
	case 'c':
		run->by_count = true;
		return true;
	case 't':
		run->no_times = true;
		return true;
	case 'g':
		run->edges = true;
		return true;
	case 'r':
		return parse_number(optarg, 1, 100000, &run->period);
	case 'l':
		return parse_number(optarg, 0.1, 10000, &run->phase);
	case 'i':
		return parse_number(optarg, 1, 4194304, &run->pid);
	case 'w':
		return parse_number(optarg, 0.001, 1e9, &run->seconds);
	case 'p':
		return !launch_pattern(&run->on, optarg);
	case 'f':
		run->formats = optarg;
		return true;
	case 'o':
		run->output = optarg;
		return true;
	default:
		return false;
	}
}

/* --- The program ------------------------------------------------------------ */

static void set_environment(const struct run *run)
{
	char options[128];

	snprintf(options, sizeof(options), "%g %g %u %u %d %d", run->epoch, run->budget,
		 run->samples, run->by_count ? run->samples : MOST * run->samples, run->by_count,
		 run->no_times);
	setenv("FASTINST_PROFILE", options, 1);
	snprintf(options, sizeof(options), "%g %g", run->period / 1000, run->phase / 1000);
	setenv("FASTINST_EDGES", options, 1);
	setenv("FASTINST_FUNCTIONS", run->on ? run->on : "*", 1);
}

/* --- The profile ------------------------------------------------------------ */

static int write_profile(const char *format, FILE *out, const void *profile)
{
	return profile_format(format)->write(profile, out);
}

static int show(const struct run *run, const char *program)
{
	struct profile profile = { .program = strdup(program) };
	int ret = gather(&profile, run->launch.folder);

	if (ret < 0)
		fprintf(stderr, "fastinst: the profile cannot be read: %s\n", strerror(-ret));
	else if (!(profile.quality.processes > 0))
		fputs(ret ? ""
			  : "fastinst: no process left a profile: the program is linked "
			    "statically, or the loader did not take the agent\n",
		      stderr);
	else if (!profile.functions)
		fputs("fastinst: no function could be watched: is the program compiled with "
		      "-fpatchable-function-entry=5? \"fastinst list\" tells\n",
		      stderr);
	else
		ret = write_formats(run->formats, run->output, write_profile, &profile);
	profile_free(&profile);
	return ret < 0 ? STATUS_FAILED : STATUS_OK;
}

/* The agent gets what a program's would have in its environment. */
static int visit(struct run *run, char *program, size_t size)
{
	const struct visited visited = {
		.pid = (pid_t)run->pid,
		.seconds = run->seconds,
		.profile = getenv("FASTINST_PROFILE"),
		.edges = getenv("FASTINST_EDGES"),
		.functions = getenv("FASTINST_FUNCTIONS"),
	};
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)visited.pid);
	len = readlink(path, program, size - 1);
	program[len < 0 ? 0 : len] = '\0';
	return attach_profile(&visited, &run->launch);
}

static int run_program(struct run *run, char **argv)
{
	struct launch *launch = &run->launch;
	char program[PATH_MAX];
	const char *name;
	int status, shown;

	launch->agent = run->edges ? "libfastinst-edges.so" : "libfastinst-profile.so";
	launch->lost = "its profile is";
	set_environment(run);
	status = run->pid > 0 ? visit(run, program, sizeof(program)) : launch_program(launch, argv);
	name = run->pid > 0 ? program : argv[0];
	if (!launch->folder[0])
		return status;
	if (run->edges)
		shown = edges_show(launch->folder, name, run->output, run->formats) ? STATUS_FAILED
										    : STATUS_OK;
	else
		shown = show(run, name);
	return status ? status : shown;
}

int profile_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "overhead", required_argument, NULL, 'v' },
		{ "epoch", required_argument, NULL, 'e' },
		{ "samples", required_argument, NULL, 's' },
		{ "stop-by-count", no_argument, NULL, 'c' },
		{ "no-times", no_argument, NULL, 't' },
		{ "edges", no_argument, NULL, 'g' },
		{ "period", required_argument, NULL, 'r' },
		{ "phase", required_argument, NULL, 'l' },
		{ "pid", required_argument, NULL, 'i' },
		{ "for", required_argument, NULL, 'w' },
		{ "on", required_argument, NULL, 'p' },
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char table[] = "table";
	struct run run = { .epoch = 0.01,
			   .budget = 0.01,
			   .samples = 10,
			   .period = 100,
			   .phase = 2,
			   .formats = table };
	int option, status;

	while ((option = getopt_long(argc, argv, "+o:h", options, NULL)) >= 0) {
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (!parse(&run, option))
			return usage_error("profile");
	}
	if (!formats_known(&run) || (run.edges && !edges_possible(&run)))
		return usage_error("profile");
	if ((optind == argc) != (run.pid > 0) || (run.seconds > 0 && !(run.pid > 0))) {
		fputs("fastinst: profile takes a program to run, or --pid; --for goes with that\n",
		      stderr);
		return usage_error("profile");
	}
	status = run_program(&run, argv + optind);
	free(run.on);
	return status;
}
