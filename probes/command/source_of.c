/* SPDX-License-Identifier: MIT */
/* Debug information by object, and sites by name, each read once for a command. */
#include "probes/command/source_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/json/print.h"
#include "probes/list/sites.h"

static struct known {
	char *object;
	struct source *source;
	bool has_looked; /* sites and by_name are filled in, or cannot be */
	struct sites sites;
	const struct site **by_name;
	struct known *next;
} * known;

static struct known *known_of(const char *object)
{
	struct known *one = known;

	while (one && strcmp(one->object, object) != 0)
		one = one->next;
	if (one)
		return one;
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
	return one;
}

struct source *source_of(const char *object)
{
	const struct known *one = known_of(object);

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

static int by_name(const void *a, const void *b)
{
	const struct site *one = *(const struct site *const *)a,
			  *two = *(const struct site *const *)b;
	int order = strcmp(one->name, two->name);

	return order ? order : strcmp(one->kind, two->kind);
}

/* Finds no sites where there is no debug information to look lines up in. */
static void look_up_sites(struct known *one)
{
	if (one->has_looked)
		return;
	one->has_looked = true;
	if (!one->source || file_sites_read(&one->sites, one->object) < 0)
		return;
	one->by_name = calloc(one->sites.n + 1, sizeof(*one->by_name));
	for (size_t i = 0; one->by_name && i < one->sites.n; i++)
		one->by_name[i] = &one->sites.site[i];
	if (one->by_name)
		qsort(one->by_name, one->sites.n, sizeof(*one->by_name), by_name);
}

char *source_named(const char *object, const char *kind, const char *name, char *text, size_t size)
{
	const struct site wanted = { .kind = kind, .name = (char *)name }, *key = &wanted;
	struct known *one = known_of(object);
	const struct site **found = NULL;

	text[0] = '\0';
	if (one)
		look_up_sites(one);
	if (one && one->by_name)
		found = bsearch(&key, one->by_name, one->sites.n, sizeof(*one->by_name), by_name);
	if (!found)
		return text;
	if (strcmp(kind, "exit") != 0 &&
	    ((found > one->by_name && !by_name(&found[-1], &key)) ||
	     (found + 1 < one->by_name + one->sites.n && !by_name(&found[1], &key))))
		return text;
	return source_text(object, (*found)->addr, text, size);
}
