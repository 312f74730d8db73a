/* SPDX-License-Identifier: MIT */
/* Choices as the command line, files and journals spell them. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <errno.h>
#include <string.h>

/* name_index - which of them it is, or -EINVAL. */
static inline int name_index(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

/* NAMES - define the two functions of a table what##_names: WHAT_name() and WHAT_parse(). */
#define NAMES(what, type, count)                                                                   \
	const char *what##_name(enum type value)                                                   \
	{                                                                                          \
		return what##_names[value];                                                        \
	}                                                                                          \
	int what##_parse(const char *name)                                                         \
	{                                                                                          \
		return name_index(what##_names, count, name);                                      \
	}

#endif
