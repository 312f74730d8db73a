/* SPDX-License-Identifier: MIT */
#include "commands/fastinst/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/demangle.h"
#include "base/spelling.h"
#include "base/text.h"

void near_begin(struct near *near, const char *pattern)
{
	const char *colon = strchr(pattern, ':'),
		   *from = colon && colon[1] != ':' ? colon : pattern;

	*near = (struct near){ .pattern = pattern };
	for (; *from && near->letters < SPELLING_LETTERS; from++)
		if (!strchr(from == colon ? ":" : "*?\\/^$[]", *from))
			near->letter[near->letters++] = *from;
}

/* Sorted by errors, then by length. */
static void add_name(struct near *near, const char *text, unsigned errors)
{
	size_t distance = (size_t)errors * NAME_ROOM + strlen(text), at = near->n;

	for (size_t i = 0; i < near->n; i++)
		if (!strcmp(near->name[i].text, text))
			return;
	while (at > 0 && distance < near->name[at - 1].distance)
		at--;
	if (at == NEAR_NAMES)
		return;
	if (near->n == NEAR_NAMES)
		free(near->name[--near->n].text);
	memmove(&near->name[at + 1], &near->name[at], (near->n++ - at) * sizeof(*near->name));
	near->name[at] = (struct near_name){ strdup(text), distance };
}

void near_look(struct near *near, const char *function)
{
	char room[NAME_ROOM];
	const char *name = demangle_name(function, false, room);
	unsigned errors = count_errors(near->letter, near->letters, name, true);

	if (*name && near->letters && errors <= (near->letters + 2) / 3)
		add_name(near, name, errors);
}

void near_tell(struct near *near, const char *where)
{
	static const char help[] =
		": \"fastinst list\" tells the names of a program; where nothing "
		"was compiled in, try --entries; source files take debug "
		"information (-g) and libdw";
	char *names = NULL;
	size_t len;
	FILE *out = open_memstream(&names, &len);

	for (size_t i = 0; out && i < near->n; i++) {
		fputs(i ? ", '" : "; did you mean '", out);
		text_put(out, near->name[i].text);
		fputc('\'', out);
		free(near->name[i].text);
	}
	if (!out || fclose(out))
		return;
	complain(0, 0, "no probe of %s matches '%s'%s%s", where, near->pattern, names,
		 near->n ? "?" : help);
	free(names);
}
