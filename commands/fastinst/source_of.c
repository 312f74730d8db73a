/* SPDX-License-Identifier: MIT */
/* Debug information by object, and sites by name, each read once for a command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands/fastinst/sites.h"
#include "profile/command/command.h"

static struct known {
	struct source *source;
	bool has_looked; /* for the sites */
	struct listed_sites sites;
	struct known *next;
	char object[];
} * known, none;

static struct known *find_known(const char *object)
{
	struct known *one = known;

	while (one && strcmp(one->object, object) != 0)
		one = one->next;
	if (one)
		return one;
	one = calloc(1, sizeof(*one) + strlen(object) + 1);
	if (!one)
		return &none;
	strcpy(one->object, object);
	one->source = source_open(object);
	one->next = known;
	return known = one;
}

struct source *source_of(const char *object)
{
	return find_known(object)->source;
}

static bool find_line(const char *object, uint64_t addr, const char **file, unsigned *line)
{
	struct source *source = source_of(object);

	return source && source_line(source, addr, file, line);
}

char *source_text(const char *object, uint64_t addr, char text[SOURCE_ROOM])
{
	const char *file;
	unsigned line;

	if (!find_line(object, addr, &file, &line))
		return NULL;
	snprintf(text, SOURCE_ROOM, "%s:%u", file, line);
	return text;
}

void put_source(FILE *out, const char *text)
{
	if (!text)
		return;
	fputs("  ", out);
	text_put(out, text);
}

void source_json(const char *object, uint64_t addr, json_t *json)
{
	const char *file;
	unsigned line;

	if (!find_line(object, addr, &file, &line))
		return;
	json_object_set_new(json, "file", name_json(file));
	json_object_set_new(json, "line", json_integer(line));
}

static int order_by_name(const void *a, const void *b)
{
	const struct listed_site *one = a, *two = b;
	int order = strcmp(one->name, two->name);

	return order ? order : strcmp(one->kind, two->kind);
}

char *source_named(const char *object, const char *kind, const char *name, char text[SOURCE_ROOM])
{
	const struct listed_site key = { .kind = kind, .name = (char *)name }, *found = NULL, *end;
	struct known *one = find_known(object);
	struct listed_sites *sites = &one->sites;

	/* There are none without debug information to look lines up in. */
	if (!one->has_looked && one->source) {
		one->has_looked = true;
		if (file_sites_read(sites, object, false) < 0)
			file_sites_free(sites);
		if (sites->n)
			qsort(sites->site, sites->n, sizeof(*sites->site), order_by_name);
	}
	if (sites->n)
		found = bsearch(&key, sites->site, sites->n, sizeof(key), order_by_name);
	if (!found)
		return NULL;
	end = sites->site + sites->n;
	if (strcmp(kind, "exit") != 0 &&
	    ((found > sites->site && !order_by_name(found - 1, &key)) ||
	     (found + 1 < end && !order_by_name(found + 1, &key))))
		return NULL;
	return source_text(object, found->addr, text);
}
