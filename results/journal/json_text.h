/* SPDX-License-Identifier: MIT */
/*
 * Texts that a journal holds.
 */
#ifndef RESULTS_JOURNAL_JSON_TEXT_H
#define RESULTS_JOURNAL_JSON_TEXT_H

#include <errno.h>
#include <string.h>

/*
 * text_take - copy a text that was read, whole or not at all: a shortened name would be
 * another's. Printable ASCII only, because it ends up on terminals and in figures. 0 or -EINVAL,
 * also where text is NULL.
 */
static inline int text_take(const char *text, char *to, size_t size)
{
	if (!text || strlen(text) >= size)
		return -EINVAL;
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return -EINVAL;
	strcpy(to, text);
	return 0;
}

#endif
