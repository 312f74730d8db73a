/* SPDX-License-Identifier: MIT */
/* Options of a command by its table: reading, help, completion, complaints. */
#include "base/command_line.h"

#include <errno.h>
#include <error.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_status.h"
#include "base/spelling.h"

#define WIDTH	   80  /* of help */
#define FIRST	   256 /* getopt's value of the first row; letters are below */
#define TIME_MAX   (31 * 86400.0)
#define HELP_ABOUT "print this (also -h)"
#define HELP_IS	   "Try '%s --help'%s\n"

static void *member_of(const struct option_row *row, void *request)
{
	return (char *)request + row->at;
}

int complain(int status, int ret, const char *format, ...)
{
	char text[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error(0, -ret, "%s", text);
	return status;
}

bool option_refuse(char *why, const char *what)
{
	snprintf(why, OPTION_WHY, "%s", what);
	return false;
}

bool option_flag(const struct option_row *row, const char *text, void *request, char *why)
{
	(void)text;
	(void)why;
	return *(bool *)member_of(row, request) = true;
}

bool option_text(const struct option_row *row, const char *text, void *request, char *why)
{
	(void)why;
	*(const char **)member_of(row, request) = text;
	return true;
}

bool option_file(const struct option_row *row, const char *text, void *request, char *why)
{
	return *text ? option_text(row, text, request, why)
		     : option_refuse(why, "must be the name of a file");
}

bool number_in(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *value >= min &&
	       *value <= max;
}

bool option_number(const struct option_row *row, const char *text, void *request, char *why)
{
	uint64_t value;

	if (!number_in(text, row->min, row->max, &value)) {
		snprintf(why, OPTION_WHY, "must be a whole number from %" PRIu64 " to %" PRIu64,
			 row->min, row->max);
		return false;
	}
	if (row->size == sizeof(value))
		*(uint64_t *)member_of(row, request) = value;
	else
		*(unsigned *)member_of(row, request) = (unsigned)value;
	return true;
}

bool option_time(const struct option_row *row, const char *text, void *request, char *why)
{
	static const char units[] = "smh";
	static const double factors[] = { 1, 60, 3600, 1 }; /* the last without a unit */
	double *seconds = member_of(row, request);
	const char *unit = NULL;
	char *end;

	/* strtod() would take hexadecimal numbers, too. */
	if (strspn(text, "0123456789.") && !strpbrk(text, "xX")) {
		*seconds = strtod(text, &end);
		unit = *end && end[1] ? NULL : strchr(units, *end);
	}
	if (unit)
		*seconds *= factors[unit - units];
	if (unit && *seconds > 0 && *seconds >= (double)row->min && *seconds <= TIME_MAX)
		return true;
	snprintf(why, OPTION_WHY, "must be a time such as 90s, 10m or 2h");
	if (row->min)
		snprintf(why + strlen(why), OPTION_WHY - strlen(why), ", at least %" PRIu64 "s",
			 row->min);
	return false;
}

bool option_probability(const struct option_row *row, const char *text, void *request, char *why)
{
	double *p = member_of(row, request);
	char *end;

	*p = strtod(text, &end);
	/* strtod() would take signs, blanks, nan and hexadecimal numbers, too. */
	if (strspn(text, "0123456789.eE-") == strlen(text) && *text != '-' && end != text &&
	    *end == '\0' && *p > 0 && *p < 1)
		return true;
	return option_refuse(why, "must be a probability such as 1e-4");
}

bool option_limit(const struct option_row *row, const char *text, void *request, char *why)
{
	if (strcmp(text, "0") != 0)
		return option_time(row, text, request, why);
	*(double *)member_of(row, request) = 0;
	return true;
}

bool option_choice(const struct option_row *row, const char *text, void *request, char *why)
{
	(void)why;
	*(int *)member_of(row, request) = row->parse(text);
	return true;
}

const struct option_row *option_named(const struct option_row *table, const char *name)
{
	while (!table->name || strcmp(table->name, name) != 0)
		table++;
	return table;
}

static bool take_value(const struct option_row *row, const char *help, const char *text,
		       void *request, char *why)
{
	char words[WORD_LIST_ROOM], hint[OPTION_WHY];

	if (!row->parse || row->parse(text) >= 0)
		return row->take(row, text, request, why);
	words_known(help, row->parse, words);
	suggest_names(hint, sizeof(hint), text, words, true);
	snprintf(why, OPTION_WHY, "no such name%.*s", OPTION_WHY - 16, hint);
	return false;
}

bool option_like(const struct option_row *row, const char *text, void *request, char *why)
{
	return take_value(option_named(row->like, row->name), row->help, text, request, why);
}

/* All rows of a command, headings included. How many. */
static int rows_of(const struct command_line *line, const struct option_row *rows[OPTIONS_MAX])
{
	int count = 0;

	for (int t = 0; t < OPTION_TABLES; t++)
		for (const struct option_row *r = line->options[t]; r && (r->name || r->help); r++)
			if (count < OPTIONS_MAX)
				rows[count++] = r;
	return count;
}

/* The option, and its help word by word in as many lines as it takes. */
static void put_row(const char *name, const char *argument, const char *help, int width)
{
	int column = printf("  --%s%s%s", name, argument && *argument != '[' ? " " : "",
			    argument ? argument : "");

	printf("%*s", width - column, "");
	for (column = width; *help; help += *help == ' ') {
		int length = (int)strcspn(help, " ");

		if (column > width && column + 1 + length >= WIDTH) {
			printf("\n%*s", width, "");
			column = width;
		}
		column += printf("%s%.*s", column > width ? " " : "", length, help);
		help += length;
	}
	putchar('\n');
}

/* The option for help stands in front of the first heading, or at the end. */
static void print_help(const struct command_line *line)
{
	const struct option_row *rows[OPTIONS_MAX];
	int width = 0, count = rows_of(line, rows);
	bool helped = false;

	for (int i = 0; i < count; i++) {
		const struct option_row *r = rows[i];
		size_t argument = r->argument ? 1 + strlen(r->argument) : 0;
		int length = r->name ? (int)(6 + strlen(r->name) + argument) : 0;

		width = length > width ? length : width;
	}
	printf("Usage: %s [OPTION]...%s%s\n%s\n", program_invocation_name,
	       line->operands && line->operands[0] ? " " : "", line->operands ? line->operands : "",
	       line->about);
	for (int i = 0; i < count; i++) {
		const struct option_row *r = rows[i];

		if (r->name) {
			put_row(r->name, r->argument, r->help, width);
			continue;
		}
		if (!helped)
			put_row("help", NULL, HELP_ABOUT, width);
		helped = true;
		printf("\n%s\n", r->help);
	}
	if (!helped)
		put_row("help", NULL, HELP_ABOUT, width);
	printf("\n%s", line->end);
}

/* EXIT_USAGE without a reason in why: it is getopt's. */
static int read_options(const struct command_line *line, int argc, char **argv, void *request,
			uint64_t *given, char *why)
{
	const struct option_row *rows[OPTIONS_MAX];
	struct option options[OPTIONS_MAX + 2] = { 0 }, *end = options;
	char letters[2 * OPTIONS_MAX + 3] = "+h", *letter = letters + 2;
	int option, count = rows_of(line, rows);

	for (int i = 0; i < count; i++) {
		if (!rows[i]->name)
			continue;
		*end++ = (struct option){
			.name = rows[i]->name,
			.has_arg = !rows[i]->argument	       ? no_argument
				   : *rows[i]->argument == '[' ? optional_argument
							       : required_argument,
			.val = FIRST + i,
		};
		if (rows[i]->letter)
			letter += sprintf(letter, "%c%s", rows[i]->letter,
					  rows[i]->argument ? ":" : "");
	}
	*end = (struct option){ .name = "help", .val = 'h' };
	optind = 0; /* glibc: start anew */
	while ((option = getopt_long(argc, argv, letters + !line->program, options, NULL)) != -1) {
		const struct option_row *row;
		char reason[OPTION_WHY] = "";
		const char *text;
		int i = 0;

		while (i < count && option != FIRST + i && option != rows[i]->letter)
			i++;
		if (i == count)
			return option == 'h' ? EXIT_HELPED : EXIT_USAGE;
		row = rows[i];
		text = row->fixed ? row->fixed : optarg ? optarg : "";
		if (!take_value(row, row->help, text, request, reason)) {
			snprintf(why, OPTION_WHY, "--%s '%.60s': %.170s", row->name, text, reason);
			return EXIT_USAGE;
		}
		if (given && row == line->options[0] + i)
			*given |= UINT64_C(1) << i;
	}
	if (optind == argc || line->operands)
		return EXIT_PASS;
	snprintf(why, OPTION_WHY, "unexpected argument '%.60s'", argv[optind]);
	return EXIT_USAGE;
}

bool completion_wanted;

/*
 * A line per option of a command, or of one of its actions, and one without a name for operands.
 * Fields, apart by tabs: command and action, option, argument, words that it may be, help.
 */
static void print_options(const struct command_line *line, const char *name, const char *action,
			  unsigned plan)
{
	const struct option_row *rows[OPTIONS_MAX];
	int count = rows_of(line, rows);
	char words[WORD_LIST_ROOM];

	for (int n = 0; n < count; n++) {
		const struct option_row *r = rows[n], *real = r;

		if (!r->name || (r->plans && !(r->plans & plan)))
			continue;
		words[0] = '\0';
		if (r->like)
			real = option_named(r->like, r->name);
		if (real->parse)
			words_known(r->help, real->parse, words);
		printf("%s%s\t--%s\t%s\t%s\t%s\n", name, action, r->name,
		       r->argument ? r->argument : "", words, r->help);
	}
	if (line->operands && line->operands[0])
		printf("%s%s\t\t%s\t%s\t\n", name, action, line->operands,
		       line->words && !*action ? line->words : "");
}

static void completion_print(const struct command_line *line)
{
	const char *name = strrchr(program_invocation_name, ' ') + 1, *words = line->words;
	char action[1 + WORD_ROOM] = " ";

	print_options(line, name, "", ~0u);
	for (unsigned i = 0; line->has_actions && (words = next_word(words, action + 1)); i++)
		print_options(line, name, action, 1u << i);
}

/*
 * Behind getopt's complaint: where help is, and the option that may have been meant. Of one that
 * begins as options do, getopt has said what is wrong.
 */
static void print_hint(const struct command_line *line, const char *argument)
{
	const struct option_row *rows[OPTIONS_MAX];
	char words[WORD_LIST_ROOM] = "", hint[OPTION_WHY] = "", name[WORD_ROOM], option[WORD_ROOM];
	int count = rows_of(line, rows);
	bool unknown = strncmp(argument, "--", 2) == 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument, "="), argument);
	for (int i = 0; i < count; i++) {
		if (!rows[i]->name)
			continue;
		snprintf(option, sizeof(option), "--%s", rows[i]->name);
		unknown &= strncmp(option, name, strlen(name)) != 0;
		add_word(words, option);
	}
	if (unknown)
		suggest_names(hint, sizeof(hint), name, words, false);
	fprintf(stderr, HELP_IS, program_invocation_name, hint[0] ? hint : ".");
}

int command_line_parse(const struct command_line *line, int argc, char **argv, void *request,
		       uint64_t *given)
{
	char why[OPTION_WHY] = "";
	int status;

	if (completion_wanted) {
		completion_print(line);
		return EXIT_HELPED;
	}
	status = read_options(line, argc, argv, request, given, why);
	if (status == EXIT_HELPED)
		print_help(line);
	if (why[0])
		error(0, 0, "%s", why);
	if (status == EXIT_USAGE)
		print_hint(line, why[0] ? "" : argv[optind - 1]);
	return status;
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *request,
		      char *why)
{
	int status;

	why[0] = '\0';
	opterr = 0;
	status = read_options(line, argc, argv, request, NULL, why);
	opterr = 1;
	return status == EXIT_PASS ? 0 : -EINVAL;
}

int refuse_usage(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n" HELP_IS, program_invocation_name, ".");
	return EXIT_USAGE;
}

int refuse_name(const char *thing, const char *name, const char *words)
{
	char hint[WORD_LIST_ROOM + 64];

	suggest_names(hint, sizeof(hint), name, words, true);
	return refuse_usage("no %s '%s'%s", thing, name, hint);
}
