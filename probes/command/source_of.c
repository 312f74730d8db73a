/* SPDX-License-Identifier: MIT */
#include "probes/command/source_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known {
	char *object;
	struct source *source;
	struct known *next;
} * known;

struct source *source_of(const char *object)
{
	struct known *one = known;

	while (one && strcmp(one->object, object) != 0)
		one = one->next;
	if (one)
		return one->source;
	one = calloc(1, sizeof(*one));
	if (one)
		one->object = strdup(object);
	if (!one || !one->object) {
		free(one);
		return NULL;
	}
	one->source = source_open(object);
	one->next = known;
	known = one;
	return one->source;
}

char *source_text(const char *object, uint64_t addr, char *text, size_t size)
{
	struct source *source = source_of(object);
	const char *file;
	unsigned line;

	text[0] = '\0';
	if (source && source_line(source, addr, &file, &line))
		snprintf(text, size, "%s:%u", file, line);
	return text;
}
