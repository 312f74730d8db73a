/* SPDX-License-Identifier: MIT */
#include "calibrate/program/command_line.h"

#include <stdio.h>
#include <string.h>

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define WORD_MAX   32

bool completion_wanted;

void completion_print(const struct command_line *line)
{
	const char *text = line->about, *word;

	for (int t = 0; t < OPTION_TABLES; t++)
		for (const struct option_row *r = line->options[t]; r && (r->name || r->help);
		     r++) {
			const struct option_row *real = r;

			if (!r->name)
				continue;
			printf("%s\t--%s\t%s\t", line->name, r->name,
			       r->argument ? r->argument : "");
			/* Of a cell; but what several names may be is then told by the other
			 * command. */
			if (r->take == option_of_cell && strcmp(r->argument, "NAME") == 0)
				real = option_named(cell_options, r->name);
			for (int i = 0; real->word && (word = real->word(i)); i++)
				printf("%s ", word);
			/* What it takes, of the words that its help is made of: its parser knows.
			 */
			word = real->parse && !real->word ? r->help : "";
			for (size_t length; *(word += strcspn(word, WORD_CHARS)); word += length) {
				char known[WORD_MAX];

				length = strspn(word, WORD_CHARS);
				snprintf(known, sizeof(known), "%.*s", (int)length, word);
				if (length < sizeof(known) && real->parse(known) >= 0)
					printf("%s ", known);
			}
			printf("\t%s\n", r->help);
		}
	if (!line->operands || !line->operands[0])
		return;
	/* Operands: what a list in what the command is about begins its lines with, and what is in
	 * small letters. */
	printf("%s\t\t%s\t", line->name, line->operands);
	for (; text && *text; text = strchr(text, '\n')) {
		text += strspn(text, "\n");
		if (strncmp(text, "  ", 2) == 0 && strspn(text + 2, WORD_CHARS))
			printf("%.*s ", (int)strspn(text + 2, WORD_CHARS), text + 2);
	}
	printf("%s\t\n", line->operands + strcspn(line->operands, WORD_CHARS));
}
