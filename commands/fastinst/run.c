/* SPDX-License-Identifier: MIT */
/* fastinst run: a program with the agent in it, and the counts of all its processes at the end. */
#include <getopt.h>
#include <stdlib.h>

#include "commands/fastinst/command.h"

struct run_request {
	struct asked asked;
	bool json;
	struct launch launch;
};

void set_environment(const struct asked *asked)
{
	if (asked->no_control)
		setenv("FASTINST_CONTROL", "off", 1);
	if (asked->nothing_on)
		unsetenv("FASTINST_ON");
	else
		setenv("FASTINST_ON", asked->on ? asked->on : "*", 1);
	if (asked->entries)
		setenv("FASTINST_ENTRIES", asked->entries, 1);
	if (asked->writable)
		setenv("FASTINST_WRITABLE", "1", 1);
}

static int run_program(struct run_request *run, char **argv)
{
	struct counts counts = { 0 };
	int status, ret;

	run->launch.agent = "libfastinst-agent.so";
	run->launch.lost = "its counts are";
	set_environment(&run->asked);
	control_sweep();
	status = launch_program(&run->launch, argv);
	if (!run->launch.folder[0])
		return status;
	ret = collect_counts(&run->launch, argv[0], &run->asked, &counts);
	if (ret >= 0 && counts_write(&counts, run->asked.output, run->json) < 0)
		ret = STATUS_FAILED;
	counts_free(&counts);
	return status || !ret ? status : STATUS_FAILED;
}

static const struct option_row options[] = {
	{ "off", NULL, "nothing is on until \"fastinst on\" says so",
	  OPTION_FLAG(struct run_request, asked.nothing_on) },
	{ "json", NULL, "as JSON", OPTION_FLAG(struct run_request, json) },
	{ "no-control", NULL, "no control socket, and no thread for it",
	  OPTION_FLAG(struct run_request, asked.no_control) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM [ARGUMENT]...",
	.program = true,
	.about = "Run a program with probes, all or those of --on, and print how often each was\n"
		 "run, in all its processes.\n",
	.options = { asked_options, options },
	.end = "The exit status is the program's, or 128 and the signal that ended it.\n",
};

int run_command(int argc, char **argv)
{
	struct run_request run = { 0 };
	int status = command_line_parse(&line, argc, argv, &run, NULL);

	if (status == STATUS_OK && optind == argc)
		status = refuse_usage("there is no program to run");
	if (status == STATUS_OK)
		status = run_program(&run, argv + optind);
	free(run.asked.on);
	return status;
}
