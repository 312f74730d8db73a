/* SPDX-License-Identifier: MIT */
/* Debug information by object, and sites by name, each read once for a command. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/fastinst/sites.h"
#include "profile/command/print.h"

static struct known {
	struct source *source;
	bool has_looked; /* for the sites */
	struct sites sites;
	struct known *next;
	char object[];
} * known;

static struct known *find_known(const char *object)
{
	struct known *one = known;

	while (one && strcmp(one->object, object) != 0)
		one = one->next;
	if (one)
		return one;
	one = calloc(1, sizeof(*one) + strlen(object) + 1);
	if (!one)
		return NULL;
	strcpy(one->object, object);
	one->source = source_open(object);
	one->next = known;
	known = one;
	return one;
}

struct source *source_of(const char *object)
{
	const struct known *one = find_known(object);

	return one ? one->source : NULL;
}

static bool find_line(const char *object, uint64_t addr, const char **file, unsigned *line)
{
	struct source *source = source_of(object);

	return source && source_line(source, addr, file, line);
}

char *source_text(const char *object, uint64_t addr, char *text, size_t size)
{
	const char *file;
	unsigned line;

	text[0] = '\0';
	if (find_line(object, addr, &file, &line))
		snprintf(text, size, "%s:%u", file, line);
	return text;
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
	const struct site *one = a, *two = b;
	int order = strcmp(one->name, two->name);

	return order ? order : strcmp(one->kind, two->kind);
}

/* Sorted by name. There are none without debug information to look lines up in. */
static const struct sites *find_sites(struct known *one)
{
	if (one->has_looked || !one->source)
		return &one->sites;
	one->has_looked = true;
	if (file_sites_read(&one->sites, one->object, false) < 0)
		file_sites_free(&one->sites);
	if (one->sites.n)
		qsort(one->sites.site, one->sites.n, sizeof(*one->sites.site), order_by_name);
	return &one->sites;
}

char *source_named(const char *object, const char *kind, const char *name, char *text, size_t size)
{
	const struct site key = { .kind = kind, .name = (char *)name }, *found = NULL, *end;
	struct known *one = find_known(object);
	const struct sites *sites = one ? find_sites(one) : NULL;

	text[0] = '\0';
	if (sites && sites->n)
		found = bsearch(&key, sites->site, sites->n, sizeof(key), order_by_name);
	if (!found)
		return text;
	end = sites->site + sites->n;
	if (strcmp(kind, "exit") != 0 &&
	    ((found > sites->site && !order_by_name(found - 1, &key)) ||
	     (found + 1 < end && !order_by_name(found + 1, &key))))
		return text;
	return source_text(object, found->addr, text, size);
}
