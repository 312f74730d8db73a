/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "probes/command/command.h"
#include "probes/profile/command/profile_cmd.h"

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
	"fastinst help COMMAND says more, and fastinst(1) all.\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "attach", attach_command },	{ "run", run_command },	    { "on", switch_command },
	{ "off", switch_command },	{ "top", top_command },	    { "list", list_command },
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
	fprintf(stderr, "fastinst: standard output: %s\n", strerror(errno ? errno : EIO));
	return status ? status : STATUS_FAILED;
}

static int run(int argc, char **argv)
{
	static char asked[] = "--help";

	if (argc < 2)
		return usage_error("");
	/* fastinst help COMMAND is fastinst COMMAND --help. */
	if (!strcmp(argv[1], "help") && argc == 3) {
		argv[1] = argv[2];
		argv[2] = asked;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		fputs(help, stdout);
		return STATUS_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("fastinst (" PACKAGE_STRING ")");
		return STATUS_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "fastinst: there is no command \"%s\"\n", argv[1]);
	return usage_error("");
}

int main(int argc, char **argv)
{
	take_limit();
	return flushed(run(argc, argv));
}
