/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing the text of /proc without libc. Private. All is NOPATCH.
 */
#ifndef PATCHCORE_KERNEL_PROC_TEXT_H
#define PATCHCORE_KERNEL_PROC_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* proc_find - behind the first place where text has what, or NULL. */
const char *proc_find(const char *text, const char *what);

/* proc_last - the last place of a character in text, or NULL. */
const char *proc_last(const char *text, char c);

/* proc_field - n fields further on; a blank ends each. NULL: there are not as many. */
const char *proc_field(const char *text, unsigned n);

/* proc_number - the number that text begins with, blanks and 0x in front of it passed over. */
uint64_t proc_number(const char *text, unsigned base);

/* proc_put, proc_put_number - append; returns the new end, where a NUL stands. */
char *proc_put(char *end, const char *text);
char *proc_put_number(char *end, unsigned number);

#endif
