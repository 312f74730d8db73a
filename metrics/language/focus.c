/* SPDX-License-Identifier: MIT */
/* What part of a program a metric is limited to, and which constraint says how. */
#include "metrics/language/focus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which kinds of parts a constraint uses, by bits of their numbers. */
struct uses {
	unsigned procedures, modules;
};

static void note_uses(const struct mdl_where *where, struct uses *uses)
{
	for (; where; where = where->next) {
		const struct mdl_object *object = &where->object;
		unsigned bit = object->number < FOCUS_PARTS ? 1u << object->number : 0;

		if (where->kind != MDL_CHOOSE && object->base == MDL_SELECTED)
			*(!strcmp(object->field, "funcs") ? &uses->modules : &uses->procedures) |=
				bit;
		note_uses(where->then, uses);
		note_uses(where->otherwise, uses);
	}
}

/* The parts of the focus are what the constraint takes them for. */
bool takes_parts(const struct mdl_constraint *constraint, size_t parts)
{
	struct uses uses = { 0 };

	note_uses(constraint->body, &uses);
	return ((uses.procedures | uses.modules) & 1) &&
	       !(uses.procedures & ~(parts == 2 ? 1u : 0)) &&
	       !(uses.modules & ~(1u << (parts - 1)));
}

/* Behind the path of the constraint, or NULL: it has another one. */
static const char *behind_path(const char *focus, const char *path)
{
	size_t len = strlen(path);

	return !strncmp(focus, path, len) && (focus[len] == '/' || !focus[len]) ? focus + len
										: NULL;
}

/* Splits the rest of a path. */
static int split_focus(struct focus *focus, const char *rest)
{
	char *at = focus->copy = strdup(rest), *part;

	if (!at)
		return -ENOMEM;
	while ((part = strsep(&at, "/"))) {
		if (!*part)
			continue;
		if (focus->parts == FOCUS_PARTS)
			return -E2BIG;
		memmove(focus->part + 1, focus->part, focus->parts * sizeof(*focus->part));
		focus->part[0] = part;
		focus->parts++;
	}
	return 0;
}

bool focus_take(struct focus *focus, const struct mdl_constraint *constraint, const char *path)
{
	const char *rest = behind_path(path, constraint->path);

	if (!rest)
		return false;
	*focus = (struct focus){ .constraint = constraint,
				 .in_code = !strcmp(constraint->path, "/Code") };
	if (!split_focus(focus, rest) && focus->parts &&
	    (!focus->in_code || (focus->parts <= 2 && takes_parts(constraint, focus->parts))))
		return true;
	free(focus->copy);
	*focus = (struct focus){ 0 };
	return false;
}

int focus_find_procedures(struct focus *focus, const struct metric_world *world,
			  struct mdl_error *error)
{
	char pattern[512];
	long n;

	if (!focus->in_code || focus->parts < 2)
		return 0;
	if (snprintf(pattern, sizeof(pattern), "%s:%s", focus->part[1], focus->part[0]) >=
	    (int)sizeof(pattern))
		return -ENAMETOOLONG;
	n = world->find(world->data, pattern, NULL, &focus->procedures);
	if (n < 0)
		return (int)n;
	focus->procedures_n = (size_t)n;
	if (n)
		return 0;
	return mdl_fault(error, (struct mdl_place){ 0 }, "no procedure is %s", pattern);
}
