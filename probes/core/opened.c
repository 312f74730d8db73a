/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are held writable for many changes. Some cannot be closed when those are made:
 * a thread that forks sleeps meanwhile, or one in the middle of a change. They stay listed, and are
 * closed with the next ones.
 */
#include <errno.h>
#include <stdlib.h>

#include <patchcore/mapping.h>

#include "probes/core/core.h"

struct opened {
	const struct object *object;
	void *start;
	size_t len;
	struct opened *next; /* that is open, too */
};

static struct opened *left;

struct opened *object_open(const struct object *object, const void *from, const void *to,
			   struct opened *others)
{
	size_t len = (size_t)((uintptr_t)to - (uintptr_t)from);
	struct opened *pages = malloc(sizeof(*pages));

	if (!pages)
		return others;
	*pages = (struct opened){ object, (void *)from, len, others };
	if (!pc_text_open(pages->start, len))
		return pages;
	free(pages);
	return others;
}

/* All other errors are of closed pages. */
static int close_one(const struct opened *pages)
{
	int ret = pc_text_close(pages->start, pages->len);

	return ret == -EAGAIN || ret == -ETIMEDOUT ? ret : 0;
}

/* Of an object that is gone, another may have the place. */
static int close_left(void *data)
{
	struct opened **link = &left;
	int error = 0, ret;

	(void)data;
	while (*link) {
		struct opened *one = *link;

		ret = one->object->gone ? 0 : close_one(one);
		if (ret < 0) {
			error = ret;
			link = &one->next;
			continue;
		}
		*link = one->next;
		free(one);
	}
	return error;
}

int object_close(struct opened *pages)
{
	int error = left ? objects_hold(close_left, NULL) : 0;
	struct opened *next;

	for (; pages; pages = next) {
		int ret = close_one(pages);

		next = pages->next;
		if (!ret) {
			free(pages);
			continue;
		}
		pages->next = left;
		left = pages;
		error = ret;
	}
	return error;
}
