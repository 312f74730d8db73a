/* SPDX-License-Identifier: MIT */
/* A program of commands: what help, --version, completion and complaints have in common. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

struct program_command {
	const char *name; /* NULL: what is a heading, or, without one, the table ends */
	int (*run)(int argc, char **argv); /* argv[0] is "PROGRAM COMMAND"; returns the status */
	const char *what;		   /* a line for the program's help */
	const char *example;		   /* for the command's own, without the program's name */
};

struct program {
	const char *name;
	const char *version; /* what --version prints */
	const char *about;   /* of its help, in lines, from "Usage:" on */
	const struct program_command *commands;
	void (*begin)(void); /* before a command; may be NULL */
	int unwritten;	     /* the status where what a command printed is lost */
};

/* program_main - the main() of a program. */
int program_main(const struct program *program, int argc, char **argv);

#endif
