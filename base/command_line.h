/* SPDX-License-Identifier: MIT */
/*
 * A command's options: one table, from which both the parser and --help work.
 *
 * Values are read strictly: what is not wholly understood is refused with a line that names
 * option and value.
 */
#ifndef BASE_COMMAND_LINE_H
#define BASE_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX   48  /* of a command, headings included */
#define OPTION_WHY    256 /* bytes */
#define OPTION_TABLES 2

struct option_row;

/* Takes text for the request. False with the reason in why, OPTION_WHY bytes. */
typedef bool option_take(const struct option_row *row, const char *text, void *request, char *why);

struct option_row {
	const char *name;     /* NULL: help is a heading, or, without one, the table ends */
	const char *argument; /* as help calls it; "[=X]": may be left out, NULL: none is taken */
	const char *help;
	option_take *take;
	size_t at, size; /* of the member of the request that holds the value */
	uint64_t min, max;
	int (*parse)(const char *name); /* negative: no such name; help names them */
	const char *fixed;		/* the text, of an option without an argument */
	const struct option_row *like;	/* the table whose row of that name option_like() asks */
	unsigned plans;			/* those of a command's actions that have it; 0: all */
	char letter;			/* another name, or 0 */
};

option_take option_flag, option_text, option_file, option_number, option_time, option_limit,
	option_choice, option_probability, option_like;

/* Where values go: into a member of the request's type. */
#define OPTION_INTO(function, type, member)                                                        \
	.take = (function), .at = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define OPTION_FLAG(type, member) OPTION_INTO(option_flag, type, member) /* bool */
#define OPTION_TEXT(type, member) OPTION_INTO(option_text, type, member) /* const char * */
#define OPTION_FILE(type, member) OPTION_INTO(option_file, type, member) /* not "" */
/* Decimal, into a uint64_t or an unsigned. */
#define OPTION_NUMBER(type, member, least, most)                                                   \
	OPTION_INTO(option_number, type, member), .min = (least), .max = (most)
/* Into a double: "90", "90s", "10m", "2h", at least so many seconds, above 0, at most 31 days. */
#define OPTION_TIME(type, member, least) OPTION_INTO(option_time, type, member), .min = (least)
#define OPTION_LIMIT(type, member)	 OPTION_INTO(option_limit, type, member) /* "0", too */
/* Into an enum or an unsigned: one of the names that this function knows. */
#define OPTION_CHOICE(type, member, names)                                                         \
	OPTION_INTO(option_choice, type, member), .parse = (names)

struct command_line {
	const char *operands; /* as help calls them, "": untold; NULL: none are taken */
	const char *about;    /* what the command does, in lines */
	bool program;	      /* the first operand ends the options: those behind it are its own */
	bool has_actions;     /* the first operand is one of words; options have plans */
	const char *words;    /* what operands may be, a blank behind each; or NULL */
	const struct option_row *options[OPTION_TABLES];
	const char *end; /* below the options, in lines */
};

/*
 * command_line_parse - take all options into the request; what is left begins at argv[optind].
 *
 * EXIT_PASS; EXIT_HELPED: help was asked for and printed; EXIT_USAGE after a complaint. given,
 * unless NULL, gets a bit for each row of the first table that was given.
 */
int command_line_parse(const struct command_line *line, int argc, char **argv, void *request,
		       uint64_t *given);

/*
 * command_line_read - the same, silent, and without help. 0, or -EINVAL with the reason, "" where
 * argv[optind - 1] is no option of the command or lacks its value.
 */
int command_line_read(const struct command_line *line, int argc, char **argv, void *request,
		      char *why);

/* option_named - the row of that name. The table has it. */
const struct option_row *option_named(const struct option_row *table, const char *name);

/* number_in - a decimal number from min to max, nothing else. */
bool number_in(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* option_refuse - why = what, for an option_take. False. */
bool option_refuse(char *why, const char *what);

/*
 * complain - say what went wrong, and why: what a negative errno says, or nothing for 0. Returns
 * the status. On one line after what was printed, as error(3).
 */
int complain(int status, int ret, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* remark - the same of what is no failure, and has no errno. */
#define remark(...) complain(0, 0, __VA_ARGS__)

/* refuse_usage - complain, and tell where help is. Returns EXIT_USAGE. */
int refuse_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * refuse_name - complain that there is no such thing of that name, with the nearest of the names
 * that there are, or all of them: words with a blank behind each. Returns EXIT_USAGE.
 */
int refuse_name(const char *thing, const char *name, const char *words);

/* While it is set, command_line_parse() prints a command's table for completion.awk instead of
 * reading its line. */
extern bool completion_wanted;

#endif
