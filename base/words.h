/* SPDX-License-Identifier: MIT */
/*
 * Text files of one statement a line: each line as words, errors as those of a compiler. Blanks and
 * tabs stand between words; a word that begins with # begins a comment, up to the end of the line.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdint.h>
#include <stdio.h>

#define WORDS_IN_LINE 64  /* of a line */
#define WORDS_WHY     320 /* bytes of a reason */

/* A line. Beyond its last word stands "", at the column where the line ends. */
struct word_line {
	const char *file; /* as errors call it */
	unsigned line;	  /* from 1 */
	unsigned count;	  /* 0: the end of the file */
	const char *word[WORDS_IN_LINE + 1];
	unsigned column[WORDS_IN_LINE + 1]; /* bytes, from 1 */
	const char *text;		    /* the line as it stands in the file */
	char *why;			    /* WORDS_WHY bytes, written by a refusal */
};

/* Takes a line. 0: go on. */
typedef int words_take(const struct word_line *line, void *arg);

/*
 * words_read - give take() each line that has words, and then the end of the file, until it returns
 * no 0. That, or 0; -EINVAL with a reason in why, WORDS_WHY bytes; -EIO; -ENOMEM.
 */
int words_read(FILE *stream, const char *file, words_take *take, void *arg, char *why);

/*
 * words_refuse - why = "FILE:LINE:COLUMN: expected X, found Y", of the word of that number. Returns
 * -EINVAL.
 */
int words_refuse(const struct word_line *line, unsigned i, const char *expected, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Each of these reads the word of that number, or refuses it: 0 or -EINVAL. words_byte - of two
 * hexadecimal digits. words_end - there is no such word.
 */
int words_number(const struct word_line *line, unsigned i, uint64_t min, uint64_t max,
		 uint64_t *value);
int words_byte(const struct word_line *line, unsigned i, uint8_t *byte);
int words_end(const struct word_line *line, unsigned i);

/* words_choice - which of the names it is: its index, or -EINVAL. */
int words_choice(const struct word_line *line, unsigned i, const char *const *names,
		 unsigned count);

/* words_rest - the line from that word on, comments included. */
const char *words_rest(const struct word_line *line, unsigned i);

#endif
