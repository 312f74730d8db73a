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
	int segment; /* of it: between two there may be nothing */
	uintptr_t from, to;
	size_t sites;
	struct opened *next;
};

static struct opened *left;

static int segment_of(const struct object *object, uintptr_t at)
{
	int i = 0;

	while (i < SEGMENTS_MAX &&
	       at - object->segment[i].start >= object->segment[i].end - object->segment[i].start)
		i++;
	return i;
}

void object_note(struct opened **pages, const struct object *object, const uint8_t *site,
		 size_t len)
{
	uintptr_t at = (uintptr_t)site;
	int segment = segment_of(object, at);
	struct opened *one = *pages;

	/* Sites of one segment follow each other in most batches. */
	while (one && (one->object != object || one->segment != segment))
		one = one->next;
	if (!one) {
		one = malloc(sizeof(*one));
		if (!one)
			return;
		*one = (struct opened){ object, segment, at, at + len, 0, *pages };
		*pages = one;
	}
	one->from = at < one->from ? at : one->from;
	one->to = at + len > one->to ? at + len : one->to;
	one->sites++;
}

struct opened *object_open(struct opened *pages, size_t least)
{
	struct opened **link = &pages, *one;

	while ((one = *link)) {
		if (one->sites >= least && !pc_text_open((void *)one->from, one->to - one->from)) {
			link = &one->next;
			continue;
		}
		*link = one->next;
		free(one);
	}
	return pages;
}

/* All other errors are of closed pages. */
static int close_one(const struct opened *pages)
{
	int ret = pc_text_close((void *)pages->from, pages->to - pages->from);

	return ret == -EAGAIN || ret == -ETIMEDOUT ? ret : 0;
}

/* Of an object that is gone, another may have the place. */
static int close_listed(void *data)
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
	struct opened **end = &left;

	while (*end)
		end = &(*end)->next;
	*end = pages;
	return left ? objects_hold(close_listed, NULL) : 0;
}
