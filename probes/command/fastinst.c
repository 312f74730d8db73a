/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "probes/command/command.h"
#include "probes/profile/command/profile_cmd.h"
#include "stress/base/exit_status.h"

static const char help[] =
	"Usage: fastinst COMMAND [OPTION]... [ARGUMENT]...\n"
	"Probes that are turned on and off while a program runs.\n"
	"\n"
	"  run PROGRAM    run a program with probes; print how often each was run\n"
	"  attach PID     put the agent into a process that runs\n"
	"  on PATTERN     turn probes on in programs that run, by either of these\n"
	"  off PATTERN    turn them off\n"
	"  top            show their counts while they run\n"
	"  trace PROGRAM  run a program; show each call as it happens\n"
	"  list PROGRAM   show what a program or library has to put probes on\n"
	"  profile PROGRAM\n"
	"                 run a program; estimate how often each function is called\n"
	"\n"
	"'fastinst help COMMAND' tells its options; fastinst(1) tells everything.\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "attach", attach_command },	{ "run", run_command },	    { "on", on_command },
	{ "off", off_command },		{ "top", top_command },	    { "list", list_command },
	{ "profile", profile_command }, { "trace", trace_command },
};

static void on_limit(int number)
{
	(void)number;
}

/* A file beyond the limit is an error. A handler, which programs that are run do not inherit. */
static void take_limit(void)
{
	if (signal(SIGXFSZ, on_limit) == SIG_IGN)
		signal(SIGXFSZ, SIG_IGN);
}

/* What was said to standard output may not have got there. */
static int flushed(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	complain(0, errno ? -errno : -EIO, "standard output");
	return status ? status : STATUS_FAILED;
}

/* All complaints, getopt's too, begin with the name of the command. */
static int run_line(char *name, int argc, char **argv)
{
	static char invoked[32];

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		snprintf(invoked, sizeof(invoked), "fastinst %s", name);
		program_invocation_name = argv[0] = invoked;
		return commands[i].run(argc, argv);
	}
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
		fputs(help, stderr);
		status = EXIT_USAGE;
	} else if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		fputs(help, stdout);
	} else if (!strcmp(what, "--version")) {
		puts("fastinst (" PACKAGE_STRING ")");
	} else {
		/* fastinst help COMMAND is fastinst COMMAND --help. */
		status = what == argv[1] ? run_line(what, argc - 1, argv + 1)
					 : run_line(what, 2, question);
	}
	return status == EXIT_HELPED ? STATUS_OK : status;
}

int main(int argc, char **argv)
{
	take_limit();
	return flushed(run_fastinst(argc, argv));
}
