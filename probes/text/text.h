/* SPDX-License-Identifier: MIT */
/*
 * Names of functions, objects and programs. They are bytes, any but 0; lines of text have tabs
 * between their fields, terminals obey control characters, and others take only UTF-8.
 *
 * The escape: control characters, backslashes and bytes that are no UTF-8 are \xHH. Agents write
 * names so, and commands print them so. What has a field of it splits the line first, and unescapes
 * each then.
 */
#ifndef PROBES_TEXT_TEXT_H
#define PROBES_TEXT_TEXT_H

#include <stddef.h>
#include <stdio.h>

#define TEXT_PIECE 5 /* bytes, with the 0 at the end */

/* text_rune - how many bytes the character at the start has in UTF-8; 0: it is none. */
size_t text_rune(const char *text);

/*
 * text_piece - the first character of a name, escaped. How many bytes of the name that is, 0 at its
 * end. Async-signal-safe.
 */
size_t text_piece(char piece[TEXT_PIECE], const char *name);

/* text_unescape - in place. What is no escape stays as it is. */
void text_unescape(char *text);

/* text_escaped, text_unescaped - a new string. NULL: no memory. */
char *text_escaped(const char *name);
char *text_unescaped(const char *text, size_t len);

/* text_put - a name, escaped; how many bytes were written. */
int text_put(FILE *out, const char *name);

/*
 * text_put_plain - for formats of others, which can escape nothing: '_' in place of each control
 * character, and of those in @bad.
 */
void text_put_plain(FILE *out, const char *name, const char *bad);

/*
 * text_word - cuts the next word off, as strsep(3): blanks part words, unless a backslash stands in
 * front, which stays: patterns, globs and regular expressions, take it as that of a blank.
 */
char *text_word(char **rest);

/* text_utf8 - a new string, with U+FFFD in place of each byte that is no UTF-8. NULL: no memory. */
char *text_utf8(const char *name);

#endif
