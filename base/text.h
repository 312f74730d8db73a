/* SPDX-License-Identifier: MIT */
/*
 * Names of functions, objects and programs, which may be any bytes but 0. Agents write them, and
 * commands print them, with \xHH for control characters, backslashes and bytes that are no UTF-8. A
 * reader splits a line into its fields first, and unescapes them then.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#define TEXT_PIECE 5 /* bytes, with the 0 at the end */

/* text_rune - how many bytes the character at the start has in UTF-8; 0: it is none. */
size_t text_rune(const char *text);

/* text_piece - the first character, escaped: how many bytes of the name. Async-signal-safe. */
size_t text_piece(char piece[TEXT_PIECE], const char *name);

/* text_unescape - in place. What is no escape stays as it is. */
void text_unescape(char *text);

/* text_escaped - a new string. NULL: no memory. */
char *text_escaped(const char *name);

/* text_fields - cut off the next n fields of a line, unescaped, with tabs between: how many it has.
 * A line without another is NULL. */
int text_fields(char **line, char **field, int n);

/* text_lines - gives each line to take(), without its end, until that returns no 0: what it did. */
int text_lines(FILE *file, int (*take)(char *line, void *arg), void *arg);

/* text_put - a name, escaped; how many bytes were written. */
int text_put(FILE *out, const char *name);

/* text_put_plain - without escapes: '_' in place of control characters and those in @bad. */
void text_put_plain(FILE *out, const char *name, const char *bad);

/* text_word - cut off the next word, as strsep(3). A blank behind a backslash is part of it; the
 * backslash stays, as globs and regular expressions have it. */
char *text_word(char **rest);

/* text_printable - copy what fits; '?' in place of control characters and what is no UTF-8. */
void text_printable(char *to, size_t size, const char *text);

/* text_utf8 - a new string, with U+FFFD in place of each byte that is no UTF-8. NULL: no memory. */
char *text_utf8(const char *name);

#endif
