/* SPDX-License-Identifier: MIT */
/* Names that a user may have meant. Lists of names are words with a blank behind each. */
#ifndef BASE_SPELLING_H
#define BASE_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

#define SPELLING_LETTERS 64  /* of a name that is looked at */
#define WORD_LIST_ROOM	 512 /* bytes of a list of names */
#define WORD_ROOM	 32  /* bytes of one of them */

/*
 * count_errors - letters that are wrong, missing or too many in a name, against so many letters;
 * with anywhere, in the part of the name that is nearest (Sellers).
 */
unsigned count_errors(const char *letters, unsigned count, const char *name, bool anywhere);

/* next_word - the first word from there; returns where it ends, NULL at the end of the list. */
const char *next_word(const char *words, char word[WORD_ROOM]);

/* add_word - to a list that has it not yet. */
void add_word(char words[WORD_LIST_ROOM], const char *added);

/* words_known - the words of a text that parse() knows, each once. */
void words_known(const char *text, int (*parse)(const char *name), char words[WORD_LIST_ROOM]);

/*
 * suggest_names - "; did you mean 'a' or 'b'?": the names that begin so, or the nearest; where none
 * is near and all is set, "; there are a, b, c". Else "".
 */
void suggest_names(char *text, size_t size, const char *name, const char *words, bool all);

#endif
