/* SPDX-License-Identifier: MIT */
/* A program of commands: which one is meant, help and completion for all, the status at the end. */
#include "base/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/spelling.h"

static void print_help(const struct program *program, FILE *to)
{
	fputs(program->about, to);
	for (const struct program_command *c = program->commands; c->what; c++)
		if (c->name)
			fprintf(to, "  %-10s %s\n", c->name, c->what);
		else
			fprintf(to, "\n%s:\n", c->what);
	fprintf(to, "\n'%s help COMMAND' tells its options, 'man %s-COMMAND' everything.\n",
		program->name, program->name);
}

/* All complaints, getopt's too, begin with the name of the command. */
static int run_command(const struct program *program, const struct program_command *c, int argc,
		       char **argv)
{
	static char invoked[32];
	int status;

	snprintf(invoked, sizeof(invoked), "%s %s", program->name, c->name);
	program_invocation_name = argv[0] = invoked;
	if (program->begin)
		program->begin();
	status = c->run(argc, argv);
	if (status == EXIT_HELPED && !completion_wanted)
		printf("\nExample: %s %s\n", program->name, c->example);
	return status;
}

static int run_command_named(const struct program *program, const char *name, int argc, char **argv)
{
	char words[WORD_LIST_ROOM] = "";

	for (const struct program_command *c = program->commands; c->what; c++) {
		if (!c->name)
			continue;
		if (strcmp(name, c->name) == 0)
			return run_command(program, c, argc, argv);
		add_word(words, c->name);
	}
	return refuse_name("such command", name, words);
}

/* Not in the help: the build makes the shells' completions of it. */
static int print_completion(const struct program *program)
{
	completion_wanted = true;
	for (const struct program_command *c = program->commands; c->what; c++) {
		if (!c->name)
			continue;
		printf("\t%s\t\t\t%s\n", c->name, c->what);
		if (run_command(program, c, 1, (char *[]){ NULL, NULL }) != EXIT_HELPED)
			return EXIT_INTERNAL;
	}
	return EXIT_PASS;
}

/* "help COMMAND" is "COMMAND --help", and so is "help COMMAND ACTION". */
static int run_line(const struct program *program, int argc, char **argv)
{
	static char help[] = "--help", *question[] = { NULL, help, NULL };
	const char *what = argc > 1 ? argv[1] : NULL;
	bool asked = what && strcmp(what, "help") == 0;

	if (asked)
		what = argc > 2 ? argv[2] : help;
	if (!what) {
		print_help(program, stderr);
		return EXIT_USAGE;
	}
	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
		print_help(program, stdout);
		return EXIT_PASS;
	}
	if (strcmp(what, "--version") == 0 || strcmp(what, "-V") == 0) {
		puts(program->version);
		return EXIT_PASS;
	}
	if (strcmp(what, "completion") == 0 && argc == 2)
		return print_completion(program);
	return asked ? run_command_named(program, what, 2, question)
		     : run_command_named(program, what, argc - 1, argv + 1);
}

int program_main(const struct program *program, int argc, char **argv)
{
	static char name[16];
	int status;

	snprintf(name, sizeof(name), "%s", program->name);
	program_invocation_name = name;
	status = run_line(program, argc, argv);
	/* Whether all was printed is known once it is written. */
	errno = 0;
	if ((fflush(stdout) != 0) | ferror(stdout))
		return complain(program->unwritten, errno ? -errno : -EIO,
				"cannot write to standard output");
	return status == EXIT_HELPED ? EXIT_PASS : status;
}
