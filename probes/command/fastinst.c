/* SPDX-License-Identifier: MIT */
/* The program fastinst: its commands, its help, and the shells' completions. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "probes/command/command.h"
#include "probes/launch/ending.h"
#include "probes/profile/command/profile_cmd.h"
#include "stress/base/exit_status.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what, *example;
} commands[] = {
	{ "run", run_command, "run a program with probes; print how often each was run",
	  "run --on 'parse_*' -- ./prog input" },
	{ "attach", attach_command, "put the agent into a process that runs",
	  "attach --entries --for 10s 1234" },
	{ "detach", detach_command, "take it out again", "detach 1234" },
	{ "on", on_command, "turn probes on in programs that run, by either of these",
	  "on --pid 1234 'src/net/*.c:*'" },
	{ "off", off_command, "turn them off", "off 'libz.so*:*'" },
	{ "reset", reset_command, "have them count from 0", "reset --pid 1234 '*'" },
	{ "top", top_command, "show their counts while they run", "top --pid 1234" },
	{ "trace", trace_command, "run a program; show each call as it happens",
	  "trace --on 'Shop::add*' --limit 1000 -- ./prog input" },
	{ "list", list_command, "show what a program or library has to put probes on",
	  "list --entries --summary /usr/bin/python3" },
	{ "profile", profile_command, "run a program; estimate how often each function is called",
	  "profile --format html --output prog.html -- ./prog input" },
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void print_help(FILE *to)
{
	fputs("Usage: fastinst COMMAND [OPTION]... [ARGUMENT]...\n"
	      "Probes that are turned on and off while a program runs.\n"
	      "\n"
	      "Count all calls; of a program that was not compiled for it; of one that runs,\n"
	      "for ten seconds. See the calls of one source file with their arguments. Find\n"
	      "where the calls come from, as a page with a flame graph:\n"
	      "\n"
	      "  $ fastinst run -- ./prog input\n"
	      "  $ fastinst run --entries -- ./prog input\n"
	      "  $ fastinst attach --entries --for 10s 1234\n"
	      "  $ fastinst trace --on 'src/net/*.c:*' -- ./prog input\n"
	      "  $ fastinst profile --format html --output prog.html -- ./prog input\n"
	      "\n",
	      to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
	fputs("\n'fastinst help COMMAND' tells its options; fastinst(1) tells everything.\n", to);
}

/* A write error shows at the last flush at the latest. */
static int flush_output(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	complain(0, errno ? -errno : -EIO, "standard output");
	return status ? status : STATUS_FAILED;
}

/* All complaints, getopt's too, begin with the name of the command. */
static int run_line(size_t i, int argc, char **argv)
{
	static char invoked[32];
	int status;

	snprintf(invoked, sizeof(invoked), "fastinst %s", commands[i].name);
	program_invocation_name = argv[0] = invoked;
	status = commands[i].run(argc, argv);
	if (status == EXIT_HELPED && !completion_wanted)
		printf("\nExample: fastinst %s\n", commands[i].example);
	return status;
}

/* Not in the help: the build makes the shells' completions of it. */
static int print_completion(void)
{
	completion_wanted = true;
	for (size_t i = 0; i < COMMANDS; i++) {
		printf("\t%s\t\t\t%s\n", commands[i].name, commands[i].what);
		run_line(i, 1, (char *[]){ NULL, NULL });
	}
	return STATUS_OK;
}

static int run_command_named(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return run_line(i, argc, argv);
	return refuse_usage("no such command '%s'", name);
}

static int run_fastinst(int argc, char **argv)
{
	static char invoked[] = "fastinst", asked[] = "--help", *question[] = { NULL, asked, NULL };
	char *what = argc > 1 ? argv[1] : NULL;
	int status = STATUS_OK;

	program_invocation_name = invoked;
	if (what && !strcmp(what, "help"))
		what = argc > 2 ? argv[2] : asked;
	if (!what) {
		print_help(stderr);
		status = EXIT_USAGE;
	} else if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		print_help(stdout);
	} else if (!strcmp(what, "--version")) {
		puts("fastinst (" PACKAGE_STRING ")");
	} else if (!strcmp(what, "completion")) {
		status = print_completion();
	} else {
		/* fastinst help COMMAND is fastinst COMMAND --help. */
		status = what == argv[1] ? run_command_named(what, argc - 1, argv + 1)
					 : run_command_named(what, 2, question);
	}
	return status == EXIT_HELPED ? STATUS_OK : status;
}

int main(int argc, char **argv)
{
	/* A write beyond the limit of file sizes is an error, not the end. */
	ending_ignore(SIGXFSZ);
	return flush_output(run_fastinst(argc, argv));
}
