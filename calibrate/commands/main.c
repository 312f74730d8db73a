/* SPDX-License-Identifier: MIT */
/* tmax: find how long an instruction fetch may lag behind a store to code. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/program/commands.h"

volatile sig_atomic_t interrupted;

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "calibrate", cmd_calibrate, "find T_max of this machine and write machine.conf" },
	{ "verify", cmd_verify, "run the worst cells at the config's waits: does it hold?" },
	{ "stress", cmd_stress, "run one cell: toggle a site under executors, count tears" },
	{ "gaps", cmd_gaps, "measure the gaps between the two fetches of one instruction" },
	{ "evidence", cmd_evidence, "what all runs together have counted on this machine" },
	{ "report", cmd_report, "journals as a page with their figures" },
	{ "conform", cmd_conform, "does each CPU keep what is promised about code that changes?" },
	{ "merge", cmd_merge, "evidence of many machines into one database" },
	{ "fleet", cmd_fleet, "what that database says of each kind of machine" },
	{ "bench", cmd_bench, "what patching costs here, beside what people use instead" },
	{ "info", cmd_info, "identity, placements, and whether machine.conf fits" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int print_help(FILE *to)
{
	fputs("Usage: tmax COMMAND [OPTION]...\n\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\n'tmax help COMMAND' tells its options; tmax(1) tells everything.\n", to);
	return EXIT_HELPED;
}

static void on_signal(int signal)
{
	interrupted = signal;
}

/* All complaints, getopt's too, begin with the name of the command. */
static int run_command(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	static char name[32];

	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "tmax %s", commands[i].name);
		program_invocation_name = argv[0] = name;
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		sigaction(SIGHUP, &action, NULL);
		/* A reader that goes away, or a file size limit, is a write error to report. */
		signal(SIGPIPE, SIG_IGN);
		signal(SIGXFSZ, SIG_IGN);
		return commands[i].run(argc, argv);
	}
	return refuse_usage("no such command '%s'", argv[0]);
}

/* Not in the help: the build makes the shells' completions of it. */
static int print_completion(void)
{
	completion_wanted = true;
	for (size_t i = 0; i < COMMANDS; i++) {
		char name[32], *line[] = { name, NULL };

		snprintf(name, sizeof(name), "%s", commands[i].name);
		printf("\t%s\t\t\t%s\n", name, commands[i].what);
		if (commands[i].run(1, line) != EXIT_HELPED)
			return EXIT_INTERNAL;
	}
	return EXIT_PASS;
}

static int run_line(int argc, char **argv)
{
	static char option[] = "--help";
	const char *what = argv[0];

	if (strcmp(what, "help") == 0)
		what = argc == 1 ? option : argv[1];
	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
		return print_help(stdout);
	if (strcmp(what, "--version") == 0) {
		puts(PACKAGE_STRING);
		return EXIT_PASS;
	}
	if (strcmp(what, "completion") == 0 && argc == 1)
		return print_completion();
	if (what == argv[0])
		return run_command(argc, argv);
	/* "help fleet report" is "fleet --help", which tells of all actions. */
	argv[0] = argv[1];
	argv[1] = option;
	return run_command(2, argv);
}

int main(int argc, char **argv)
{
	static char name[] = "tmax";
	int status, fd;

	program_invocation_name = name;
	/*
	 * A file of ours must not get the number of a closed standard stream, or text for people
	 * would end up in it. What stands in refuses to be written, so that the loss is told.
	 */
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	status = run_line(argc - 1, argv + 1);
	/* What was printed is only told once it is written. */
	errno = 0;
	if (fflush(stdout) != 0 || ferror(stdout))
		return complain(EXIT_CANNOT_WRITE, -errno, "cannot write to standard output");
	return status == EXIT_HELPED ? EXIT_PASS : status;
}
