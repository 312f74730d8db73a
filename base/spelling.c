/* SPDX-License-Identifier: MIT */
/* Names that are nearly right: the words that are nearest, by how many letters differ. */
#include "base/spelling.h"

#include <stdio.h>
#include <string.h>

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

unsigned count_errors(const char *letters, unsigned count, const char *name, bool anywhere)
{
	unsigned row[SPELLING_LETTERS + 1], least = count;

	for (unsigned i = 0; i <= count; i++)
		row[i] = i;
	for (; *name; name++) {
		unsigned before = row[0];

		row[0] += !anywhere;
		for (unsigned i = 1; i <= count; i++) {
			unsigned errors = before + (letters[i - 1] != *name);

			before = row[i];
			errors = before + 1 < errors ? before + 1 : errors;
			row[i] = row[i - 1] + 1 < errors ? row[i - 1] + 1 : errors;
		}
		least = row[count] < least ? row[count] : least;
	}
	return anywhere ? least : row[count];
}

const char *next_word(const char *words, char word[WORD_ROOM])
{
	size_t length;

	words += strspn(words, " ");
	length = strcspn(words, " ");
	snprintf(word, WORD_ROOM, "%.*s", (int)length, words);
	return length ? words + length : NULL;
}

static void append_text(char *text, size_t size, const char *more)
{
	size_t length = strlen(text);

	snprintf(text + length, size - length, "%s", more);
}

void add_word(char words[WORD_LIST_ROOM], const char *added)
{
	char word[WORD_ROOM];

	for (const char *at = words; (at = next_word(at, word));)
		if (strcmp(word, added) == 0)
			return;
	append_text(words, WORD_LIST_ROOM, added);
	append_text(words, WORD_LIST_ROOM, " ");
}

void words_known(const char *text, int (*parse)(const char *name), char words[WORD_LIST_ROOM])
{
	words[0] = '\0';
	for (size_t length; *(text += strcspn(text, WORD_CHARS)); text += length) {
		char word[WORD_ROOM];

		length = strspn(text, WORD_CHARS);
		if (length >= WORD_ROOM)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (parse(word) >= 0)
			add_word(words, word);
	}
}

/* A name that is not finished has no error. */
static unsigned count_misspellings(const char *name, unsigned length, const char *word)
{
	return strncmp(name, word, length) == 0 ? 0 : count_errors(name, length, word, false);
}

void suggest_names(char *text, size_t size, const char *name, const char *words, bool all)
{
	unsigned length = (unsigned)strnlen(name, SPELLING_LETTERS), least = (length + 1) / 3;
	char word[WORD_ROOM];
	const char *between;
	bool near = false;

	text[0] = '\0';
	for (const char *at = words; length && (at = next_word(at, word));) {
		unsigned errors = count_misspellings(name, length, word);

		near |= errors <= least;
		least = errors < least ? errors : least;
	}
	if (!near && !all)
		return;
	between = near ? "; did you mean '" : "; there are ";
	while ((words = next_word(words, word))) {
		if (near && count_misspellings(name, length, word) > least)
			continue;
		append_text(text, size, between);
		append_text(text, size, word);
		between = near ? "' or '" : ", ";
	}
	append_text(text, size, near ? "'?" : "");
}
