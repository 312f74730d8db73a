/* SPDX-License-Identifier: MIT */
/* A library that is put into a process: uses what takes locks and thread-local storage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int guest(const char *text);

static __thread int calls;

int guest(const char *text)
{
	char *copy = strdup(text);
	int len = copy ? (int)strlen(copy) : -ENOMEM;

	free(copy);
	errno = EPERM;
	return calls++ ? -1 : len;
}
