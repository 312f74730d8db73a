/* SPDX-License-Identifier: MIT */
/*
 * Sets of probes by their names.
 */
#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"

/* A pattern, ready to be held against many probes. */
struct pattern {
	char *text;	    /* a copy that is cut into pieces */
	const char *object; /* NULL: any */
	const char *function;
	bool is_regex;
	regex_t regex;
};

static int parse_regex(struct pattern *pattern)
{
	size_t len = strlen(pattern->text);

	if (len < 2 || pattern->text[len - 1] != '/')
		return -EINVAL;
	pattern->text[len - 1] = '\0';
	pattern->is_regex = true;
	return regcomp(&pattern->regex, pattern->text + 1, REG_EXTENDED | REG_NOSUB) ? -EINVAL : 0;
}

static int parse_pattern(struct pattern *pattern, const char *text)
{
	char *colon;
	int ret = 0;

	*pattern = (struct pattern){ .text = strdup(text) };
	if (!pattern->text)
		return -ENOMEM;
	if (*text == '/')
		ret = parse_regex(pattern);
	pattern->function = pattern->text;
	colon = pattern->is_regex ? NULL : strchr(pattern->text, ':');
	if (colon) {
		*colon = '\0';
		pattern->object = pattern->text;
		pattern->function = colon + 1;
	}
	if (ret)
		free(pattern->text);
	return ret;
}

static void release_pattern(struct pattern *pattern)
{
	if (pattern->is_regex)
		regfree(&pattern->regex);
	free(pattern->text);
}

static bool regex_matches(const struct pattern *pattern, const char *object, const char *function)
{
	char *text;
	bool found;

	if (asprintf(&text, "%s:%s", object, function) < 0)
		return false;
	found = !regexec(&pattern->regex, text, 0, NULL, 0);
	free(text);
	return found;
}

static bool matches(const struct pattern *pattern, const struct probe *probe)
{
	const char *slash = strrchr(probe->object->path, '/');
	const char *object = slash ? slash + 1 : probe->object->path;
	const char *function = probe->name ? probe->name : "";

	if (probe->object->gone || probe->reason)
		return false;
	if (pattern->is_regex)
		return regex_matches(pattern, object, function);
	return (!pattern->object || !fnmatch(pattern->object, object, 0)) &&
	       !fnmatch(pattern->function, function, 0);
}

long fi_find(const char *text, uint32_t *ids, size_t max)
{
	struct pattern pattern;
	size_t n = 0;
	int ret;

	if (!text || (!ids && max))
		return -EINVAL;
	ret = parse_pattern(&pattern, text);
	if (ret < 0)
		return ret;
	ret = core_lock();
	for (uint32_t id = 0; !ret && id < fi_probes(); id++)
		if (matches(&pattern, probe_get(id)) && n++ < max)
			ids[n - 1] = id;
	if (!ret)
		core_unlock();
	release_pattern(&pattern);
	return ret < 0 ? ret : (long)n;
}
