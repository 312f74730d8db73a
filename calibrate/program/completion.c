/* SPDX-License-Identifier: MIT */
#include "calibrate/program/completion.h"

#include <stdio.h>
#include <string.h>

#include "calibrate/program/cell_options.h"

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define WORD_MAX   32

bool completion_wanted;

/* What the option takes, of the words that its help is made of: its parser knows. */
static void print_words_of_help(const struct option_row *row, int (*parse)(const char *name))
{
	size_t length;

	for (const char *text = row->help; *(text += strcspn(text, WORD_CHARS)); text += length) {
		char word[WORD_MAX];

		length = strspn(text, WORD_CHARS);
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (length < sizeof(word) && parse(word) >= 0)
			printf("%s ", word);
	}
}

static void print_words(const struct option_row *row)
{
	const struct option_row *real = row;
	const char *word;

	/* Of a cell; but what several names may be is then told by the other command. */
	if (row->take == option_of_cell && strcmp(row->argument, "NAME") == 0)
		real = option_named(cell_options, row->name);
	for (int i = 0; real->word && (word = real->word(i)); i++)
		printf("%s ", word);
	if (real->parse && !real->word)
		print_words_of_help(row, real->parse);
}

/* Those that a list in what the command is about begins its lines with, and what is in small
 * letters. */
static void print_operands(const struct command_line *line)
{
	printf("%s\t\t%s\t", line->name, line->operands);
	for (const char *text = line->about; text && *text; text = strchr(text, '\n')) {
		text += strspn(text, "\n");
		if (strncmp(text, "  ", 2) == 0 && strspn(text + 2, WORD_CHARS))
			printf("%.*s ", (int)strspn(text + 2, WORD_CHARS), text + 2);
	}
	printf("%s\t\n", line->operands + strcspn(line->operands, WORD_CHARS));
}

void completion_print(const struct command_line *line)
{
	for (int t = 0; t < OPTION_TABLES; t++)
		for (const struct option_row *r = line->options[t]; r && (r->name || r->help);
		     r++) {
			if (!r->name)
				continue;
			printf("%s\t--%s\t%s\t", line->name, r->name,
			       r->argument ? r->argument : "");
			print_words(r);
			printf("\t%s\n", r->help);
		}
	if (line->operands && line->operands[0])
		print_operands(line);
}
