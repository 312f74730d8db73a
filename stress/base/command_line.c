/* SPDX-License-Identifier: MIT */
#include "stress/base/command_line.h"

#include <errno.h>
#include <error.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/base/exit_status.h"

#define WIDTH	   80  /* of help */
#define FIRST	   256 /* getopt's value of the first row; letters are below */
#define TIME_MAX   (31 * 86400.0)
#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define WORD_MAX   32
#define HELP_ABOUT "print this (also -h)"
#define HELP_IS	   "Try '%s --help'.\n"

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
	static const struct {
		const char *suffix;
		double factor;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
	double number = 0;
	char *end = NULL;

	/* strtod() would take hexadecimal numbers, too. */
	if (strspn(text, "0123456789.") && !strpbrk(text, "xX"))
		number = strtod(text, &end);
	for (size_t i = 0; end && i < sizeof(units) / sizeof(units[0]); i++) {
		double seconds = number * units[i].factor;

		if (strcmp(end, units[i].suffix) != 0)
			continue;
		*(double *)member_of(row, request) = seconds;
		if (seconds > 0 && seconds >= (double)row->min && seconds <= TIME_MAX)
			return true;
	}
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
	int value = row->parse(text);

	if (value < 0)
		return option_refuse(why, "no such name; see tmax(1)");
	*(int *)member_of(row, request) = value;
	return true;
}

bool option_like(const struct option_row *row, const char *text, void *request, char *why)
{
	const struct option_row *real = option_named(row->like, row->name);

	return real->take(real, text, request, why);
}

const struct option_row *option_named(const struct option_row *table, const char *name)
{
	while (!table->name || strcmp(table->name, name) != 0)
		table++;
	return table;
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
		if (!row->take(row, text, request, reason)) {
			snprintf(why, OPTION_WHY, "--%s '%.60s': %.130s", row->name, text, reason);
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
 * A line per option, and one without a name for operands. Fields, apart by tabs: command, option,
 * argument, words that it may be, help.
 */
static void completion_print(const struct command_line *line)
{
	const struct option_row *rows[OPTIONS_MAX];
	const char *text = line->about, *word, *blank = strrchr(program_invocation_name, ' ');
	const char *name = line->name ? line->name : blank ? blank + 1 : "";
	int count = rows_of(line, rows);

	for (int n = 0; n < count; n++) {
		const struct option_row *r = rows[n], *real = r;

		if (!r->name)
			continue;
		printf("%s\t--%s\t%s\t", name, r->name, r->argument ? r->argument : "");
		/* What several names may be is told by the other command. */
		if (r->like && strcmp(r->argument, "NAME") == 0)
			real = option_named(r->like, r->name);
		for (int i = 0; real->word && (word = real->word(i)); i++)
			printf("%s ", word);
		/* What it takes, of the words that its help is made of: its parser knows. */
		word = real->parse && !real->word ? r->help : "";
		for (int length; *(word += strcspn(word, WORD_CHARS)); word += length) {
			char known[WORD_MAX];

			length = (int)strspn(word, WORD_CHARS);
			if (snprintf(known, WORD_MAX, "%.*s", length, word) < WORD_MAX &&
			    real->parse(known) >= 0)
				printf("%s ", known);
		}
		printf("\t%s\n", r->help);
	}
	if (!line->operands || !line->operands[0])
		return;
	/* Operands: what a list in what the command is about begins its lines with, and what is in
	 * small letters. */
	printf("%s\t\t%s\t", name, line->operands);
	for (; text && *text; text = strchr(text, '\n')) {
		text += strspn(text, "\n");
		if (strncmp(text, "  ", 2) == 0 && strspn(text + 2, WORD_CHARS))
			printf("%.*s ", (int)strspn(text + 2, WORD_CHARS), text + 2);
	}
	printf("%s\t\n", line->operands + strcspn(line->operands, WORD_CHARS));
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
		fprintf(stderr, HELP_IS, program_invocation_name);
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
	fprintf(stderr, "\n" HELP_IS, program_invocation_name);
	return EXIT_USAGE;
}
