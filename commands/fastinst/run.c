/* SPDX-License-Identifier: MIT */
/* fastinst run: a program with the agent in it, and the counts of all its processes at the end. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/fastinst/command.h"
#include "commands/fastinst/counts.h"

struct run {
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

int collect_counts(const struct launch *launch, const char *program, const struct asked *asked,
		   struct counts *counts, bool *unmatched)
{
	int ret = launch_reports(launch->folder, counts_line, counts);

	*unmatched = false;
	if (ret < 0)
		return complain(ret, ret, "the counts cannot be read");
	counts_join(counts);
	if (!ret)
		*unmatched = why_little(program, counts, asked);
	return 0;
}

static int print_counts(const struct run *run, const char *program)
{
	struct counts counts = { 0 };
	bool unmatched;
	int ret = collect_counts(&run->launch, program, &run->asked, &counts, &unmatched);

	if (!ret)
		ret = counts_write(&counts, run->asked.output, run->json);
	counts_free(&counts);
	return ret < 0 || unmatched ? STATUS_FAILED : STATUS_OK;
}

static int run_program(struct run *run, char **argv)
{
	int status, printed;

	run->launch.agent = "libfastinst-agent.so";
	run->launch.lost = "its counts are";
	set_environment(&run->asked);
	control_sweep();
	status = launch_program(&run->launch, argv);
	if (!run->launch.folder[0])
		return status;
	printed = print_counts(run, argv[0]);
	return status ? status : printed;
}

static const struct option_row options[] = {
	{ "off", NULL, "nothing is on until \"fastinst on\" says so",
	  OPTION_FLAG(struct run, asked.nothing_on) },
	{ "json", NULL, "as JSON", OPTION_FLAG(struct run, json) },
	{ "no-control", NULL, "no control socket, and no thread for it",
	  OPTION_FLAG(struct run, asked.no_control) },
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
	struct run run = { 0 };
	int status = command_line_parse(&line, argc, argv, &run, NULL);

	if (status == STATUS_OK && optind == argc)
		status = refuse_usage("there is no program to run");
	if (status == STATUS_OK && run.asked.entries)
		status = refuse_entries();
	if (status == STATUS_OK)
		status = run_program(&run, argv + optind);
	free(run.asked.on);
	return status;
}
