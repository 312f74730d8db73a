/* SPDX-License-Identifier: MIT */
/* A focus: the path of what a metric is limited to, such as /Code/module/procedure. */
#ifndef METRICS_LANGUAGE_FOCUS_H
#define METRICS_LANGUAGE_FOCUS_H

#include "metrics/language/request.h"

struct focus {
	const struct mdl_constraint *constraint;
	char *copy;
	const char *part[FOCUS_PARTS]; /* the last one is the first */
	size_t parts;
	bool in_code;
	uint32_t *procedures; /* of the first part, where that is one */
	size_t procedures_n;
	uint32_t flag; /* its variable */
};

/*
 * focus_take - if the constraint is for such a path: true, and the focus has a copy of its parts,
 * which free() of copy gives back. Else it is empty.
 *
 * focus_find_procedures - those that its first part names. 0, or a negative errno with the error.
 */
bool focus_take(struct focus *focus, const struct mdl_constraint *constraint, const char *path);
int focus_find_procedures(struct focus *focus, const struct metric_world *world,
			  struct mdl_error *error);

/* takes_parts - whether a constraint on code is for paths of so many parts: 1 names a module. */
bool takes_parts(const struct mdl_constraint *constraint, size_t parts);

#endif
