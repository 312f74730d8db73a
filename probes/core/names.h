/* SPDX-License-Identifier: MIT */
#ifndef PROBES_CORE_NAMES_H
#define PROBES_CORE_NAMES_H

#include <regex.h>
#include <stdbool.h>

/* A glob (fnmatch(3)), or an extended regular expression between two '/'. */
struct names {
	const char *glob;
	bool is_regex;
	regex_t regex;
};

/* names_parse - the pattern stays where it is. -EINVAL: it begins with a '/', and is none. */
int names_parse(struct names *names, const char *pattern);
bool names_match(const struct names *names, const char *name);
void names_free(struct names *names);

#endif
