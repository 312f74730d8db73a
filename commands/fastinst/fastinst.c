/* SPDX-License-Identifier: MIT */
/* fastinst: count, trace and profile what a program runs, by probes that are turned on and off. */
#include <signal.h>

#include "base/program.h"
#include "commands/fastinst/command.h"
#include "profile/command/command.h"

static const struct program_command commands[] = {
	{ NULL, NULL, "Programs that are started", NULL },
	{ "run", run_command, "run a program with probes; print how often each was run",
	  "run --on 'parse_*' -- ./prog input" },
	{ "trace", trace_command, "run a program; show each call as it happens",
	  "trace --on 'Shop::add*' --limit 1000 -- ./prog input" },
	{ "profile", profile_command, "run a program; estimate how often each function is called",
	  "profile --format html --output prog.html -- ./prog input" },
	{ "metrics", metrics_command, "run a program; measure what texts in a language say",
	  "metrics -m time --focus /Code/parse.c/parse -- ./prog input" },
	{ NULL, NULL, "Programs that run", NULL },
	{ "attach", attach_command, "put the agent into a process that runs",
	  "attach --entries --for 10s 1234" },
	{ "detach", attach_command, "take it out again", "detach 1234" },
	{ "on", switch_command, "turn probes on", "on --pid 1234 'src/net/*.c:*'" },
	{ "off", switch_command, "turn them off", "off 'libz.so*:*'" },
	{ "reset", switch_command, "have them count from 0", "reset --pid 1234 '*'" },
	{ "top", top_command, "show their counts", "top --pid 1234" },
	{ NULL, NULL, "Files", NULL },
	{ "list", list_command, "show what a program or library has to put probes on",
	  "list --entries --summary /usr/bin/python3" },
	{ 0 },
};

static const struct program program = {
	.name = "fastinst",
	.version = "fastinst (" PACKAGE_STRING ")",
	.about = "Usage: fastinst COMMAND [OPTION]... [ARGUMENT]...\n"
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
		 "  $ fastinst profile --format html --output prog.html -- ./prog input\n",
	.commands = commands,
	.unwritten = STATUS_FAILED,
};

int main(int argc, char **argv)
{
	/* A write beyond the limit of file sizes is an error, not the end. */
	ending_ignore(SIGXFSZ);
	return program_main(&program, argc, argv);
}
