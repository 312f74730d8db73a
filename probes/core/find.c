/* SPDX-License-Identifier: MIT */
/*
 * Sets of probes by their names, and where probes are in the source. Debug information is read when
 * it is asked for: that takes memory and time, which most programs with probes have no use for.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "probes/core/core.h"
#include "probes/dwarf/source.h"

/* --- The source ------------------------------------------------------------------------------ */

int source_look_up(struct probe *probe)
{
	struct object *object = probe->object;
	const char *file;

	if (probe->file)
		return 0;
	if (!object->source_asked)
		object->source = source_open(object->path);
	object->source_asked = true;
	if (!object->source || !source_line(object->source, (uintptr_t)probe->site - object->base,
					    &file, &probe->line))
		return -ENODATA;
	/* The object's debug information stays open, and with it the name. */
	probe->file = file;
	return 0;
}

int fi_source(uint32_t id, const char **file, unsigned *line)
{
	struct probe *probe;
	int ret;

	if (!file || !line)
		return -EINVAL;
	/* Before the lock: the loader may wait for threads that wait for it. */
	source_ready();
	ret = core_lock();
	if (ret < 0)
		return ret;
	probe = probe_get(id);
	ret = probe ? source_look_up(probe) : -ENOENT;
	if (!ret) {
		*file = probe->file;
		*line = probe->line;
	}
	core_unlock();
	return ret;
}

/* --- Names ----------------------------------------------------------------------------------- */

/* A pattern, ready to be held against many probes. */
struct pattern {
	char *text;	    /* a copy that is cut into pieces */
	const char *object; /* NULL: any */
	const char *file;   /* NULL: any */
	struct names names; /* of functions, or, as a regular expression, of OBJECT:FUNCTION */
};

static bool is_regex(const char *text)
{
	size_t len = strlen(text);

	return len > 1 && text[0] == '/' && text[len - 1] == '/';
}

int names_parse(struct names *names, const char *pattern)
{
	char *inside;
	int ret;

	*names = (struct names){ .glob = pattern, .is_regex = *pattern == '/' };
	if (!names->is_regex)
		return 0;
	if (!is_regex(pattern))
		return -EINVAL;
	inside = strndup(pattern + 1, strlen(pattern) - 2);
	if (!inside)
		return -ENOMEM;
	ret = regcomp(&names->regex, inside, REG_EXTENDED | REG_NOSUB) ? -EINVAL : 0;
	free(inside);
	return ret;
}

bool names_match(const struct names *names, const char *name)
{
	if (names->is_regex)
		return !regexec(&names->regex, name, 0, NULL, 0);
	return !fnmatch(names->glob, name, 0);
}

void names_free(struct names *names)
{
	if (names->is_regex)
		regfree(&names->regex);
}

/* The one in front of the function; those of C++ and Rust stand in pairs. */
static char *find_colon(char *text)
{
	for (size_t run; *text; text += run) {
		run = strspn(text, ":");
		if (run == 1)
			return text;
		run += strcspn(text + run, ":");
	}
	return NULL;
}

/* An object is named by the last part of its path. */
static bool is_source_file(const char *glob)
{
	return strchr(glob, '/') || !fnmatch("*.@(c|cc|cpp|cxx|C|h|hh|hpp|rs)", glob, FNM_EXTMATCH);
}

static int parse_pattern(struct pattern *pattern, const char *text)
{
	char *colon;
	int ret;

	*pattern = (struct pattern){ .text = strdup(text) };
	if (!pattern->text)
		return -ENOMEM;
	colon = is_regex(text) ? NULL : find_colon(pattern->text);
	if (colon) {
		*colon = '\0';
		if (is_source_file(pattern->text))
			pattern->file = pattern->text;
		else
			pattern->object = pattern->text;
	}
	ret = names_parse(&pattern->names, colon ? colon + 1 : pattern->text);
	if (ret)
		free(pattern->text);
	return ret;
}

static bool name_matches(const struct pattern *pattern, const char *object, const char *function)
{
	char *text;
	bool found;

	if (!pattern->names.is_regex)
		return names_match(&pattern->names, function);
	if (asprintf(&text, "%s:%s", object, function) < 0)
		return false;
	found = names_match(&pattern->names, text);
	free(text);
	return found;
}

/* Try the symbol's name, and the source's with parameters and without. */
static bool any_name_matches(const struct pattern *pattern, const char *object, const char *name)
{
	char room[NAME_ROOM];

	if (name_matches(pattern, object, name))
		return true;
	return demangle_name(name, false, room) != name &&
	       (name_matches(pattern, object, room) ||
		name_matches(pattern, object, demangle_name(name, true, room)));
}

/* The whole path that the compiler noted, or the last parts of it. */
static bool file_matches(const char *glob, const char *file)
{
	while (file && fnmatch(glob, file, 0)) {
		file = strchr(file, '/');
		file += !!file;
	}
	return file;
}

static bool probe_matches(const struct pattern *pattern, struct probe *probe)
{
	const char *object = basename(probe->object->path);

	if (probe->object->gone || probe->reason ||
	    (pattern->object && fnmatch(pattern->object, object, 0)) ||
	    !any_name_matches(pattern, object, probe->name ? probe->name : ""))
		return false;
	return !pattern->file ||
	       (!source_look_up(probe) && file_matches(pattern->file, probe->file));
}

long fi_find_from(const char *text, uint32_t from, uint32_t *ids, size_t max)
{
	struct pattern pattern;
	size_t n = 0;
	int ret;

	if (!text || (!ids && max))
		return -EINVAL;
	ret = parse_pattern(&pattern, text);
	if (ret < 0)
		return ret;
	/* Before the lock: the loader may wait for threads that wait for it. */
	if (pattern.file)
		source_ready();
	ret = core_lock();
	for (uint32_t id = from; !ret && id < fi_probes(); id++)
		if (probe_matches(&pattern, probe_get(id)) && n++ < max)
			ids[n - 1] = id;
	if (!ret)
		core_unlock();
	names_free(&pattern.names);
	free(pattern.text);
	return ret < 0 ? ret : (long)n;
}

long fi_find(const char *text, uint32_t *ids, size_t max)
{
	return fi_find_from(text, 0, ids, max);
}
