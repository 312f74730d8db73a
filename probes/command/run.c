/* SPDX-License-Identifier: MIT */
/*
 * fastinst run: a program with the agent in it, and the counts of all its processes at the end.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/command/command.h"
#include "probes/command/counts.h"
#include "probes/command/why.h"

static const char help[] =
	"Usage: fastinst run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"Runs a program with probes and prints how often each was run, in all its processes.\n"
	"\n"
	"  --on PATTERN   on from the start, \"*\" unless said: FUNCTION, OBJECT:FUNCTION, "
	"/REGEX/;\n"
	"                 may be given several times\n"
	"  --off          nothing is on until \"fastinst on\" says so\n"
	"  --entries[=OBJECT]\n"
	"                 take functions as well that nothing was compiled into, of the program "
	"or\n"
	"                 of objects of these names (a glob)\n"
	"  --output FILE  the counts go there instead of to standard error\n"
	"  --json         as JSON\n"
	"  --no-control   no control socket, and no thread for it\n"
	"  --help         this text\n"
	"\n"
	"The exit status is the program's, or 128 and the signal that ended it.\n";

struct run {
	char *on;
	const char *output;
	bool nothing_on;
	bool json;
	bool no_control;
	const char *entries;
	struct launch launch;
};

static int print(const struct run *run, const char *program)
{
	struct counts counts = { 0 };
	int ret = launch_reports(run->launch.folder, counts_line, &counts);

	if (ret < 0)
		fprintf(stderr, "fastinst: the counts cannot be read: %s\n", strerror(-ret));
	if (ret >= 0)
		counts_join(&counts);
	if (!ret)
		why_none(program, &counts, !run->nothing_on);
	if (ret >= 0)
		ret = counts_write(&counts, run->output, run->json);
	counts_free(&counts);
	return ret < 0 ? STATUS_FAILED : STATUS_OK;
}

static int run_program(struct run *run, char **argv)
{
	int status, printed;

	run->launch.agent = "libfastinst-agent.so";
	run->launch.lost = "its counts are";
	if (run->no_control)
		setenv("FASTINST_CONTROL", "off", 1);
	if (run->nothing_on)
		unsetenv("FASTINST_ON");
	else
		setenv("FASTINST_ON", run->on ? run->on : "*", 1);
	if (run->entries)
		setenv("FASTINST_ENTRIES", run->entries, 1);
	control_sweep();
	status = launch_program(&run->launch, argv);
	if (!run->launch.folder[0])
		return status;
	printed = print(run, argv[0]);
	return status ? status : printed;
}

int run_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "on", required_argument, NULL, 'p' },
		{ "off", no_argument, NULL, 'n' },
		{ "entries", optional_argument, NULL, 'e' },
		{ "output", required_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "no-control", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct run run = { 0 };
	int option, status;

	while ((option = getopt_long(argc, argv, "+o:h", options, NULL)) >= 0) {
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (option == '?' || (option == 'p' && launch_pattern(&run.on, optarg) < 0))
			return usage_error("run");
		if (option == 'n')
			run.nothing_on = true;
		else if (option == 'o')
			run.output = optarg;
		else if (option == 'j')
			run.json = true;
		else if (option == 'c')
			run.no_control = true;
		else if (option == 'e')
			run.entries = optarg ? optarg : "";
	}
	if (optind == argc) {
		fprintf(stderr, "fastinst: there is no program to run\n");
		return usage_error("run");
	}
	status = run_program(&run, argv + optind);
	free(run.on);
	return status;
}
