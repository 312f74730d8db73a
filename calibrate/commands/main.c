/* SPDX-License-Identifier: MIT */
/*
 * tmax: find how long an instruction fetch may lag behind a store to code.
 */
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"

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

static void catch_signals(void)
{
	static const int which[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++)
		sigaction(which[i], &action, NULL);
	/* A reader that goes away, or a file size limit, is a write error to report. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/*
 * A file of ours must not get the number of a closed standard stream, or text for
 * people would end up in it. What stands in refuses to be written, so that the
 * loss is told.
 */
static void occupy_standard_streams(void)
{
	int fd = open("/dev/null", O_RDONLY);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDONLY);
	if (fd >= 0)
		close(fd);
}

/* What was printed is only told once it is written. */
static int flushed(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status == EXIT_HELPED ? EXIT_PASS : status;
	error(0, errno, "cannot write to standard output");
	return EXIT_CANNOT_WRITE;
}

/* All complaints, getopt's too, begin with the name of the command. */
static int run(int argc, char **argv)
{
	static char name[32];

	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "tmax %s", commands[i].name);
		program_invocation_name = argv[0] = name;
		catch_signals();
		return commands[i].run(argc, argv);
	}
	return refuse_usage("no such command '%s'", argv[0]);
}

/* tmax help, tmax help COMMAND */
static int help(int argc, char **argv)
{
	char option[] = "--help";
	char *line[] = { argc > 1 ? argv[1] : NULL, option, NULL };

	if (argc > 2)
		return refuse_usage("unexpected argument '%s'", argv[2]);
	return argc > 1 ? run(2, line) : print_help(stdout);
}

static int start(int argc, char **argv)
{
	const char *what = argv[0];

	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
		return print_help(stdout);
	if (strcmp(what, "help") == 0)
		return help(argc, argv);
	if (strcmp(what, "--version") != 0)
		return run(argc, argv);
	puts(PACKAGE_STRING);
	return EXIT_PASS;
}

int main(int argc, char **argv)
{
	static char name[] = "tmax";

	program_invocation_name = name;
	occupy_standard_streams();
	if (argc > 1)
		return flushed(start(argc - 1, argv + 1));
	print_help(stderr);
	return EXIT_USAGE;
}
